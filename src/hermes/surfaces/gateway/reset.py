"""Starts a conversation anew: when its policy says so, or when a person does. The old session gets
a last turn to save what is worth remembering."""

from __future__ import annotations

import logging
import time

from hermes.core.commands import End
from hermes.core.errors import HermesError
from hermes.surfaces.gateway.chat_turn import MessageBuilder
from hermes.surfaces.gateway.options import ResetPolicy
from hermes.surfaces.gateway.pending import ChatDeps, Pending
from hermes.surfaces.gateway.platform import Post
from hermes.surfaces.gateway.routes import ChatRoute

log = logging.getLogger(__name__)

FLUSH_TEXT = (
    "This conversation is about to end and a new one begins. Save what is worth remembering with "
    "the memory tool, if anything. Nobody reads your answer; reply with [SILENT]."
)


def reset_reason(policy: ResetPolicy, used_at: float, now: float) -> str:
    """Why a conversation that was last used then starts anew; "" when it does not."""
    is_idle = now - used_at >= policy.idle_minutes * 60
    if policy.mode in ("idle", "both") and is_idle:
        return "idle"
    if policy.mode in ("daily", "both") and used_at < last_time_of_day(now, policy.at_hour):
        return "daily"
    return ""


def last_time_of_day(now: float, hour: int) -> float:
    """When it was last this hour, in the local time zone."""
    local = time.localtime(now)
    today = time.mktime((local.tm_year, local.tm_mon, local.tm_mday, hour, 0, 0, 0, 0, -1))
    if today <= now:
        return today
    return time.mktime((local.tm_year, local.tm_mon, local.tm_mday - 1, hour, 0, 0, 0, 0, -1))


class SessionReset:
    """Resets of one conversation."""

    def __init__(self, deps: ChatDeps, builder: MessageBuilder) -> None:
        self._deps = deps
        self._builder = builder

    async def apply_if_due(self, route: ChatRoute, pending: Pending) -> ChatRoute:
        """The route of the next message: a new session if the policy says so."""
        event, reset = pending.event, self._deps.options.reset
        platform = event.address.platform
        policy = reset.policy(platform, event.chat_type)
        now = self._deps.app.context.world.clock.now()
        reason = reset_reason(policy, route.info.used_before, now)
        if not reason or await self._has_young_process(route.session_id, policy):
            return route
        route = await self.renew(route, pending, reason)
        if policy.notify and platform not in reset.silent_platforms:
            text = f"This is a new conversation ({_explain(reason, policy)})."
            await self._deps.outbox.post_unrecorded(event.address, Post(text=text))
        return route

    async def renew(self, route: ChatRoute, pending: Pending, reason: str) -> ChatRoute:
        """Save memories, end the session and continue in a new one."""
        await self.flush(route, pending, reason)
        return await self._deps.routes.renew(route, self._deps.app.context.world.clock.now())

    async def flush(self, route: ChatRoute, pending: Pending, reason: str) -> None:
        """One last turn of the session, whose answer is not delivered."""
        app = self._deps.app
        try:
            info = await app.archive.info(route.session_id)
        except HermesError:
            return
        try:
            if info.message_count:
                request = self._builder.request(pending, route, text=FLUSH_TEXT, origin="hermes")
                run = await self._deps.executor.start(f"flush:{route.session_id}", request)
                await run.settled.wait()
            session = app.find_session(route.session_id)
            if session is not None:
                await session.send(End(reason=reason))
        except HermesError as error:
            log.warning("a session ended without a last turn", extra={"why": str(error)})

    async def _has_young_process(self, session_id: str, policy: ResetPolicy) -> bool:
        session = self._deps.app.find_session(session_id)
        if session is None:
            return False
        now, hours = self._deps.app.context.world.clock.now(), policy.process_hours
        return any(
            process.status == "running" and now - process.started_at < hours * 3600
            for process in await session.workspace.processes.list()
        )


def _explain(reason: str, policy: ResetPolicy) -> str:
    if reason == "daily":
        return f"a new one begins every day at {policy.at_hour}:00"
    return f"the last message was more than {policy.idle_minutes / 60:g} hours ago"
