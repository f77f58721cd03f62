"""The gateway process: connects the platforms, runs the background tasks, and stops or restarts on
signals without losing what is under way."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Literal, Protocol

from hermes.app.app import App
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.gateway_settings import PlatformOptions
from hermes.config.home import Home, replace_file
from hermes.core.errors import HermesError, NotFound
from hermes.homes.token_claims import hold_claim
from hermes.surfaces.gateway.connections import ConnectionDeps, PlatformConnection
from hermes.surfaces.gateway.conversations import Conversations
from hermes.surfaces.gateway.directory import REFRESH_SECONDS, ChannelDirectory
from hermes.surfaces.gateway.manifests import ConfiguredPlatform, build_adapter, platform_context
from hermes.surfaces.gateway.pairing import PairedRow, PairingStore
from hermes.surfaces.gateway.platform import Address, GatewayPorts, Inbound, Platform
from hermes.surfaces.gateway.state_file import HEARTBEAT_SECONDS, StateFile, read_state
from hermes.surfaces.gateway.supervision import Supervisor, Timers
from hermes.surfaces.gateway.targets import home_address
from hermes.version import __version__

log = logging.getLogger(__name__)

SWEEP_SECONDS = 3_600.0
RESET_SECONDS = 60.0
STOP_SECONDS = 10.0
# So many unclean starts within this time mean that continuing old work may be what kills us.
LOOP_STARTS = 3
LOOP_SECONDS = 300.0
RESTART_NOTE = "gateway_restart.json"
BACK_ONLINE = "I am back online."
PAIRED = "You are paired now. Send me a message."

Outcome = Literal["stop", "restart", "nothing_connected"]


class RestartNote(Value):
    """Who asked for the restart."""

    address: Address
    key: str


class BackgroundService(Protocol):
    """Something that runs beside the platforms, such as the scheduler."""

    name: str

    async def run(self) -> None: ...

    async def drain(self, seconds: float) -> None:
        """End what runs; called after `run` was cancelled."""
        ...


class Gateway:
    """One running gateway. `run` returns when it was asked to stop or to restart. `platforms` is by
    name and always has the current settings."""

    def __init__(
        self,
        app: App,
        platforms: dict[str, ConfiguredPlatform],
        chat: Conversations,
        *,
        pairing: PairingStore,
        directory: ChannelDirectory,
        services: Sequence[BackgroundService] = (),
        ports: GatewayPorts | None = None,
        has_jobs: bool = False,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._app = app
        self._world = app.context.world
        self._home = app.context.home
        self._chat = chat
        self._platforms = platforms
        self._pairing = pairing
        self._directory = directory
        self._services = services
        self._ports = ports
        self._has_jobs = has_jobs
        self._tell = tell
        self._outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        # New messages wait until the old ones are in their chats.
        self._recovered = asyncio.Event()
        self.state = StateFile(self._home, self._world.clock)
        self._supervisor = Supervisor(self._world.clock, self.state.set_task)
        self._timers = Timers(self._world.clock, self.state.set_task)
        self._adapters: dict[str, Platform] = {}
        self._paired: frozenset[PairedRow] = frozenset()
        before = read_state(self._home)
        self._starts = () if before is None else before.unclean_starts
        if before is not None and before.gateway_state not in ("stopped", "startup_failed"):
            self._starts = (*self._starts, self._world.clock.now())[-LOOP_STARTS:]
        self._begin()
        deps = ConnectionDeps(
            clock=self._world.clock,
            state=self.state,
            connect_seconds=app.context.settings.gateway.platform_connect_timeout,
            attach=self._attach,
            claim=self._claim,
            deliver=self._deliver,
            on_connected=chat.service.set_account,
            report_fatal=self._report_fatal,
            tell=self._tell_error,
        )
        self.connections = {
            name: PlatformConnection(each, deps) for name, each in platforms.items()
        }

    def _begin(self) -> None:
        self.state.update(
            gateway_state="starting",
            pid=os.getpid(),
            version=__version__,
            profile=self._home.profile,
            started_at=self._world.clock.now(),
            unclean_starts=self._starts,
        )

    async def run(self, on_ready: Callable[[], None]) -> Outcome:
        """Run until asked to stop. "nothing_connected" when no platform can ever connect and
        nothing else is there to do."""
        try:
            outcome = await self._start()
            if outcome is None:
                self.state.update(gateway_state="running")
                on_ready()
                outcome = await self._outcome
        except Exception as error:
            self.state.update(gateway_state="startup_failed", exit_reason=str(error))
            raise
        finally:
            await self._stop()
        failed = outcome == "nothing_connected"
        self.state.update(
            gateway_state="startup_failed" if failed else "stopped", exit_reason=outcome, running=0
        )
        return outcome

    def stop(self) -> None:
        self._end("stop")

    def restart(self, notify: Address | None = None) -> None:
        """Stop, and ask to be started again. The chat that asked hears when that is done."""
        if notify is not None:
            note = RestartNote(address=notify, key=self._world.new_id("restart"))
            replace_file(self._home, self._home.root / RESTART_NOTE, encode(note))
        self._end("restart")

    def every(self, name: str, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Run something regularly until the gateway stops."""
        self._timers.every(name, seconds, work)

    @property
    def is_stopping(self) -> bool:
        return self._outcome.done()

    def platform(self, name: str) -> PlatformConnection:
        """The connection of a platform, to pause and resume it."""
        if name not in self.connections:
            raise NotFound(f"{name} is not running; running: {', '.join(self.connections)}.")
        return self.connections[name]

    def set_options(self, name: str, options: PlatformOptions) -> None:
        """Use other settings of a platform from now on."""
        connection = self.platform(name)
        changed = ConfiguredPlatform(connection.platform.manifest, options)
        connection.platform = self._platforms[name] = changed
        if name in self._adapters:
            self._chat.attach(changed, self._adapters[name])

    async def reload_pairing(self) -> None:
        """Greet people who were approved, and stop the turns of people who were revoked."""
        now = frozenset(self._pairing.approved())
        before, self._paired = self._paired, now
        for row in now - before:
            to = Address(platform=row.platform, chat_id=row.chat_id or row.user_id)
            key = f"paired:{row.platform}:{row.user_id}:{row.approved_at}"
            await self._chat.send(to, PAIRED, key=key)
        for row in before - now:
            await self._chat.interrupt(row)

    def _end(self, outcome: Outcome) -> None:
        if not self._outcome.done():
            self._outcome.set_result(outcome)

    async def _start(self) -> Outcome | None:
        for name, connection in self.connections.items():
            self._supervisor.start(f"platform {name}", connection.run)
        for connection in self.connections.values():
            await connection.attached.wait()
        await self._recover()
        self._paired = frozenset(self._pairing.approved())
        self._timers.every("heartbeat", HEARTBEAT_SECONDS, self._beat)
        self._timers.every("channel directory", REFRESH_SECONDS, self._directory.save)
        self._timers.every("upkeep", SWEEP_SECONDS, self._chat.sweep)
        self._timers.every("session resets", RESET_SECONDS, self._chat.reset_due)
        self._supervisor.start("timers", self._timers.run)
        for service in self._services:
            self._supervisor.start(service.name, service.run)
        settled = [asyncio.ensure_future(each.settled.wait()) for each in self.connections.values()]
        waits: list[asyncio.Future[object]] = [*settled, self._outcome]  # type: ignore[list-item]
        while settled and not self._outcome.done() and not all(each.done() for each in settled):
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            waits = [each for each in waits if not each.done()]
        for each in settled:
            each.cancel()
        states = [connection.state.state for connection in self.connections.values()]
        if states and not self._has_jobs and all(state == "fatal" for state in states):
            return "nothing_connected"
        await self._tell_back_online()
        return None

    async def _recover(self) -> None:
        now = self._world.clock.now()
        recent = [each for each in self._starts if 0 <= now - each < LOOP_SECONDS]
        if len(recent) < LOOP_STARTS:
            await self._chat.start()
        else:
            # Old work stays in the ledger for the next start.
            log.error("old work is not continued: the gateway died again and again")
            await self._chat.postpone()
            self.state.update(unclean_starts=())
        self._recovered.set()

    async def _stop(self) -> None:
        if self.state.state.gateway_state != "startup_failed":
            self.state.update(gateway_state="draining")
        began = time.monotonic()
        self._recovered.set()
        seconds = self._app.context.settings.gateway.restart_drain_timeout
        await self._chat.drain(seconds)
        await self._supervisor.close()
        for service in self._services:
            await service.drain(max(0.0, seconds - (time.monotonic() - began)))
        await self._directory.save()
        log.info("stopped", extra={"seconds": round(time.monotonic() - began, 1)})

    async def _beat(self) -> None:
        self.state.update(running=len(self._chat.running()))

    async def _deliver(self, event: Inbound) -> None:
        await self._recovered.wait()
        if await self._chat.receive(event):
            self._directory.note(event)

    def _attach(self, platform: ConfiguredPlatform) -> Platform:
        context = platform_context(self._app, platform, self._chat.menu(platform), self._ports)
        adapter = build_adapter(platform, context)
        self._adapters[platform.manifest.name] = adapter
        self._chat.attach(platform, adapter)
        return adapter

    def _claim(self, platform: ConfiguredPlatform, claims: ExitStack) -> None:
        if not (token := platform.credential):
            return
        name = platform.manifest.name
        remedy = f"give this profile a token of its own with `hermes gateway setup {name}`"
        context = self._app.context
        claims.enter_context(
            hold_claim(name, token, remedy=remedy, home=self._home, env=context.env)
        )

    def _tell_error(self, platform: str, error: str) -> None:
        # The end of the start shows the errors of the start.
        if self.state.state.gateway_state == "running":
            self._tell(f"error: {platform}: {error}")

    async def _report_fatal(self, platform: ConfiguredPlatform, error: str) -> None:
        """Tell the owner in the home channel of another platform."""
        text = f"{platform.manifest.title} is disconnected and stays so: {error}"
        key = f"fatal:{platform.manifest.name}:{self.state.state.started_at}"
        for other in self.connections.values():
            has_home = bool(other.platform.options.home_chat_id)
            if other.state.state == "connected" and has_home:
                await self._chat.send(home_address(other.platform.options), text, key=key)
                return

    async def _tell_back_online(self) -> None:
        note = read_restart_note(self._home)
        connection = self.connections.get(note.address.platform) if note else None
        if note is None or connection is None:
            return
        if connection.platform.options.gateway_restart_notification:
            try:
                await self._chat.send(note.address, BACK_ONLINE, key=note.key)
            except HermesError as error:
                log.warning("cannot report the restart", extra={"why": str(error)})
        remove_restart_note(self._home)


def read_restart_note(home: Home) -> RestartNote | None:
    try:
        return decode(RestartNote, (home.root / RESTART_NOTE).read_bytes())
    except (OSError, DecodeError):
        return None


def remove_restart_note(home: Home) -> None:
    (home.root / RESTART_NOTE).unlink(missing_ok=True)
