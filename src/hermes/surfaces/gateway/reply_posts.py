"""Posts what a turn says: its answer, the texts between tool calls, its files and how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from hermes.codec.values import Value
from hermes.commands.formatting import explain_ending, sanitize
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    QuestionAnswered,
    QuestionAsked,
    Record,
    ReplyAdded,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from hermes.core.messages import AssistantMessage, ToolCall
from hermes.core.world import World
from hermes.hosting.follower import RecordAdded, ReplyRestarted, RunEvent, RunFollower, TextPiece
from hermes.hosting.run import Run
from hermes.surfaces.gateway.chunks import split_text
from hermes.surfaces.gateway.media import MediaRules, ReplyMedia, extract_media
from hermes.surfaces.gateway.options import StreamingOptions
from hermes.surfaces.gateway.outbox import Outbox
from hermes.surfaces.gateway.platform import Address, Post
from hermes.surfaces.gateway.post_attempt import LivePlatform
from hermes.surfaces.gateway.progress import TurnProgress
from hermes.surfaces.gateway.reply_text import SILENT_NOTICE, is_silent, strip_reasoning
from hermes.surfaces.gateway.streaming import StreamedReply

Question = ApprovalAsked | QuestionAsked
Answered = ApprovalAnswered | QuestionAnswered


class ReplyTarget(NamedTuple):
    """Where and how a turn is answered."""

    outbox: Outbox
    live: LivePlatform
    to: Address
    # The message that is answered; "" for none.
    message_id: str
    world: World
    streaming: StreamingOptions
    media: Callable[[], MediaRules]
    # Adds lines about claims that nothing supports; gets the answer and the records of the turn.
    check_claims: Callable[[str, list[Record]], str]
    on_question: Callable[[Question | Answered], Awaitable[None]]
    # A person wrote the message.
    is_human: bool = True
    # An earlier process may have posted parts of the answer.
    is_recovered: bool = False
    header: str = ""
    shows_reasoning: Callable[[], bool] = lambda: False


class ReplyResult(Value):
    """What a person got of a turn. `note` says what is missing."""

    ended: TurnEnded | None = None
    note: str = ""


class TurnPoster:
    """Follows a run and posts its replies. A post has the key `session:turn:reply.part`, so that a
    process that continues after a crash finds what was posted."""

    def __init__(self, run: Run, target: ReplyTarget, progress: TurnProgress) -> None:
        self.run = run
        self.target = target
        self.progress = progress
        self._replies = 0
        self._posted = 0
        self._notes: list[str] = []
        self._calls: dict[str, ToolCall] = {}
        self._final: AssistantMessage | None = None
        self._stream = self._new_stream()

    async def follow(self) -> ReplyResult:
        """Post everything until the run is over and every post has its fate."""
        follower = RunFollower(self.run)
        self.progress.start()
        ended: TurnEnded | None = None
        try:
            while True:
                for event in follower.read():
                    await self._on_event(event)
                if follower.is_done:
                    break
                await follower.wait()
            ended = self.run.ended
            if ended is not None:
                await self._finish(ended)
        finally:
            self._stream.cancel()
            follower.close()
            await self.progress.stop(is_done=ended is not None and ended.reason == "done")
        return ReplyResult(ended=ended, note="; ".join(self._notes))

    async def _on_event(self, event: RunEvent) -> None:
        match event:
            case TextPiece(text=text, is_text=is_text):
                self.progress.note_activity("writing an answer")
                if is_text:
                    self._stream.feed(text)
            case ReplyRestarted():
                self._stream.restart()
            case RecordAdded(record=record):
                await self._on_record(record)

    async def _on_record(self, record: Record) -> None:
        match record.event:
            case ReplyAdded(message=message):
                self.progress.note_activity()
                self._calls = {call.id: call for call in message.calls}
                self._final = None if message.calls else message
                if message.calls:
                    await self._post_interim(message.text)
            case ToolStarted(call_id=call_id):
                if call := self._calls.get(call_id):
                    self.progress.add_call(call)
            case ToolFinished():
                self.progress.note_activity("waiting for the model")
            case ApprovalAsked() | QuestionAsked() as asked if record.at >= self.run.created_at:
                # What an earlier process asked is asked again.
                self.progress.is_waiting = True
                await self.target.on_question(asked)
            case ApprovalAnswered() | QuestionAnswered() as answered:
                self.progress.is_waiting = bool(self.run.pending)
                self.progress.note_activity()
                await self.target.on_question(answered)
            case _:
                pass

    async def _post_interim(self, text: str) -> None:
        """The text of a reply with tool calls."""
        is_shown = self.target.live.options.display.interim_messages
        text = strip_reasoning(text).strip()
        await self._post_reply(ReplyMedia(text=text if is_shown and not is_silent(text) else ""))
        self._replies += 1
        self._stream = self._new_stream()

    async def _finish(self, ended: TurnEnded) -> None:
        is_stopped = ended.reason == "interrupted"
        text = strip_reasoning(self._final.text).strip() if self._final else ""
        if self._final is None and is_stopped:
            # What was shown stays visible, without a cursor.
            text = strip_reasoning(self._stream.text).strip()
        ending = "" if is_stopped else sanitize(explain_ending(ended, answered=bool(text)))
        if is_silent(text) and not ending:
            text = SILENT_NOTICE if self.target.is_human else ""
            await self._post_reply(ReplyMedia(text=text))
            return
        media = extract_media(text, self.target.media()) if text else ReplyMedia(text="")
        claims = self.target.check_claims(media.text, self.run.records)
        reasoning = self._reasoning() if media.text else ""
        lines = (self.target.header, reasoning, media.text, *media.notes, claims, ending)
        whole = "\n\n".join(filter(None, lines)) if any(lines[1:]) else ""
        await self._post_reply(ReplyMedia(text=whole, files=media.files))

    def _reasoning(self) -> str:
        """The reasoning of the final reply as a quotation, if the chat shows it."""
        if self._final is None or not self._final.reasoning or not self.target.shows_reasoning():
            return ""
        return "\n".join(f"> {line}" for line in self._final.reasoning.strip().splitlines())

    async def _post_reply(self, media: ReplyMedia) -> None:
        target, abilities = self.target, self.target.live.manifest.abilities
        if media.text:
            self.progress.end_group()
        texts = split_text(media.text, abilities.max_chars, abilities.counting)
        posts = [Post(text=text, reply_to=self._reply_to(n)) for n, text in enumerate(texts)]
        done = await self._stream.finish(posts, is_recovered=target.is_recovered)
        for n, file in enumerate(media.files):
            key = self._key(f"f{n}")
            post = Post(file=file)
            sent = await target.outbox.send(key, target.to, post, session_id=self.run.session_id)
            done.append(sent)
        self._posted += len(done)
        self._notes += [f"{each.state}: {each.note}" for each in done if each.state != "confirmed"]

    def _new_stream(self) -> StreamedReply:
        target = self.target
        return StreamedReply(
            target.outbox,
            target.live,
            target.to,
            target.streaming,
            target.world,
            session_id=self.run.session_id,
            key_of=lambda n: self._key(str(n)),
            reply_to=self._reply_to,
        )

    def _key(self, part: str) -> str:
        index = self.run.earlier_replies + self._replies
        return f"{self.run.session_id}:{self.run.turn_id}:{index}.{part}"

    def _reply_to(self, n: int) -> str:
        match self.target.live.options.reply_to_mode:
            case "off":
                return ""
            case "first":
                return "" if n or self._posted else self.target.message_id
            case "all":
                return self.target.message_id
