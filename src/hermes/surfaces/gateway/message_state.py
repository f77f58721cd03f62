"""Shows people what became of their messages, by reactions, and which replies may be missing."""

from __future__ import annotations

from hermes.codec.json import decode
from hermes.commands.formatting import one_line
from hermes.core.events import TurnEnded
from hermes.surfaces.gateway.pending import ChatDeps, Pending
from hermes.surfaces.gateway.platform import Post

DOUBT_CHARS = 60
SEEN, DONE, FAILED = "👀", "✅", "❌"


class MessageState:
    """The state of the messages of one conversation. Reactions need a platform that has them, and
    the setting."""

    def __init__(self, deps: ChatDeps) -> None:
        self._deps = deps

    async def show_seen(self, pending: Pending) -> None:
        """A turn works on the message."""
        if self._is_shown(pending):
            event = pending.event
            await self._deps.outbox.react_unrecorded(event.address, event.message_id, SEEN)

    async def show_end(self, pending: Pending, ended: TurnEnded | None) -> None:
        """The turn is over. The reaction is stored first, like a post."""
        if self._is_shown(pending):
            event = pending.event
            emoji = DONE if ended is not None and ended.reason == "done" else FAILED
            key = f"{pending.run_id}:state"
            await self._deps.outbox.react(key, event.address, event.message_id, emoji)

    async def tell_doubts(self, pending: Pending) -> None:
        """Say which posts of ours may not have arrived."""
        to, outbox = pending.event.address, self._deps.outbox
        for row in outbox.doubts(to):
            post = decode(Post, row.body)
            what = one_line(post.text or (post.file.name if post.file else ""), DOUBT_CHARS)
            text = f"My last reply may not have arrived: “{what}”. Ask me to repeat it."
            await outbox.send(f"{row.key}:doubt", to, Post(text=text), session_id=row.session_id)
            await outbox.settle_doubt(row)

    def _is_shown(self, pending: Pending) -> bool:
        event = pending.event
        options = self._deps.live(event.address.platform).options
        return options.reactions and bool(event.message_id) and not pending.is_internal
