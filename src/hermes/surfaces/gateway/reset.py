"""Starts a conversation anew: when its policy says so, or when a person does. The old session gets
a last turn to save what is worth remembering."""

from __future__ import annotations

import logging
import time

from hermes.core.commands import End
from hermes.core.errors import HermesError
from hermes.hosting.follower import RunFollower
from hermes.hosting.run import Run
from hermes.surfaces.gateway.chat_turn import MessageBuilder
from hermes.surfaces.gateway.options import ResetOptions, ResetPolicy
from hermes.surfaces.gateway.pending import ChatDeps, Pending
from hermes.surfaces.gateway.platform import Post
from hermes.surfaces.gateway.routes import ChatRoute

log = logging.getLogger(__name__)

FLUSH_TEXT = (
    "This conversation is about to end and a new one begins. Save what is worth remembering with "
    "the memory tool, if anything. Nobody reads your answer; reply with [SILENT]."
)
MAX_FLUSH_STEPS = 10
DAY_SECONDS = 86_400.0


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


def next_reset(policy: ResetPolicy, used_at: float, now: float) -> float:
    """The earliest time at which a conversation that is not used again starts anew."""
    times = [float("inf")]
    if policy.mode in ("idle", "both"):
        times.append(used_at + policy.idle_minutes * 60)
    if policy.mode in ("daily", "both"):
        times.append(last_time_of_day(now + DAY_SECONDS, policy.at_hour))
    return min(times)


def has_resets(options: ResetOptions) -> bool:
    """Whether any conversation starts anew by itself."""
    policies = (options.default, *options.by_type.values(), *options.by_platform.values())
    return any(policy.mode != "none" for policy in policies)


class SessionReset:
    """Resets of one conversation."""

    def __init__(self, deps: ChatDeps, builder: MessageBuilder) -> None:
        self._deps = deps
        self._builder = builder

    async def apply_if_due(self, route: ChatRoute, pending: Pending) -> ChatRoute:
        """The route of the next message: a new session if the policy says so. The person hears of a
        session that began before the message too."""
        used_at, reason = route.info.used_before, route.info.reset_reason
        if not reason:
            route = await self.renew_if_due(route, pending, used_at)
            reason = route.info.reset_reason
        if not reason:
            return route
        await self._tell(pending, reason)
        return await self._deps.routes.update(route, reset_reason="")

    async def renew_if_due(self, route: ChatRoute, pending: Pending, used_at: float) -> ChatRoute:
        """A new session if the policy says so, with the reason in the route."""
        event, now = pending.event, self._deps.app.context.world.clock.now()
        policy = self._deps.options.reset.policy(event.address.platform, event.chat_type)
        reason = reset_reason(policy, used_at, now)
        if not reason or await self._has_young_process(route.session_id, policy):
            return route
        await self.flush(route, pending, reason)
        new = await self._deps.routes.renew(route, now, reason=reason)
        await self.announce(route, new, reason)
        return new

    async def announce(self, old: ChatRoute, new: ChatRoute, reason: str) -> None:
        """Tell hooks that a session has replaced another."""
        hooks = self._deps.app.hooks
        if hooks.any:
            await hooks.registry.fire(
                "on_session_reset",
                session_id=new.session_id,
                old_session_id=old.session_id,
                reason=reason,
                platform=old.info.address.platform,
            )

    async def _tell(self, pending: Pending, reason: str) -> None:
        event, reset = pending.event, self._deps.options.reset
        policy = reset.policy(event.address.platform, event.chat_type)
        if policy.notify and event.address.platform not in reset.silent_platforms:
            text = f"This is a new conversation ({_explain(reason, policy)})."
            await self._deps.outbox.post_unrecorded(event.address, Post(text=text))

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
                await self._follow(run)
            session = app.find_session(route.session_id)
            if session is not None:
                await session.send(End(reason=reason))
        except HermesError as error:
            log.warning("a session ended without a last turn", extra={"why": str(error)})

    async def _follow(self, run: Run) -> None:
        """Wait for the end of the turn, which has few steps."""
        follower = RunFollower(run)
        try:
            while not follower.is_done:
                for _ in follower.read():
                    pass
                if run.steps > MAX_FLUSH_STEPS and not run.is_stopping:
                    await self._deps.executor.stop(run)
                if not follower.is_done:
                    await follower.wait()
        finally:
            follower.close()
        await run.settled.wait()

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
