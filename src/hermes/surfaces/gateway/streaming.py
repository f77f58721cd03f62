"""Shows a reply while it is generated: one message that is edited, and further ones when it is
full."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from hermes.codec.values import replace
from hermes.core.concurrency import Wakeup
from hermes.core.errors import PlatformError, TargetGone
from hermes.core.world import World
from hermes.surfaces.gateway.chunks import split_text
from hermes.surfaces.gateway.media import strip_tags
from hermes.surfaces.gateway.options import StreamingOptions
from hermes.surfaces.gateway.outbox import Outbox
from hermes.surfaces.gateway.platform import Address, Post
from hermes.surfaces.gateway.post_attempt import LivePlatform, PostOutcome
from hermes.surfaces.gateway.reply_text import may_become_silent, may_begin_tag, strip_reasoning

log = logging.getLogger(__name__)

MAX_EDIT_SECONDS = 10.0
MAX_FAILURES = 3
# The end of the key of a message that replaces an edited one.
FRESH = ":fresh"


class ShownPart:
    """A message of the stream, and the text that it shows."""

    def __init__(self, message_id: str, text: str) -> None:
        self.message_id = message_id
        self.text = text


class StreamedReply:
    """One reply on its way to a chat. `key_of` gives the key of each part; the final texts come
    with `finish`, whether anything was shown before or not."""

    def __init__(
        self,
        outbox: Outbox,
        live: LivePlatform,
        to: Address,
        options: StreamingOptions,
        world: World,
        *,
        session_id: str,
        key_of: Callable[[int], str],
        reply_to: Callable[[int], str],
    ) -> None:
        self._outbox = outbox
        self._abilities = live.manifest.abilities
        self._to = to
        self._options = options
        self._world = world
        self._session_id = session_id
        self._key_of = key_of
        self._reply_to = reply_to
        self._text = ""
        self._parts: list[ShownPart] = []
        self._shown_since = 0.0
        self._news = Wakeup()
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._edit_seconds = options.edit_seconds
        self._failures = 0
        self._is_broken = False
        is_on = options.enabled and live.options.display.streaming
        self.is_enabled = is_on and self._abilities.edits

    def feed(self, text: str) -> None:
        """More of the reply."""
        self._text += text
        if self.is_enabled and not self._is_broken:
            self._news.set()
            if self._task is None:
                self._task = asyncio.ensure_future(self._show())

    def restart(self) -> None:
        """The reply begins again; the messages that are there get its new text."""
        self._text = ""

    @property
    def text(self) -> str:
        return self._text

    async def stop(self) -> None:
        """Show nothing more. A request under way ends first: its outcome must be known."""
        self._ending.set()
        self._news.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def cancel(self) -> None:
        """The process stops; the next one resolves what is under way."""
        if self._task is not None:
            self._task.cancel()

    async def finish(self, posts: Sequence[Post], *, is_recovered: bool) -> list[PostOutcome]:
        """Give the messages their final content and send those that are missing."""
        await self.stop()
        is_fresh = bool(posts) and await self._posts_again(is_recovered=is_recovered)
        done = []
        for n, post in enumerate(posts):
            done.append(await self._finish_part(n, post, is_fresh=is_fresh))
        kept = 0 if is_fresh else len(posts)
        await self._remove_rest(kept, is_recovered=is_recovered)
        return done

    async def _posts_again(self, *, is_recovered: bool) -> bool:
        """Whether the answer becomes a new message in place of the one that was edited. What an
        earlier process began is continued."""
        if is_recovered and await self._outbox.is_known(f"{self._key_of(0)}{FRESH}"):
            return True
        limit = self._options.fresh_final_seconds
        if not limit or not self._parts or not self._abilities.deletes:
            return False
        return self._world.clock.monotonic() - self._shown_since >= limit

    async def _finish_part(self, n: int, post: Post, *, is_fresh: bool) -> PostOutcome:
        key = f"{self._key_of(n)}{FRESH}" if is_fresh else self._key_of(n)
        part = self._parts[n] if n < len(self._parts) and not is_fresh else None
        if part is None:
            if n:
                await self._act_human()
            return await self._outbox.send(key, self._to, post, session_id=self._session_id)
        if part.text == post.text and post.is_plain:
            await self._outbox.finish_edits(key, part.message_id)
            return PostOutcome(state="confirmed", message_id=part.message_id)
        return await self._outbox.edit(key, self._to, part.message_id, post)

    async def _act_human(self) -> None:
        """Pause as long as a person needs for the next message."""
        least, most = self._options.human_delay_ms
        if most:
            seconds = self._world.chance.uniform(least, most) / 1000
            await self._world.clock.sleep(seconds)

    async def _remove_rest(self, count: int, *, is_recovered: bool) -> None:
        """Messages of the stream that the final text does not need."""
        n = count
        while n < len(self._parts) or is_recovered:
            message_id = await self._outbox.message_id(self._key_of(n))
            if not message_id:
                break
            await self._outbox.withdraw(self._key_of(n), self._to, message_id)
            n += 1

    async def _show(self) -> None:
        """Show the text so far, not more often than the platform allows."""
        clock, options = self._world.clock, self._options
        begun = clock.monotonic()
        while not self._is_broken and not self._ending.is_set():
            await self._news.wait()
            self._news.clear()
            if not self._parts and len(self._text) < options.buffer_chars:
                waited = clock.monotonic() - begun
                if waited < options.edit_seconds:
                    await self._pause(options.edit_seconds - waited)
            if not self._ending.is_set() and await self._show_now():
                await self._pause(self._edit_seconds)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the reply."""
        ending = asyncio.ensure_future(self._ending.wait())
        timer = asyncio.ensure_future(self._world.clock.sleep(seconds))
        try:
            await asyncio.wait((ending, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            timer.cancel()

    async def _show_now(self) -> bool:
        """Whether something was sent."""
        text = strip_tags(strip_reasoning(self._text)).strip()
        if not text or may_become_silent(text) or may_begin_tag(text):
            return False
        limit = self._abilities.max_chars - len(self._options.cursor) * 2
        parts = split_text(text, limit, self._abilities.counting)
        has_sent = False
        for n, part in enumerate(parts):
            is_last = n == len(parts) - 1
            # Unformatted: half of a Markdown element would be refused.
            post = Post(text=part + self._options.cursor if is_last else part, is_plain=True)
            has_sent = await self._show_part(n, post) or has_sent
            if self._is_broken:
                break
        return has_sent

    async def _show_part(self, n: int, post: Post) -> bool:
        if n < len(self._parts):
            part = self._parts[n]
            if part.text == post.text:
                return False
            return await self._edit(part, post)
        plain = replace(post, reply_to=self._reply_to(n))
        begun = await self._outbox.begin(
            self._key_of(n), self._to, plain, session_id=self._session_id
        )
        if begun.state != "confirmed":
            # The whole text is sent at the end.
            self._is_broken = True
            return False
        if not self._parts:
            self._shown_since = self._world.clock.monotonic()
        self._parts.append(ShownPart(begun.message_id, post.text))
        return True

    async def _edit(self, part: ShownPart, post: Post) -> bool:
        try:
            await self._outbox.show(self._to, part.message_id, post)
        except TargetGone:
            self._is_broken = True
            return False
        except PlatformError as error:
            self._failures += 1
            self._is_broken = self._failures >= MAX_FAILURES
            self._edit_seconds = min(self._edit_seconds * 2, MAX_EDIT_SECONDS)
            self._news.set()
            if error.retry_after:
                await self._pause(error.retry_after)
            return True
        self._failures = 0
        part.text = post.text
        return True
