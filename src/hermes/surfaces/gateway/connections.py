"""Keeps one platform connected: connects with a time limit, reconnects with growing pauses, and
gives up only when trying again cannot help."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import NamedTuple

from hermes.core.errors import ConfigError, HermesError, LoginRejected, PlatformError
from hermes.core.world import Clock
from hermes.surfaces.gateway.manifests import ConfiguredPlatform
from hermes.surfaces.gateway.platform import Deliver, Platform
from hermes.surfaces.gateway.state_file import PlatformPhase, PlatformState, StateFile

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 300.0
# After a connection that worked, the first attempt follows soon.
RECONNECT_SECONDS = 1.0
DISCONNECT_SECONDS = 5.0


def pause_seconds(failures: int) -> float:
    """The pause after this many failures in a row."""
    # The exponent is limited because a platform may stay away for weeks.
    return min(FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 8), LONGEST_PAUSE_SECONDS)


class ConnectionDeps(NamedTuple):
    """What a connection needs from the gateway."""

    clock: Clock
    state: StateFile
    # 0 for no limit.
    connect_seconds: float
    # Builds an adapter and makes it usable for posts.
    attach: Callable[[ConfiguredPlatform], Platform]
    # Claims the credential for this home; ConfigError while another home uses it.
    claim: Callable[[ConfiguredPlatform, ExitStack], None]
    deliver: Deliver
    # Gets the platform and the name of our account there.
    on_connected: Callable[[str, str], None]
    # Tells the owner on another platform that this one is gone.
    report_fatal: Callable[[ConfiguredPlatform, str], Awaitable[None]]
    # Gets the platform and an error that a person should know.
    tell: Callable[[str, str], None]


class PlatformConnection:
    """The connection of one platform, from start to stop. `attached` is set when posts can be sent
    by it, `settled` when the first attempt has succeeded or failed."""

    def __init__(self, platform: ConfiguredPlatform, deps: ConnectionDeps) -> None:
        self.platform = platform
        self.name = platform.manifest.name
        self.settled = asyncio.Event()
        self.attached = asyncio.Event()
        self._deps = deps
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._connecting: asyncio.Task[str] | None = None
        self._limit: asyncio.Timeout
        self._failures = 0
        # The last error that was told, and when.
        self._told = ("", 0.0)
        self._set("connecting")

    @property
    def state(self) -> PlatformState:
        return self._deps.state.state.platforms[self.name]

    def connected(self, account: str) -> None:
        """The adapter reports that it works."""
        self._failures = 0
        self._limit.reschedule(None)
        self._set("connected", account=account)
        self._deps.on_connected(self.name, account)
        self.settled.set()
        log.info("connected", extra={"platform": self.name, "account": account})

    def pause(self) -> None:
        """Disconnect until `resume`."""
        self._wanted.clear()
        if self._connecting is not None:
            self._connecting.cancel()

    def resume(self) -> None:
        """Connect again, also after an error that is not retried."""
        self._wanted.set()

    async def run(self) -> None:
        """Stay connected until cancelled."""
        with ExitStack() as claims:
            while True:
                error = await self._claim_and_connect(claims)
                self.attached.set()
                self.settled.set()
                if not self._wanted.is_set():
                    self._set("paused")
                    await self._wanted.wait()
                elif error:
                    await self._deps.report_fatal(self.platform, error)
                    self._wanted.clear()
                    await self._wanted.wait()
                self._set("connecting")

    async def _claim_and_connect(self, claims: ExitStack) -> str:
        """Connect until it is hopeless or not wanted any more; returns the error."""
        try:
            claims.close()
            self._deps.claim(self.platform, claims)
        except ConfigError as error:
            self._set("fatal", code="credential_in_use", message=str(error))
            return str(error)
        self._connecting = asyncio.create_task(self._stay_connected())
        try:
            return await asyncio.shield(self._connecting)
        except asyncio.CancelledError:
            await self._end(self._connecting)
            own = asyncio.current_task()
            if own is not None and own.cancelling():
                raise
            return ""
        finally:
            self._connecting = None

    async def _end(self, task: asyncio.Task[str]) -> None:
        task.cancel()
        _, late = await asyncio.wait((task,), timeout=DISCONNECT_SECONDS)
        if late:
            log.warning("a platform does not disconnect", extra={"platform": self.name})

    async def _stay_connected(self) -> str:
        while True:
            code, message, retry_after = await self._connect_once()
            if not retry_after:
                self._set("fatal", code=code, message=message)
                log.error("platform given up", extra={"platform": self.name, "why": message})
                self._tell(message)
                return message
            retry_at = self._deps.clock.now() + retry_after
            self._set("retrying", code=code, message=message, next_retry_at=retry_at)
            log.warning("platform lost", extra={"platform": self.name, "why": message})
            # A connection that breaks and is renewed at once concerns nobody.
            if code == "failed" or self._failures:
                self._tell(message)
            self.attached.set()
            self.settled.set()
            await self._deps.clock.sleep(retry_after)

    async def _connect_once(self) -> tuple[str, str, float]:
        """One connection until it ends: error code, message, and the pause before the next one; no
        pause when there is none."""
        was_retrying = self._failures
        try:
            async with asyncio.timeout(self._deps.connect_seconds or None) as self._limit:
                adapter = self._deps.attach(self.platform)
                self.attached.set()
                await adapter.run(self._deps.deliver, self)
            code, message, asked = "disconnected", "The platform ended the connection.", 0.0
        except LoginRejected as error:
            return "login_rejected", str(error), 0.0
        except PlatformError as error:
            code, message, asked = "unreachable", str(error), error.retry_after or 0.0
        except HermesError as error:
            code, message, asked = "failed", str(error), 0.0
        except TimeoutError:
            seconds = self._deps.connect_seconds
            code, message, asked = "timeout", f"No connection within {seconds:g} s.", 0.0
        except Exception as error:
            log.exception("platform crashed", extra={"platform": self.name})
            code, message, asked = "crashed", f"{type(error).__name__}: {error}", 0.0
        worked = self.state.state == "connected"
        self._failures = 0 if worked else was_retrying + 1
        pause = RECONNECT_SECONDS if worked else pause_seconds(self._failures)
        return code, message, max(pause, asked)

    def _tell(self, message: str) -> None:
        """Tell an error, but not again and again."""
        told, at = self._told
        now = self._deps.clock.monotonic()
        if message != told or now - at >= LONGEST_PAUSE_SECONDS:
            self._told = (message, now)
            self._deps.tell(self.name, message)

    def _set(
        self,
        state: PlatformPhase,
        *,
        account: str = "",
        code: str = "",
        message: str = "",
        next_retry_at: float = 0.0,
    ) -> None:
        self._deps.state.set_platform(
            self.name,
            PlatformState(
                state=state,
                since=self._deps.clock.now(),
                account=account,
                error_code=code,
                error_message=message,
                next_retry_at=next_retry_at,
            ),
        )
