"""Runs the turns of a session, one at a time: takes a waiting message and runs the loop."""

from __future__ import annotations

import asyncio
import logging

from hermes.codec.values import replace
from hermes.core.concurrency import Stop
from hermes.core.errors import HermesError
from hermes.core.events import ReplyAdded, TurnStarted, Withdrawn
from hermes.core.gate import Gate, Questions, expire_question
from hermes.core.loop import run_turn
from hermes.core.messages import AssistantMessage, ToolCall, Usage
from hermes.core.metering import SessionMeter
from hermes.core.ports import Provider, wrap_provider
from hermes.core.recorder import Recorder
from hermes.core.session_deps import SessionDeps, ToolServices, TurnContext, TurnLimits

log = logging.getLogger(__name__)

END_SECONDS = 5


class TurnRunner:
    """Runs the turns of one session, one at a time."""

    def __init__(
        self,
        deps: SessionDeps,
        recorder: Recorder,
        gate: Gate,
        questions: Questions,
        meter: SessionMeter,
    ) -> None:
        self._deps = deps
        self._recorder = recorder
        self._gate = gate
        self._questions = questions
        self._meter = meter
        self._connection: tuple[Provider, TurnLimits] | None = None
        self.services = ToolServices(deps.services)
        self._hooks = deps.hooks(recorder)
        self.running: TurnContext | None = None
        self._stop: Stop | None = None
        # Held while a turn takes its message.
        self.take_lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self.is_held = False
        # Why turns stopped running without a TurnEnded, until the next one starts.
        self.failure: Exception | None = None

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def stop(self) -> Stop:
        """Stops the current turn. An idle session has none, to save memory."""
        if self._stop is None:
            self._stop = Stop()
        return self._stop

    @property
    def connection(self) -> tuple[Provider, TurnLimits]:
        """The provider of the current model, with its limits."""
        if self._connection is None:
            transcript = self._recorder.transcript
            self.connect(transcript.model, transcript.provider)
        assert self._connection is not None
        return self._connection

    def connect(self, model: str, provider: str) -> None:
        connected, limits = self._deps.connect(model, provider, self._meter)
        self._connection = wrap_provider(self._deps.middleware, connected), limits

    def disconnect(self) -> None:
        """Drop the connection; the next turn connects to its model again."""
        self._connection = None

    def start(self) -> None:
        """Run the waiting turns in the background, unless they run already or are held."""
        if not self.busy and not self.is_held:
            # An interrupt from now on is meant for the turn that starts.
            self._stop = None
            self.failure = None
            self._task = asyncio.ensure_future(self._run_waiting())

    def interrupt(self) -> None:
        if self.busy:
            self.stop.set()

    async def wait_until_settled(self) -> None:
        """Wait until no turn runs. If an error stopped the last turn without a TurnEnded, raise
        that error."""
        while self.busy:
            assert self._task is not None
            await asyncio.shield(self._task)
        if self.failure is not None:
            raise self.failure

    async def end(self, *, suspend: bool = False) -> None:
        """Stop the running turn and start no other. Return when it has stopped. With `suspend`, the
        turn stays open in the journal, as after a crash, and continues when the session is opened
        again."""
        self._closing = True
        if suspend and self._task is not None:
            self._task.cancel()
        else:
            self.interrupt()
        # The session must not be released while its turn can still write.
        while self._task is not None and not self._task.done():
            await asyncio.wait((self._task,), timeout=END_SECONDS)
            self._task.cancel()

    async def _run_waiting(self) -> None:
        """Run turns until no message waits."""
        transcript = self._recorder.transcript
        try:
            if transcript.turn_id:
                # The turn was open when its process ended.
                for asked in tuple(transcript.asked.values()):
                    self._recorder.note(expire_question(asked))
                self._recorder.begin_turn(transcript.turn_id)
                await self._run()
            while not self._closing and await self._take_next():
                await self._run()
        except HermesError as error:
            # Without the journal nothing may continue. Acknowledged messages are safe in it.
            log.error("session stopped", extra={"why": str(error)})
            self.failure = error
        except Exception as error:
            log.exception("session crashed")
            self.failure = error

    async def _take_next(self) -> bool:
        """Start the turn of the oldest waiting message. Return False if none waits."""
        async with self.take_lock:
            if self._deps.withdraws_late_steers:
                late = self._recorder.transcript.steers()
                await self._recorder.commit(*(Withdrawn(n=n) for n in late))
            n = self._recorder.transcript.oldest_waiting()
            if n is None:
                return False
            self._recorder.begin_turn(self._deps.world.new_id("turn"))
            # Committed with the reservation of its first model call. A turn that crashes before
            # has done nothing, and its message still waits.
            calls = self._recorder.transcript.waiting[n].calls
            self._recorder.note(TurnStarted(takes=(n,)))
            if calls:
                # The loop continues with calls that have no result yet.
                self._recorder.note(self._reply_with(calls))
            self._recorder.apply_pending()
        self._deps.world.kill_point("turn.started")
        await self._deps.world.pacer.wait()
        return True

    def _reply_with(self, calls: tuple[ToolCall, ...]) -> ReplyAdded:
        transcript = self._recorder.transcript
        return ReplyAdded(
            message=AssistantMessage(parts=calls),
            usage=Usage(),
            model=transcript.model,
            provider=transcript.provider,
        )

    async def _run(self) -> None:
        self.running = self._new_turn()
        try:
            await run_turn(self.running)
            window = self.running.window
            if self._connection is not None and window < self._connection[1].window:
                # The context window turned out to be smaller.
                provider, limits = self._connection
                self._connection = provider, replace(limits, window=window)
        finally:
            self.running = None
            self._stop = None

    def _new_turn(self) -> TurnContext:
        if self._hooks is None:
            self._hooks = self._deps.hooks(self._recorder)
            if self._hooks is not None:
                # Middlewares that serve hooks are left out while there are none.
                self.disconnect()
        return TurnContext(
            self._deps,
            self._recorder,
            self._gate,
            self._questions,
            self._meter,
            connection=self.connection,
            services=self.services,
            stop=self.stop,
            hooks=self._hooks,
        )
