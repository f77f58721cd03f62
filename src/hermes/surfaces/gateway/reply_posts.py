"""Posts what a turn says: its answer, the texts between tool calls, and how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from hermes.codec.values import Value
from hermes.commands.formatting import explain_ending, sanitize
from hermes.core.events import ApprovalAsked, QuestionAsked, Record, ReplyAdded, TurnEnded
from hermes.core.messages import AssistantMessage
from hermes.core.world import World
from hermes.hosting.follower import RecordAdded, ReplyRestarted, RunFollower, TextPiece
from hermes.hosting.run import Run
from hermes.surfaces.gateway.chunks import split_text
from hermes.surfaces.gateway.outbox import LivePlatform, Outbox
from hermes.surfaces.gateway.platform import Address, Post


class ReplyTarget(NamedTuple):
    """Where and how a turn is answered."""

    outbox: Outbox
    live: LivePlatform
    to: Address
    # The message that is answered; "" for none.
    message_id: str
    world: World
    # A person wrote the message.
    is_human: bool = True


class ReplyResult(Value):
    """What a person got of a turn. `note` says what is missing."""

    ended: TurnEnded | None = None
    note: str = ""


class TurnPoster:
    """Follows a run and posts its replies. A post has the key `session:turn:reply.part`, so that a
    process that continues after a crash finds what was posted."""

    def __init__(
        self,
        run: Run,
        target: ReplyTarget,
        on_question: Callable[[ApprovalAsked | QuestionAsked], Awaitable[None]],
    ) -> None:
        self.run = run
        self.target = target
        self._on_question = on_question
        self._replies = 0
        self._notes: list[str] = []
        self._posted = 0

    async def follow(self) -> ReplyResult:
        """Post everything until the run is over and every post has its fate."""
        follower = RunFollower(self.run)
        final: AssistantMessage | None = None
        try:
            while True:
                for event in follower.read():
                    match event:
                        case RecordAdded(record=record):
                            final = await self._on_record(record, final)
                        case TextPiece() | ReplyRestarted():
                            pass
                if follower.is_done:
                    break
                await follower.wait()
        finally:
            follower.close()
        ended = self.run.ended
        if ended is not None:
            await self._finish(final, ended)
        return ReplyResult(ended=ended, note="; ".join(self._notes))

    async def _on_record(
        self, record: Record, final: AssistantMessage | None
    ) -> AssistantMessage | None:
        match record.event:
            case ReplyAdded(message=message):
                if message.calls:
                    await self._post_reply(message.text)
                    final = None
                else:
                    return message
                self._replies += 1
            case ApprovalAsked() | QuestionAsked() as asked:
                await self._on_question(asked)
            case _:
                pass
        return final

    async def _finish(self, final: AssistantMessage | None, ended: TurnEnded) -> None:
        text = final.text.strip() if final else ""
        # Who interrupts a turn knows it.
        is_stopped = ended.reason == "interrupted"
        ending = "" if is_stopped else sanitize(explain_ending(ended, answered=bool(text)))
        await self._post_reply("\n\n".join(filter(None, (text, ending))))

    async def _post_reply(self, text: str) -> None:
        abilities = self.target.live.manifest.abilities
        for n, part in enumerate(split_text(text.strip(), abilities.max_chars, abilities.counting)):
            await self._send(str(n), Post(text=part, reply_to=self._reply_to()))

    async def _send(self, part: str, post: Post) -> None:
        target, index = self.target, self.run.earlier_replies + self._replies
        key = f"{self.run.session_id}:{self.run.turn_id}:{index}.{part}"
        sent = await target.outbox.send(key, target.to, post, session_id=self.run.session_id)
        self._posted += 1
        if sent.state != "confirmed":
            self._notes.append(f"{sent.state}: {sent.note}")

    def _reply_to(self) -> str:
        match self.target.live.options.reply_to_mode:
            case "off":
                return ""
            case "first":
                return "" if self._posted else self.target.message_id
            case "all":
                return self.target.message_id
