"""Connects hooks to the sessions of a run; loads nothing if there are no hooks."""

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
# Limits the wait for pending hook calls when a session closes.
CLOSE_SECONDS = 60.0


class RunHooks:
    """The hooks of one run, from the settings and from plugins."""

    def __init__(
        self, run: RunContext, models: Models, find_session: Callable[[str], Session]
    ) -> None:
        self._run = run
        self._models = models
        self._find_session = find_session
        self._open: dict[str, _SessionFollower] = {}

    @cached_property
    def registry(self) -> Hooks:
        """The callbacks, initially the programs of the settings."""
        from hermes.hooks.admin import add_shell_hooks
        from hermes.hooks.registry import Hooks

        hooks = Hooks(timeout=self._run.settings.plugins.hook_timeout)
        add_shell_hooks(self._run, hooks)
        return hooks

    @property
    def any(self) -> bool:
        """Returns whether any callback is registered."""
        is_loaded = "registry" in self.__dict__
        return (is_loaded or bool(self._run.settings.hooks)) and self.registry.has()

    def of(self, workspace: Workspace, recorder: Recorder) -> SessionHooks | None:
        """See `SessionDeps.hooks`."""
        if recorder.session_id in self._open:
            return self._open[recorder.session_id].hooks
        if not self.any:
            return None
        follower = _SessionFollower(self._run, self._models, self.registry, workspace, recorder)
        self._open[recorder.session_id] = follower
        return follower.hooks

    def hooks_of(self, session_id: str) -> SessionHooks | None:
        """Returns the hooks of an open session, if it has any."""
        follower = self._open.get(session_id)
        return follower.hooks if follower else None

    def wrap(self, session_id: str, connect: Connect) -> Connect:
        """Wraps `connect` with the hooks around model requests."""

        def transcript() -> Transcript:
            return self._find_session(session_id).transcript

        def watch() -> RequestHooks | None:
            follower = self._open.get(session_id)
            return follower.requests if follower else None

        def connect_hooked(model: str, provider: str, meter: Meter) -> tuple[Provider, TurnLimits]:
            inner, limits = connect(model, provider, _HookedMeter(meter, watch))
            return _HookedProvider(inner, transcript, watch), limits

        return connect_hooked

    def output(self, session_id: str) -> TerminalOutput:
        from hermes.tools.terminal import TerminalOutput

        follower = self._open.get(session_id)
        return TerminalOutput(follower.output if follower else None)

    async def reset(self, old: str, new: Session, reason: str) -> None:
        """Fires `on_session_reset` when the user moves to a new session, not to an existing one."""
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
        """Waits for pending hook calls of a closed session."""
        if (follower := self._open.pop(session_id, None)) is not None:
            await asyncio.wait((follower.work,), timeout=CLOSE_SECONDS)
            follower.work.cancel()
            await asyncio.gather(follower.work, return_exceptions=True)

    async def close(self) -> None:
        """Cancels the followers of sessions that failed to open."""
        for follower in self._open.values():
            follower.work.cancel()
        await asyncio.gather(*(each.work for each in self._open.values()), return_exceptions=True)


class _SessionFollower:
    """The hooks of an open session, and the task that reports its events to them."""

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

        self._backend = run.settings.terminal.backend
        self.hooks = SessionHooks(registry, recorder, keep=workspace.scratch)
        self.requests = RequestHooks(
            self.hooks,
            clock=run.world.clock,
            where=lambda model, provider: _endpoint(models, model, provider),
            attempts=run.settings.agent.api_max_retries,
        )
        self.work = asyncio.ensure_future(self.hooks.follow())

    async def output(self, command: str, output: str, code: int) -> str | None:
        return await self.hooks.command_ran(command, output, code, self._backend)


class _HookedProvider:
    """A provider that calls request hooks."""

    def __init__(
        self,
        inner: Provider,
        transcript: Callable[[], Transcript],
        watch: Callable[[], RequestHooks | None],
    ) -> None:
        self._inner = inner
        self._transcript = transcript
        self._watch = watch
        self._context = HookContext()

    def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        shown = self._context.add_to(prompt, self._transcript())
        watch = self._watch()
        return self._inner.reply(shown) if watch is None else watch.reply(self._inner, shown)


class _HookedMeter:
    """A meter that calls request hooks."""

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


def _endpoint(models: Models, model: str, provider: str) -> tuple[str, str]:
    """Returns URL and wire format of a model; empty for an in-process model."""
    from hermes.core.errors import HermesError

    try:
        found = models.endpoint(model, provider)
    except HermesError:
        return "", ""
    return found.url, found.wire
