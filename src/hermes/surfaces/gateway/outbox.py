"""Sends posts: each is stored before it is sent and confirmed after, so that a crash neither loses
nor doubles it."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from weakref import WeakValueDictionary

from hermes.codec.json import decode, encode
from hermes.codec.values import replace
from hermes.core.errors import (
    PlatformError,
    PlatformUnreachable,
    PostRejected,
    PostUncertain,
    TargetGone,
)
from hermes.core.world import World
from hermes.journal.deliveries import DeliveryLedger, PostRow
from hermes.surfaces.gateway.chunks import split_text
from hermes.surfaces.gateway.platform import Address, OutboundFile, Post
from hermes.surfaces.gateway.post_attempt import LivePlatform, PostAttempt, PostOutcome

log = logging.getLogger(__name__)

ATTEMPTS = 3
RETRY_SECONDS = (1.0, 2.0, 4.0)
# How long to wait for a platform that stays unreachable.
OFFLINE_SECONDS = (30.0, 300.0)
# A post that could not be sent for so long is given up.
FRESH_SECONDS = 86_400.0
# A chat that does not exist or blocks us gets nothing for so long.
GONE_SECONDS = 86_400.0


class Outbox:
    """Sends posts in order for each chat. `patient` callers wait for a platform that is offline."""

    def __init__(self, ledger: DeliveryLedger, world: World) -> None:
        self.platforms: dict[str, LivePlatform] = {}
        self._ledger = ledger
        self._world = world
        self._locks: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()
        self._online: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._gone: dict[Address, tuple[float, str]] = {}
        # Posts that the last process left unfinished.
        self._unresolved: dict[str, PostRow] = {}
        self._doubtful: defaultdict[Address, list[PostRow]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()

    def attach(self, platform: LivePlatform) -> None:
        self.platforms[platform.manifest.name] = platform
        self.wake(platform.manifest.name)

    def wake(self, platform: str) -> None:
        """The platform is reachable again."""
        self._online[platform].set()
        self._online[platform] = asyncio.Event()

    async def recover(self, replied: Iterable[str]) -> None:
        """Continue with what the last process left. The posts of the sessions in `replied` wait for
        the replies that they belong to."""
        skip = frozenset(replied)
        for row in await self._ledger.open_posts():
            if row.state == "uncertain":
                self._doubtful[address_of(row)].append(row)
                continue
            self._unresolved[row.key] = row
            if row.session_id not in skip:
                self._spawn(row)

    def resend(self, session_id: str) -> None:
        """Continue with the unfinished posts of a session whose replies are complete."""
        for row in tuple(self._unresolved.values()):
            if row.session_id == session_id:
                self._spawn(row)

    def _spawn(self, row: PostRow) -> None:
        post, to = decode(Post, row.body), address_of(row)
        self.keep_trying(row.key, to, post, session_id=row.session_id)

    def keep_trying(self, key: str, to: Address, post: Post, *, session_id: str = "") -> None:
        """Send in the background, when the platform is reachable again."""

        async def send() -> None:
            await self.send(key, to, post, session_id=session_id)

        task = asyncio.ensure_future(send())
        self._tasks.add(task)
        task.add_done_callback(self._finish_task)

    def _finish_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a post could not be sent", exc_info=error)

    async def close(self) -> None:
        """Stop sending. What is not confirmed stays in the ledger."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def doubts(self, to: Address) -> tuple[PostRow, ...]:
        """Posts to this chat whose outcome nobody knows."""
        return tuple(self._doubtful.get(to, ()))

    async def settle_doubt(self, row: PostRow) -> None:
        """The person knows that this post may not have arrived."""
        await self._ledger.abandon(row.key, "uncertain; the person was told")
        self._doubtful[address_of(row)].remove(row)

    async def send(
        self, key: str, to: Address, post: Post, *, session_id: str = "", patient: bool = True
    ) -> PostOutcome:
        """Send a post unless it was sent. A patient call returns when its fate is final."""
        async with self._lock(to):
            row = self._unresolved.pop(key, None)
            if row is None:
                row = await self._intend(key, to, post, session_id)
                if row.state == "attempting":
                    return await self._deliver(row, to, post, patient=patient, is_begun=True)
            return await self._continue(row, to, post, patient=patient)

    async def edit(self, key: str, to: Address, message_id: str, post: Post) -> PostOutcome:
        """Give a sent post its final content."""
        async with self._lock(to):
            await self._ledger.revise(key, encode(post).decode())
            return await self._edit(key, to, message_id, post, patient=True)

    async def begin(self, key: str, to: Address, post: Post, *, session_id: str) -> PostOutcome:
        """Send the first text of a post that is edited later; see `finish_edits`. Impatient."""
        async with self._lock(to):
            left = self._unresolved.pop(key, None)
            row = left or await self._intend(key, to, post, session_id)
            if row.message_id:
                return PostOutcome(state="confirmed", message_id=row.message_id)
            is_doubtful = left is not None and left.state == "attempting"
            if is_doubtful:
                # What an earlier process may have sent; the next edit brings the present text.
                post = decode(Post, row.body)
            return await self._deliver(
                row,
                to,
                post,
                patient=False,
                is_begun=left is None and row.state == "attempting",
                is_resolved=not is_doubtful,
                stays_open=True,
            )

    async def show(self, to: Address, message_id: str, post: Post) -> None:
        """Edit without storing the text: a later edit follows. Raises PlatformError."""
        async with self._lock(to):
            await self.platforms[to.platform].adapter.edit(to, message_id, post)

    async def finish_edits(self, key: str, message_id: str) -> None:
        """The text that the chat shows is final."""
        await self._ledger.confirm(key, message_id)

    async def send_text(
        self,
        key: str,
        live: LivePlatform,
        to: Address,
        text: str,
        files: Sequence[OutboundFile] = (),
        *,
        session_id: str = "",
    ) -> list[PostOutcome]:
        """Send Markdown of any length and files. What cannot be sent now is sent later."""
        abilities = live.manifest.abilities
        texts = split_text(text.strip(), abilities.max_chars, abilities.counting)
        posts = [Post(text=part) for part in texts] + [Post(file=file) for file in files]
        done: list[PostOutcome] = []
        for n, post in enumerate(posts):
            part = f"{key}.{n}"
            sent = await self.send(part, to, post, session_id=session_id, patient=False)
            if sent.state == "waiting":
                self.keep_trying(part, to, post, session_id=session_id)
            done.append(sent)
        return done

    async def react(self, key: str, to: Address, message_id: str, emoji: str) -> None:
        """Set our reaction to a message, now or when the platform is reachable again."""
        post = Post(reply_to=message_id, reaction=emoji)
        sent = await self.send(key, to, post, patient=False)
        if sent.state == "waiting":
            self.keep_trying(key, to, post)

    async def message_id(self, key: str) -> str:
        """The id of the message that the platform gave to a post; "" without one."""
        row = await self._ledger.post(key)
        return row.message_id if row is not None and row.state != "abandoned" else ""

    async def is_known(self, key: str) -> bool:
        """Whether the post was stored."""
        return await self._ledger.post(key) is not None

    async def withdraw(self, key: str, to: Address, message_id: str) -> None:
        """Remove a message that is not needed; where that is impossible, it becomes a dash."""
        self._unresolved.pop(key, None)
        platform = self._platform(to)
        async with self._lock(to):
            try:
                if platform.manifest.abilities.deletes:
                    await platform.adapter.delete(to, message_id)
                else:
                    await platform.adapter.edit(to, message_id, Post(text="—"))
            except PlatformError as error:
                log.info("a message was not removed", extra={"why": str(error)})
        await self._ledger.abandon(key, "withdrawn")

    async def _intend(self, key: str, to: Address, post: Post, session_id: str) -> PostRow:
        body = encode(post).decode()
        return await self._ledger.intend(
            key, to.platform, encode(to).decode(), body, session_id=session_id, attempt=True
        )

    async def _continue(
        self, row: PostRow, to: Address, post: Post, *, patient: bool
    ) -> PostOutcome:
        """A post that was stored before."""
        match row.state:
            case "confirmed":
                return PostOutcome(state="confirmed", message_id=row.message_id)
            case "editing":
                return await self._edit(row.key, to, row.message_id, post, patient=patient)
            case "uncertain" | "abandoned":
                return PostOutcome(state=row.state, note=row.note)
            case "attempting":
                return await self._settle_attempt(row, to, post, patient=patient)
            case "intended":
                return await self._deliver(row, to, post, patient=patient)

    async def _settle_attempt(
        self, row: PostRow, to: Address, post: Post, *, patient: bool
    ) -> PostOutcome:
        """The last process may have sent this post, perhaps with an earlier text."""
        stored = decode(Post, row.body)
        sent = await self._deliver(row, to, stored, patient=patient, is_resolved=False)
        if sent.state != "confirmed" or stored == post:
            return sent
        await self._ledger.revise(row.key, encode(post).decode())
        return await self._edit(row.key, to, sent.message_id, post, patient=patient)

    async def _deliver(
        self,
        row: PostRow,
        to: Address,
        post: Post,
        *,
        patient: bool,
        is_begun: bool = False,
        is_resolved: bool = True,
        stays_open: bool = False,
    ) -> PostOutcome:
        """Send until the outcome is known. `is_begun`: the attempt is stored already.
        `is_resolved`: no earlier attempt may have succeeded."""
        if note := self._is_gone(to):
            return await self._abandon(row.key, note)
        attempt = PostAttempt(row.key, to, post, row.at, is_resolved)
        wait, tries = OFFLINE_SECONDS[0], 0
        while True:
            self._world.kill_point("gateway.before_post")
            if not is_begun and attempt.is_resolved:
                await self._ledger.attempt(row.key)
            is_begun = False
            try:
                message_id = await attempt.make(self._platform(to))
            except TargetGone as error:
                if not post.reaction:
                    self._gone[to] = (self._world.clock.now() + GONE_SECONDS, str(error))
                return await self._abandon(row.key, str(error))
            except PostRejected as error:
                return await self._abandon(row.key, str(error))
            except PostUncertain as error:
                return await self._doubt(row, str(error))
            except PlatformError as error:
                tries += 1
                seconds = error.retry_after or self._jitter(RETRY_SECONDS[min(tries, 3) - 1])
                if tries < ATTEMPTS:
                    await self._world.clock.sleep(seconds)
                    continue
                if attempt.is_resolved:
                    await self._ledger.postpone(row.key, str(error))
                if self._world.clock.now() - row.at > FRESH_SECONDS:
                    return await self._abandon(row.key, str(error))
                if not patient:
                    return PostOutcome(state="waiting", note=str(error))
                await self._wait_online(to.platform, max(wait, error.retry_after or 0.0))
                wait, tries = min(wait * 2, OFFLINE_SECONDS[1]), 0
                continue
            self._world.kill_point("gateway.after_post")
            if stays_open:
                await self._ledger.keep_editing(row.key, message_id, encode(post).decode())
            else:
                await self._ledger.confirm(row.key, message_id)
            self._world.kill_point("gateway.confirmed")
            return PostOutcome(state="confirmed", message_id=message_id)

    async def _edit(
        self, key: str, to: Address, message_id: str, post: Post, *, patient: bool
    ) -> PostOutcome:
        tries = 0
        while True:
            try:
                platform = self._platform(to)
                try:
                    await platform.adapter.edit(to, message_id, post)
                except PostRejected:
                    await platform.adapter.edit(to, message_id, replace(post, is_plain=True))
            except (TargetGone, PostRejected) as error:
                return await self._abandon(key, str(error))
            except PlatformError as error:
                # Editing again does no harm, so an uncertain edit is just repeated.
                tries += 1
                if tries >= ATTEMPTS and not patient:
                    return PostOutcome(state="waiting", message_id=message_id, note=str(error))
                if tries >= ATTEMPTS:
                    await self._wait_online(to.platform, OFFLINE_SECONDS[0])
                    tries = 0
                else:
                    seconds = error.retry_after or self._jitter(RETRY_SECONDS[tries - 1])
                    await self._world.clock.sleep(seconds)
                continue
            await self._ledger.confirm(key, message_id)
            return PostOutcome(state="confirmed", message_id=message_id)

    async def _abandon(self, key: str, note: str) -> PostOutcome:
        log.warning("a post was given up", extra={"key": key, "why": note})
        await self._ledger.abandon(key, note)
        return PostOutcome(state="abandoned", note=note)

    async def _doubt(self, row: PostRow, note: str) -> PostOutcome:
        await self._ledger.doubt(row.key, note)
        self._doubtful[address_of(row)].append(row)
        return PostOutcome(state="uncertain", note=note)

    async def post_unrecorded(self, to: Address, post: Post) -> str:
        """Send something that need not survive a crash, such as a progress message. Returns its id,
        or "" when it could not be sent."""
        async with self._lock(to):
            try:
                return await self._platform(to).adapter.post(to, post, self._world.new_id("note"))
            except PlatformError as error:
                log.info("a notice was not sent", extra={"why": str(error)})
                return ""

    async def react_unrecorded(self, to: Address, message_id: str, emoji: str) -> None:
        """Set a reaction that need not survive a crash."""
        async with self._lock(to):
            try:
                await self._platform(to).adapter.react(to, message_id, emoji)
            except PlatformError as error:
                log.info("a reaction was not set", extra={"why": str(error)})

    def contact(self, to: Address) -> None:
        """A message came from this chat, so it exists."""
        self._gone.pop(to, None)

    def _lock(self, to: Address) -> asyncio.Lock:
        lock = self._locks.get(to)
        if lock is None:
            lock = self._locks[to] = asyncio.Lock()
        return lock

    def _platform(self, to: Address) -> LivePlatform:
        platform = self.platforms.get(to.platform)
        if platform is None:
            raise PlatformUnreachable(f"{to.platform} is not connected.")
        return platform

    def _is_gone(self, to: Address) -> str:
        until, note = self._gone.get(to, (0.0, ""))
        return note if until > self._world.clock.now() else ""

    async def _wait_online(self, platform: str, seconds: float) -> None:
        online = asyncio.ensure_future(self._online[platform].wait())
        timer = asyncio.ensure_future(self._world.clock.sleep(seconds))
        try:
            await asyncio.wait((online, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            online.cancel()
            timer.cancel()

    def _jitter(self, seconds: float) -> float:
        return seconds * (1.0 + 0.1 * self._world.chance.random())


def address_of(row: PostRow) -> Address:
    return decode(Address, row.address)
