"""A conversation that takes commands, runs turns one at a time, and survives crashes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import assert_never

from hermes.codec.values import replace
from hermes.core.commands import (
    AddContext,
    Answer,
    Archive,
    Command,
    Compact,
    End,
    Interrupt,
    Overlay,
    Retitle,
    Rewind,
    Say,
    SetGoal,
    Steer,
    SwitchModel,
    Tune,
    Withdraw,
)
from hermes.core.effects import Ask, Decision, Effect
from hermes.core.errors import Fenced, JournalError, UsageError
from hermes.core.events import (
    ApprovalAsked,
    Archived,
    Compacted,
    ControlsChanged,
    DurableEvent,
    GoalChanged,
    JudgedEffect,
    MessageReceived,
    ModelSwitched,
    PersonalityChanged,
    QuestionAsked,
    Record,
    ReplyAdded,
    Rewound,
    SessionEnded,
    Steered,
    TitleChanged,
    ToolFinished,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hermes.core.gate import CallGate, Gate, Questions
from hermes.core.messages import (
    AssistantMessage,
    Message,
    ToolMessage,
    Usage,
    UserMessage,
    user_says,
)
from hermes.core.metering import SessionMeter
from hermes.core.ports import ProcessNotice
from hermes.core.prompt import Notice
from hermes.core.recorder import EventListener, Recorder, Subscription
from hermes.core.session_deps import CompactionRequest, ContextEngine, SessionDeps, ToolServices
from hermes.core.transcript import Transcript
from hermes.core.turn_runner import TurnRunner


def import_events(messages: Iterable[Message], model: str, provider: str) -> Iterator[DurableEvent]:
    """Yield the events that store these messages. Replies are attributed to this model, at no
    cost."""
    for message in messages:
        match message:
            case UserMessage():
                yield MessageReceived(message=message, past=True)
            case AssistantMessage():
                yield ReplyAdded(message=message, usage=Usage(), model=model, provider=provider)
            case ToolMessage():
                yield from (ToolFinished(result=each) for each in message.results)
            case _:
                assert_never(message)


log = logging.getLogger(__name__)


class Session:
    """An open conversation. It takes commands by `send` and publishes events to `subscribe`. `app`
    opens and closes it."""

    def __init__(self, deps: SessionDeps, recorder: Recorder) -> None:
        self.id = recorder.session_id
        # For what a person requests directly; ask `judge` first.
        self.workspace, self.web = deps.workspace, deps.web
        # Child sessions are bound by it too.
        self.policy = deps.policy
        self._deps = deps
        self._recorder = recorder
        self._questions = Questions(
            recorder, deps.world, attended=deps.attended, approval_seconds=deps.approval_seconds
        )
        opened = recorder.transcript.opened
        self._gate = Gate(
            deps.policy,
            self._questions,
            opened.principal if opened else "owner",
            recorder,
            approver=deps.approver,
            preflight=deps.preflight,
        )
        # Books the side work of the session.
        self.meter = SessionMeter(recorder, self._questions, deps.world, deps.budgeting)
        self._runner = TurnRunner(deps, recorder, self._gate, self._questions, self.meter)
        self._poll_lock = asyncio.Lock()
        # The process that made these calls is gone, so their cost stays an upper bound.
        recorder.note(*recorder.transcript.open_calls)

    @property
    def transcript(self) -> Transcript:
        return self._recorder.transcript

    @property
    def busy(self) -> bool:
        return self._runner.busy

    @property
    def attended(self) -> bool:
        """Whether a person can answer questions."""
        return self._questions.attended

    def judge(self, effect: Effect) -> Decision:
        """Return the policy's decision, without asking anyone."""
        return self._gate.judge(effect)

    def origin(self, effect: Effect) -> str:
        """Return the source of the text that an effect brings into view; "" for none."""
        return self._gate.origin(effect)

    async def permit(
        self, effect: Effect, stop: asyncio.Event, also: frozenset[str] = frozenset()
    ) -> bool:
        """Authorize an action that a person requests directly. Wait until the effect may happen and
        return whether a person approved it; raise EffectDenied if it may not. `also` are
        third-party sources that caused it."""
        judged = JudgedEffect(effect=effect, decision=self._gate.judge(effect, also))
        return await self._gate.admit("", judged, stop)

    async def confirm(self, effect: Effect, why: str, stop: asyncio.Event) -> None:
        """Ask a person regardless of the policy. Raise EffectDenied if the person declines."""
        await CallGate(self._gate, "", stop).confirm(effect, why)

    def subscribe(self) -> Subscription:
        return self._recorder.subscribe()

    def attach(self, listener: EventListener) -> None:
        """Call the listener with every record, without the queue of `subscribe`."""
        self._recorder.attach(listener)

    def detach(self, listener: EventListener) -> None:
        self._recorder.detach(listener)

    async def send(self, command: Command) -> None:
        """Execute a command. What it changes is durable when this returns. Raise UsageError when
        the command is not possible now."""
        if isinstance(command, Interrupt | Answer):
            # Writes nothing, so a failed journal does not matter.
            await self._execute(command)
            return
        if self._runner.failure is not None:
            await self._recover(self._runner.failure)
        try:
            await self._execute(command)
        except Fenced as error:
            if self.busy:
                raise
            # Another process owned the session for a while. Nothing was written here.
            await self._recover(error)
            await self._execute(command)

    async def ask(self, say: Say) -> AsyncGenerator[Record]:
        """Send a message and yield all records until the turn that answers it has ended. If an
        error prevents the turn from ending, raise that error."""
        say = say if say.key else replace(say, key=self._deps.world.new_id("say"))
        events, n, turn_id = self.subscribe(), 0, ""
        idle: asyncio.Future[None] | None = None
        try:
            await self.send(say)
            idle = asyncio.ensure_future(self.wait_until_idle())
            idle.add_done_callback(lambda _: events.close())
            async for record in events:
                yield record
                match record.event:
                    case MessageReceived(key=say.key):
                        n = record.n
                    case TurnStarted(takes=takes) | Steered(takes=takes) if n and n in takes:
                        turn_id = record.turn_id
                    case TurnEnded() if turn_id and record.turn_id == turn_id:
                        return
                    case _:
                        pass
            await idle
        finally:
            if idle is not None:
                idle.cancel()
            events.close()

    async def _execute(self, command: Command) -> None:
        match command:
            case Say():
                message = user_says(command.text, *command.images, origin=command.origin)
                received = MessageReceived(message=message, key=command.key, calls=command.calls)
                await self._receive(received)
            case Steer():
                if command.text.strip():
                    message, joins = user_says(command.text), self._runner.running is not None
                    received = MessageReceived(message=message, key=command.key, steer=joins)
                    await self._receive(received)
            case AddContext():
                message = user_says(command.text, origin=command.origin)
                joins = self._runner.running is not None
                received = MessageReceived(
                    message=message, key=command.key, steer=joins, past=not joins
                )
                await self._receive(received)
            case Withdraw(n=n):
                # A message is either withdrawn or answered, so not while a turn takes it.
                async with self._runner.take_lock:
                    waiting = self.transcript.waiting.get(n)
                    if waiting is None or waiting.steer:
                        raise UsageError(
                            "That message is no longer waiting, so it cannot be withdrawn."
                        )
                    await self._recorder.commit(Withdrawn(n=n))
            case Interrupt():
                self._runner.interrupt()
            case Answer():
                self._questions.answer(command.id, command.text, command.by, command.reason)
            case SwitchModel():
                await self._switch(command)
            case Rewind():
                await self._rewind(command.turns)
            case Compact():
                await self._compact(command)
            case Overlay():
                await self._recorder.commit(
                    PersonalityChanged(name=command.name, text=command.text)
                )
            case Tune():
                await self._tune(command)
            case Retitle():
                await self._recorder.commit(TitleChanged(title=command.title))
            case Archive():
                await self._recorder.commit(Archived(away=command.away))
            case SetGoal(goal=goal, say=say):
                if say is None:
                    await self._recorder.commit(goal)
                else:
                    message = user_says(say.text, origin=say.origin)
                    await self._receive(goal, MessageReceived(message=message, key=say.key))
            case End():
                if self._recorder.lease is not None:
                    await self._recorder.commit(SessionEnded(reason=command.reason))
            case _:
                assert_never(command)

    async def import_messages(self, messages: Sequence[Message]) -> None:
        """Start the session with a conversation from another source."""
        model, provider = self.transcript.model, self.transcript.provider
        await self._recorder.commit(*import_events(messages, model, provider))

    def notices(self) -> AsyncIterator[ProcessNotice]:
        """Return notices of the session's background processes."""
        return self._deps.workspace.processes.notices()

    async def ask_secret(self, question: str, seconds: float) -> str | None:
        """Ask the person for a secret. Return the input, which is kept in this process only, or
        None when the session is unattended."""
        return await self._questions.ask("", question, (), seconds, self._runner.stop, secret=True)

    async def ask_for_child(
        self, call_id: str, asked: ApprovalAsked | QuestionAsked, why: str, stop: asyncio.Event
    ) -> Answer:
        """Ask the person a question of a child session and return the answer for the child. `why`
        names the child and its reason."""
        if isinstance(asked, QuestionAsked):
            seconds = asked.expires_seconds
            text = await self._questions.ask(
                call_id, why, asked.choices, seconds, stop, secret=asked.secret
            )
            return Answer(id=asked.id, text=text or "")
        question = Ask(reason=why, category=asked.category, scopes=asked.scopes)
        choice, by, reason = await self._questions.ask_approval(
            call_id, asked.effect, question, stop, asked.lasting
        )
        return Answer(id=asked.id, text=choice, by=by, reason=reason)

    def tell(self, text: str) -> None:
        """Show the person a notice outside the conversation."""
        self._recorder.show(Notice(text=text))

    def continue_unfinished(self) -> None:
        """Continue an open turn and start waiting messages. Return at once."""
        self._runner.is_held = False
        self._runner.start()

    def hold(self) -> None:
        """Start no turn until `continue_unfinished`; messages wait."""
        self._runner.is_held = True

    def preview_compaction(self, command: Compact) -> Compacted | None:
        """Estimate what `Compact` would do, without a model call."""
        engine, request = self._compaction_request(command)
        prompt = self._deps.view(self.transcript)
        return engine.preview(self.transcript, prompt, request)

    async def wait_until_idle(self) -> None:
        """Wait until no turn runs and no message waits."""
        await self._runner.wait_until_settled()

    async def check_inbox(self) -> None:
        """Execute commands that other processes left for this session."""
        lease = self._recorder.lease
        if lease is None:
            return
        async with self._poll_lock:
            for waiting in await self._deps.journal.pending_commands(lease):
                command = waiting.command
                if isinstance(command, Say | Steer) and not command.key:
                    # A crash before `acknowledge` must not execute it twice.
                    command = replace(command, key=f"inbox:{waiting.id}")
                try:
                    await self.send(command)
                except UsageError as error:
                    why = {"why": str(error)}
                    log.warning("a command from the inbox cannot be executed", extra=why)
                await self._deps.journal.acknowledge(lease, (waiting.id,))

    async def close(self, *, soon: bool = False, suspend: bool = False) -> None:
        """Stop the running turn and release the session. Waiting messages stay in the journal. For
        `soon`, see `Journal.release`; for `suspend`, `TurnRunner.end`."""
        await self._runner.end(suspend=suspend)
        await self._deps.workspace.close()
        if self._recorder.lease is not None:
            # The costs of the last calls, if the journal accepts them.
            with suppress(JournalError):
                await self._recorder.commit()
        await self._recorder.release(soon=soon)

    async def _recover(self, error: Exception) -> None:
        """Continue from what the journal holds, after a failed write of this session."""
        await self._recorder.reload(is_lost=isinstance(error, Fenced))
        self._runner.failure = None
        self._runner.services = ToolServices(self._deps.services)

    async def _receive(self, *received: MessageReceived | GoalChanged) -> None:
        await self._recorder.commit(*received)
        self._deps.world.kill_point("message.received")
        self._runner.start()

    async def _switch(self, command: SwitchModel) -> None:
        # Connect first: a model that cannot be used is refused before anything is written.
        self._runner.connect(command.model, command.provider)
        switched = ModelSwitched(model=command.model, provider=command.provider)
        try:
            await self._recorder.commit(switched)
        except BaseException:
            self._runner.disconnect()
            raise

    async def _tune(self, command: Tune) -> None:
        tuned = ControlsChanged(effort=command.effort, tier=command.tier, mode=command.mode)
        if tuned.tier != self.transcript.tuned.tier:
            self._runner.disconnect()
        if self._recorder.lease is None:
            # A session without a message stores nothing.
            self._recorder.note(tuned)
            self._recorder.apply_pending()
        else:
            await self._recorder.commit(tuned)
        self._deps.tune(tuned)

    async def _rewind(self, turns: int) -> None:
        if self.busy:
            raise UsageError("A turn is running; interrupt it first.")
        if not self.transcript.turn_starts:
            raise UsageError("There is nothing to undo.")
        await self._recorder.commit(Rewound(turns=turns))
        # What tools remember of the conversation may be out of view now.
        self._runner.services = ToolServices(self._deps.services)

    async def _compact(self, command: Compact) -> None:
        if self.busy:
            raise UsageError("A turn is running; wait for its end or interrupt it first.")
        engine, request = self._compaction_request(command)
        prompt = self._deps.view(self.transcript)
        compacted = await engine.compact(self.transcript, prompt, request, self.meter)
        if compacted is None:
            raise UsageError("There is nothing to compact in this session yet.")
        self._deps.world.kill_point("compaction.made")
        await self._recorder.commit(compacted)
        self._runner.services.on_compaction()

    def _compaction_request(self, command: Compact) -> tuple[ContextEngine, CompactionRequest]:
        if self._deps.engine is None:
            raise UsageError("Compaction is off; set compression.enabled to true.")
        _, limits = self._runner.connection
        request = CompactionRequest(
            window=limits.window, cause="asked", topic=command.topic, keep=command.keep
        )
        return self._deps.engine, request
