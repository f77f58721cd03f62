"""One conversation: its inbox, the task that answers one message after the other, and what happens
to messages while a turn runs."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine

from hermes.codec.json import encode
from hermes.codec.values import Value, replace
from hermes.commands.formatting import one_line
from hermes.core.commands import Answer
from hermes.core.errors import AdmissionRefused, HermesError, NotFound, UsageError
from hermes.core.events import MessageReceived
from hermes.hosting.request import BusyMode
from hermes.hosting.run import Run
from hermes.surfaces.gateway.background_tasks import BackgroundTasks
from hermes.surfaces.gateway.chat_commands import ChatCommands
from hermes.surfaces.gateway.chat_turn import SHUTDOWN, ChatTurn, MessageBuilder
from hermes.surfaces.gateway.context_notes import ContextNotes
from hermes.surfaces.gateway.message_state import MessageState
from hermes.surfaces.gateway.pending import INTERNAL, ChatDeps, Pending, is_mergeable, merged
from hermes.surfaces.gateway.platform import Post
from hermes.surfaces.gateway.process_watch import ProcessWatch
from hermes.surfaces.gateway.questions import ChatQuestions
from hermes.surfaces.gateway.reply_posts import ReplyResult
from hermes.surfaces.gateway.reset import SessionReset
from hermes.surfaces.gateway.routes import ChatRoute

log = logging.getLogger(__name__)

ACK_SECONDS = 30.0
# A client splits a long text into messages that are nearly as long as the platform allows.
SPLIT_SECONDS = 2.0
SPLIT_SHARE = 0.9
ACKS = {
    "interrupt": "I stop what I am doing and read your message.",
    "queue": "I read this when I am done.",
    "steer": "I take this into account at the next step.",
}
WAIT_TEXT = "Other conversations are busy; yours is next in line."


class RunningChat(Value):
    """A conversation with a running turn, for status displays."""

    session_key: str
    session_id: str
    platform: str
    chat: str
    since: float


class Chat:
    """A conversation. Its task exists only while there is something to do."""

    def __init__(self, key: str, deps: ChatDeps, commands: ChatCommands) -> None:
        self.key = key
        self.deps = deps
        self.builder = MessageBuilder(key, deps)
        self.questions = ChatQuestions(deps.outbox, self._send_answer)
        self.turn: ChatTurn | None = None
        self.resets = SessionReset(deps, self.builder)
        self._notes = ContextNotes(key, deps, self.builder)
        self._state = MessageState(deps)
        self.inbox: deque[Pending] = deque()
        self.background = BackgroundTasks(deps.app)
        self._processes = ProcessWatch(deps, self._on_notice)
        self._commands = commands
        self._task: asyncio.Task[None] | None = None
        self._side_tasks: set[asyncio.Task[bool]] = set()
        self._busy_lock = asyncio.Lock()
        self._last_ack = float("-inf")
        self._last_event: Pending | None = None
        self._is_closing = False

    @property
    def is_idle(self) -> bool:
        return (self._task is None or self._task.done()) and not self._side_tasks

    @property
    def running(self) -> RunningChat | None:
        if self.turn is None:
            return None
        event = self.turn.pending.event
        return RunningChat(
            session_key=self.key,
            session_id=self.turn.run.session_id,
            platform=event.address.platform,
            chat=event.chat_name or event.address.chat_id,
            since=self.turn.since,
        )

    def add(self, pending: Pending) -> None:
        """Take a message that the ledger has stored."""
        if self.turn is None:
            self._enqueue(pending)
        else:
            self.spawn(self._add_while_busy(pending))

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Do something beside the conversation's own task."""
        task = asyncio.ensure_future(self._log_failure(work))
        self._side_tasks.add(task)
        task.add_done_callback(self._side_tasks.discard)

    def run_when_idle(self, work: Coroutine[None, None, object]) -> None:
        """Do something in place of a message; messages wait meanwhile. Nothing while one is
        answered."""
        if self.is_idle and not self._is_closing:
            self._task = asyncio.ensure_future(self._work(work))
        else:
            work.close()

    async def wait(self) -> None:
        """Wait until everything is answered."""
        while not self.is_idle:
            tasks = (*self._side_tasks, *((self._task,) if self._task else ()))
            await asyncio.wait(tasks)

    async def suspend(self) -> None:
        """Stop for a shutdown: the running turn is interrupted and continues after a restart."""
        self._is_closing = True
        # After the turn, only its posts wait; the next process sends them from the ledger.
        if self.turn is None or self.turn.run.is_over:
            return
        pending, run = self.turn.pending, self.turn.run
        await self.deps.ledger.accept(
            pending.event.address.platform,
            pending.event.key,
            run.session_id,
            self.turn.shutdown_note,
        )
        await self.deps.executor.stop(run)

    async def close(self) -> None:
        self._is_closing = True
        tasks = (*self._side_tasks, *((self._task,) if self._task else ()))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.background.close()
        await self._processes.close()

    async def tell(self, pending: Pending, text: str, part: str = "out") -> None:
        """Post a durable text that is not an answer of the model."""
        live = self.deps.live(pending.event.address.platform)
        await self.deps.outbox.send_text(
            f"{pending.run_id}:{part}", live, pending.event.address, text
        )

    async def finish(self, pending: Pending, note: str = "") -> None:
        self.deps.app.context.world.kill_point("gateway.before_finish")
        await self.deps.ledger.finish(pending.event.address.platform, pending.event.key, note)

    def _enqueue(self, pending: Pending) -> None:
        self.inbox.append(pending)
        if (self._task is None or self._task.done()) and not self._is_closing:
            self._task = asyncio.ensure_future(self._work())

    async def _work(self, first: Coroutine[None, None, object] | None = None) -> None:
        if first is not None:
            await self._log_failure(first)
        while self.inbox and not self._is_closing:
            pending = self.inbox.popleft()
            if not await self._log_failure(self._handle(pending)):
                text = "I cannot answer this now because of an error; I try again after a restart."
                await self.deps.outbox.post_unrecorded(pending.event.address, Post(text=text))

    async def _log_failure(self, work: Coroutine[None, None, object]) -> bool:
        """Whether the work succeeded."""
        try:
            await work
            return True
        except HermesError as error:
            log.error("a message was not answered", extra={"why": str(error)})
        except Exception:
            log.exception("a message was not answered")
        return False

    async def _handle(self, pending: Pending) -> None:
        if not pending.wants_answer:
            await self._notes.add(pending)
            await self.finish(pending, "for information")
            return
        await self._state.tell_doubts(pending)
        if self._commands.is_command(pending):
            await self._commands.run(self, pending)
            return
        await self.answer(await self._gather(pending))

    async def answer(self, pending: Pending, text: str = "") -> None:
        """Run the turn of a message and post what it says. `text` replaces that of the message."""
        deps, world = self.deps, self.deps.app.context.world
        route = await deps.routes.open(self.key, pending.event, world.clock.now())
        if not pending.session_id and not pending.is_internal:
            route = await self.resets.apply_if_due(route, pending)
        try:
            run = await self._start_run(pending, route, text)
        except AdmissionRefused as refused:
            if refused.is_draining:
                return
            raise
        except (NotFound, UsageError) as error:
            # It would fail again after a restart.
            await self.tell(pending, f"I could not answer: {error}", "error")
            await self.finish(pending, str(error))
            return
        session_id = run.session_id
        if not pending.session_id:
            await deps.ledger.accept(pending.event.address.platform, pending.event.key, session_id)
            world.kill_point("gateway.accepted")
        self.spawn(self._state.show_seen(pending))
        self.turn = turn = ChatTurn(deps, pending, route, run, self.questions)
        self._last_event = pending
        request = replace(self.builder.request(pending, route, text=""), session_id=session_id)
        self._processes.watch(request)
        try:
            result = await turn.follow()
        finally:
            self.turn = None
        await self._processes.hold(request)
        if self._is_closing and (result.ended is None or result.ended.reason == "interrupted"):
            return
        await self._close_message(pending, run, result)
        await self._close_joined(turn)
        deps.outbox.resend(session_id)

    async def _start_run(self, pending: Pending, route: ChatRoute, text: str) -> Run:
        deps = self.deps
        limit = deps.options.max_concurrent_sessions
        if limit and deps.admission.active >= limit:
            await deps.outbox.post_unrecorded(pending.event.address, Post(text=WAIT_TEXT))
        if pending.note.startswith(SHUTDOWN):
            run_id, request = self.builder.resume_request(pending, route)
            return await deps.executor.start(run_id, replace(request, is_retry=True))
        content, images = await self.builder.content(pending)
        request = self.builder.request(pending, route, text=text or content, images=images)
        return await deps.executor.start(pending.run_id, request)

    async def _close_message(self, pending: Pending, run: Run, result: ReplyResult) -> None:
        note = result.note
        if result.ended is None:
            note = str(run.failure)
            await self.tell(pending, f"I could not answer: {note}", "error")
        await self._state.show_end(pending, result.ended)
        await self.finish(pending, note)

    async def _close_joined(self, turn: ChatTurn) -> None:
        """Messages that joined the turn are answered with it; one that came too late has a turn of
        its own."""
        for pending, run in turn.joined:
            if run.turn_id == turn.run.turn_id and run.turn_id:
                await self.finish(pending, "joined a running turn")
            else:
                late = replace(pending, session_id=run.session_id, is_recovered=True)
                self.inbox.appendleft(late)

    async def _gather(self, pending: Pending) -> Pending:
        """The message with the parts that follow it at once."""
        group, clock = [pending], self.deps.app.context.world.clock
        while is_mergeable(pending):
            last = group[-1]
            if not self.inbox:
                rest = last.received_at + self._quiet_seconds(last) - clock.now()
                if rest <= 0:
                    break
                await clock.sleep(rest)
            if not self.inbox or not self._belongs(self.inbox[0], last):
                break
            group.append(self.inbox.popleft())
        if len(group) == 1:
            return pending
        whole = merged(group)
        keys = [each.event.key for each in group[1:]]
        platform, body = whole.event.address.platform, encode(whole.event).decode()
        await self.deps.ledger.merge(platform, whole.event.key, body, keys)
        return whole

    def _quiet_seconds(self, last: Pending) -> float:
        """How long a further part may take."""
        options, abilities = self.deps.options, self.deps.live(last.event.address.platform).manifest
        if not options.burst_seconds or last.was_queued:
            return 0.0
        is_full = len(last.event.text) >= abilities.abilities.max_chars * SPLIT_SHARE
        return SPLIT_SECONDS if is_full else options.burst_seconds

    def _belongs(self, pending: Pending, last: Pending) -> bool:
        if not is_mergeable(pending) or self._commands.is_command(pending):
            return False
        if pending.event.sender.id != last.event.sender.id:
            return False
        window = self._quiet_seconds(last)
        if pending.was_queued:
            window = max(window, self.deps.options.queue_merge_seconds)
        return bool(window) and pending.received_at - last.received_at <= window

    async def _add_while_busy(self, pending: Pending) -> None:
        """A message came while a turn ran; it may have ended since."""
        async with self._busy_lock:
            if self._commands.is_urgent(pending):
                await self._commands.run(self, pending)
            elif (
                self.turn is None
                or pending.is_internal
                or not pending.wants_answer
                or self._commands.is_command(pending)
            ):
                self._enqueue(replace(pending, was_queued=True))
            elif (asked := self.questions.question) and asked.requester == pending.event.sender.id:
                await self.questions.answer_text(asked, pending.event.text, pending.event.sender.id)
                await self.finish(pending, "answered a question")
            else:
                await self.add_with_mode(pending, self.deps.options.busy_mode)

    async def add_with_mode(self, pending: Pending, mode: BusyMode, text: str = "") -> None:
        """A message for a running turn, or for the time after it."""
        turn = self.turn
        if turn is None or turn.run.is_over or (pending.event.files and mode == "steer"):
            mode = "queue"
        await self._acknowledge(pending, mode)
        if mode == "steer" and turn is not None:
            await self._join(turn, pending, text)
            return
        if text:
            pending = replace(pending, event=replace(pending.event, text=text))
        self._enqueue(replace(pending, was_queued=True))
        await self._limit_inbox(pending)
        if mode == "interrupt" and turn is not None:
            await self.deps.executor.stop(turn.run)

    async def _join(self, turn: ChatTurn, pending: Pending, text: str) -> None:
        route = await self.deps.routes.open(
            self.key, pending.event, self.deps.app.context.world.clock.now()
        )
        content, _ = await self.builder.content(pending)
        request = self.builder.request(pending, route, text=text or content, mode="steer")
        # The running turn knows the chat.
        request = replace(request, session_id=turn.run.session_id, instructions="")
        run = await self.deps.executor.start(pending.run_id, request)
        turn.joined.append((pending, run))
        platform = pending.event.address.platform
        await self.deps.ledger.accept(platform, pending.event.key, run.session_id)
        if self.turn is not turn:
            turn.joined.remove((pending, run))
            self._enqueue(replace(pending, session_id=run.session_id, is_recovered=True))

    async def _acknowledge(self, pending: Pending, mode: BusyMode) -> None:
        now, options = self.deps.app.context.world.clock.monotonic(), self.deps.options
        if not options.busy_ack or now - self._last_ack < ACK_SECONDS:
            return
        self._last_ack = now
        text = ACKS[mode]
        if options.busy_ack_detail and self.turn is not None:
            text += f" (step {self.turn.run.steps}, {self.turn.progress.doing})"
        await self.deps.outbox.post_unrecorded(pending.event.address, Post(text=text))

    async def _limit_inbox(self, pending: Pending) -> None:
        """Drop the oldest message when too many wait."""
        while len(self.inbox) > self.deps.options.max_inbox:
            oldest = next((e for e in self.inbox if not self._commands.is_command(e)), None)
            if oldest is None:
                return
            self.inbox.remove(oldest)
            text = f"Too many messages wait, so I dropped “{one_line(oldest.event.text, 60)}”."
            await self.deps.outbox.post_unrecorded(pending.event.address, Post(text=text))
            await self.deps.ledger.finish(
                oldest.event.address.platform, oldest.event.key, "dropped: the inbox was full"
            )

    def _on_notice(self, session_id: str, received: MessageReceived) -> None:
        """A background process reported something; the turn about it is shown here."""
        if self._last_event is None or self.deps.options.process_notices == "off":
            return
        event = replace(
            self._last_event.event,
            key=f"{INTERNAL}{received.key}",
            text=received.message.text,
            message_id="",
            files=(),
            quote=None,
        )
        pending = replace(
            self._last_event, event=event, session_id=session_id, note="", was_queued=True
        )
        self.spawn(self.add_internal(pending))

    async def add_internal(self, pending: Pending) -> None:
        """Take an event that no person sent, once for each key."""
        platform, key = pending.event.address.platform, pending.event.key
        body = encode(pending.event).decode()
        if await self.deps.ledger.receive(platform, key, self.key, body):
            if pending.session_id:
                await self.deps.ledger.accept(platform, key, pending.session_id)
            self._enqueue(pending)

    async def _send_answer(self, run: Run, answer: Answer) -> None:
        await self.deps.executor.send(run, answer)
