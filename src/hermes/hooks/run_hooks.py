"""Connects hooks to the sessions of a run; loads nothing if there are no hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from hermes.core.hooks import HookTextProvider
from hermes.core.ports import Meter, Middleware, Provider, Workspace
from hermes.core.recorder import Recorder
from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.hooks.registry import Hooks
    from hermes.hooks.session import SessionHooks
    from hermes.models.models import Models
    from hermes.tools.terminal import TerminalOutput

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
        """Return the hooks of a session; see `SessionDeps.hooks`."""
        if recorder.session_id in self._open:
            return self._open[recorder.session_id].hooks
        if not self.any:
            return None
        follower = _SessionFollower(self._run, self._models, self.registry, workspace, recorder)
        self._open[recorder.session_id] = follower
        return follower.hooks

    def hooks_of(self, session_id: str) -> SessionHooks | None:
        """Return the hooks of an open session, if it has any."""
        follower = self._open.get(session_id)
        return follower.hooks if follower else None

    def middleware(self, session_id: str, *, has_text: bool) -> Middleware:
        """Return the middleware that fires hooks around model requests, if the session has any.
        `has_text` means that text of hooks may be in the journal, although there are no hooks
        now."""

        def wrap(inner: Provider) -> Provider:
            follower = self._open.get(session_id)
            if follower is not None:
                inner = follower.requests.wrap_provider(inner)
            elif not has_text:
                return inner
            return HookTextProvider(inner, lambda: self._find_session(session_id).transcript)

        return wrap

    def wrap_meter(self, session_id: str, meter: Meter) -> Meter:
        """Fire hooks when a request is booked or settled, if the session has any."""
        follower = self._open.get(session_id)
        return follower.requests.wrap_meter(meter) if follower else meter

    def output(self, session_id: str) -> TerminalOutput:
        from hermes.tools.terminal import TerminalOutput

        follower = self._open.get(session_id)
        return TerminalOutput(follower.output if follower else None)

    async def reset(self, old: str, new: Session, reason: str) -> None:
        """Fire `on_session_reset` when the user moves to a new session, not to an existing one."""
        if self.any and not new.transcript.turn_starts:
            from hermes.hooks.session import REASONS

            opened = new.transcript.opened
            await self.registry.fire(
                "on_session_reset",
                session_id=new.id,
                old_session_id=old,
                reason=REASONS.get(reason, reason),
                platform=opened.source if opened else "",
            )

    async def on_session_closed(self, session_id: str) -> None:
        """Wait for pending hook calls of a closed session."""
        if (follower := self._open.pop(session_id, None)) is not None:
            await asyncio.wait((follower.work,), timeout=CLOSE_SECONDS)
            follower.work.cancel()
            await asyncio.gather(follower.work, return_exceptions=True)

    async def close(self) -> None:
        """Cancel the followers of sessions that failed to open."""
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
            find_endpoint=models.find_endpoint,
            attempts=run.settings.agent.api_max_retries,
        )
        self.work = asyncio.ensure_future(self.hooks.follow())

    async def output(self, command: str, output: str, code: int) -> str | None:
        return await self.hooks.command_ran(command, output, code, self._backend)
