"""Joins hooks to sessions. Where nobody has any, nothing of theirs is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import cached_property
from typing import TYPE_CHECKING

from hermes.core.events import CallSettled, ModelCalled
from hermes.core.hooks import HookContext
from hermes.core.messages import Usage
from hermes.core.ports import Meter, Provider, Workspace
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.core.recorder import Recorder
from hermes.core.session import Session
from hermes.core.transcript import Transcript
from hermes.core.turn import Connect, TurnLimits

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.hooks.registry import Hooks
    from hermes.hooks.requests import RequestHooks
    from hermes.hooks.session import SessionHooks
    from hermes.models.models import Models
    from hermes.tools.terminal import TerminalOutput

RESET_REASONS = {"new": "new_session"}
# How long a closed session is waited for by hooks that are still to be told of it.
LEAVE_SECONDS = 60.0


class RunHooks:
    """The hooks of one run: those that the settings name, and those that plugins add."""

    def __init__(
        self, run: RunContext, models: Models, find_session: Callable[[str], Session]
    ) -> None:
        self._run = run
        self._models = models
        self._find_session = find_session
        self._open: dict[str, _SessionFollower] = {}

    @cached_property
    def registry(self) -> Hooks:
        """Where callbacks are added. Programs that the settings name are in it from the start."""
        from hermes.hooks.admin import add_shell_hooks
        from hermes.hooks.registry import Hooks

        hooks = Hooks(timeout=self._run.settings.plugins.hook_timeout)
        add_shell_hooks(self._run, hooks)
        return hooks

    @property
    def any(self) -> bool:
        """Whether anybody listens to anything."""
        is_made = "registry" in self.__dict__
        return (is_made or bool(self._run.settings.hooks)) and self.registry.has()

    def of(self, workspace: Workspace, recorder: Recorder) -> SessionHooks | None:
        """See `Parts.hooks`."""
        if recorder.session_id in self._open:
            return self._open[recorder.session_id].hooks
        if not self.any:
            return None
        followed = _SessionFollower(self._run, self._models, self.registry, workspace, recorder)
        self._open[recorder.session_id] = followed
        return followed.hooks

    def hooks_of(self, session_id: str) -> SessionHooks | None:
        """Of a session that is open here and has any."""
        followed = self._open.get(session_id)
        return followed.hooks if followed else None

    def wrap(self, session_id: str, connect: Connect) -> Connect:
        """The way to models, past hooks."""

        def transcript() -> Transcript:
            return self._find_session(session_id).transcript

        def watch() -> RequestHooks | None:
            followed = self._open.get(session_id)
            return followed.requests if followed else None

        def through(model: str, provider: str, meter: Meter) -> tuple[Provider, TurnLimits]:
            inner, limits = connect(model, provider, _HookedMeter(meter, watch))
            return _HookedProvider(inner, transcript, watch), limits

        return through

    def output(self, session_id: str) -> TerminalOutput:
        from hermes.tools.terminal import TerminalOutput

        followed = self._open.get(session_id)
        return TerminalOutput(followed.output if followed else None)

    async def reset(self, old: str, new: Session, reason: str) -> None:
        """A person went on from one session to another; who came back to one is not told of."""
        if self.any and not new.transcript.turn_starts:
            opened = new.transcript.opened
            await self.registry.fire(
                "on_session_reset",
                session_id=new.id,
                old_session_id=old,
                reason=RESET_REASONS.get(reason, reason),
                platform=opened.source if opened else "",
            )

    async def on_session_closed(self, session_id: str) -> None:
        """The session is closed; what happened in it last is told first."""
        if (followed := self._open.pop(session_id, None)) is not None:
            await asyncio.wait((followed.work,), timeout=LEAVE_SECONDS)
            followed.work.cancel()
            await asyncio.gather(followed.work, return_exceptions=True)

    async def close(self) -> None:
        """For sessions that were never quite open."""
        for followed in self._open.values():
            followed.work.cancel()
        await asyncio.gather(*(each.work for each in self._open.values()), return_exceptions=True)


class _SessionFollower:
    """The hooks of a session that is open, and who tells them what happens in it."""

    def __init__(
        self,
        run: RunContext,
        models: Models,
        registry: Hooks,
        workspace: Workspace,
        recorder: Recorder,
    ) -> None:
        from hermes.hooks.requests import RequestHooks
        from hermes.hooks.session import SessionHooks

        self._place = run.settings.terminal.backend
        self.hooks = SessionHooks(registry, recorder, keep=workspace.scratch)
        self.requests = RequestHooks(
            self.hooks,
            clock=run.world.clock,
            where=lambda model, provider: _where(models, model, provider),
            attempts=run.settings.agent.api_max_retries,
        )
        self.work = asyncio.ensure_future(self.hooks.follow())

    async def output(self, command: str, output: str, code: int) -> str | None:
        return await self.hooks.command_ran(command, output, code, self._place)


class _HookedProvider:
    """A way to a model with a place for hooks at it."""

    def __init__(
        self,
        inner: Provider,
        transcript: Callable[[], Transcript],
        watch: Callable[[], RequestHooks | None],
    ) -> None:
        self._inner = inner
        self._transcript = transcript
        self._watch = watch
        self._beside = HookContext()

    def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        shown = self._beside.add_to(prompt, self._transcript())
        watch = self._watch()
        return self._inner.reply(shown) if watch is None else watch.reply(self._inner, shown)


class _HookedMeter:
    """A meter with a place for hooks at it."""

    def __init__(self, inner: Meter, watch: Callable[[], RequestHooks | None]) -> None:
        self._inner = inner
        self._watch = watch

    async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
        granted = await self._inner.reserve(call, least)
        if (watch := self._watch()) is not None:
            await watch.on_request(call)
        return granted

    def settle(self, settled: CallSettled) -> None:
        if (watch := self._watch()) is not None:
            watch.on_settled(settled)
        self._inner.settle(settled)


def _where(models: Models, model: str, provider: str) -> tuple[str, str]:
    """The address and the wire format of a model; empty for one inside this process."""
    from hermes.core.errors import HermesError

    try:
        found = models.endpoint(model, provider)
    except HermesError:
        return "", ""
    return found.url, found.wire
