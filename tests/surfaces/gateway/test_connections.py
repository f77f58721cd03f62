"""One platform stays connected: pauses, limits, errors that end it, and nothing left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from hermes.config.gateway_settings import PlatformOptions
from hermes.config.home import Home
from hermes.core.errors import ConfigError, LoginRejected, PlatformUnreachable
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.surfaces.gateway.connections import (
    ConnectionDeps,
    PlatformConnection,
    pause_seconds,
)
from hermes.surfaces.gateway.manifests import ConfiguredPlatform
from hermes.surfaces.gateway.platform import Deliver, Inbound, PlatformContext, PlatformStatus
from hermes.surfaces.gateway.state_file import StateFile, read_state
from hermes.testing.clock import VirtualClock
from tests.surfaces.gateway.wire import WIRE, WireAdapter

Attempt = Callable[[PlatformStatus], Awaitable[None]]


class Scripted:
    """An adapter whose connections go as the script says; the last one stays."""

    def __init__(self, script: list[Attempt]) -> None:
        self.script = script
        self.starts: list[float] = []
        self.ended = 0
        self.clock: VirtualClock

    async def run(self, deliver: Deliver, status: PlatformStatus) -> None:
        self.starts.append(self.clock.monotonic())
        try:
            if self.script:
                await self.script.pop(0)(status)
            else:
                status.connected("@bot")
                await asyncio.Event().wait()
        finally:
            self.ended += 1


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class HastyClock(VirtualClock):
    """Pauses that take no time."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Fixture:
    def __init__(
        self,
        home: Home,
        script: list[Attempt],
        claim_error: str = "",
        attach: Callable[[], object] | None = None,
        clock: VirtualClock | None = None,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.home = home
        self.adapter = Scripted(script)
        self.adapter.clock = self.clock
        build = attach or (lambda: self.adapter)
        self.fatal: list[str] = []
        self.accounts: list[str] = []
        self.claim_error = claim_error

        def claim(platform: ConfiguredPlatform, claims: ExitStack) -> None:
            if self.claim_error:
                raise ConfigError(self.claim_error)

        async def report(platform: ConfiguredPlatform, error: str) -> None:
            self.fatal.append(error)

        async def deliver(event: Inbound) -> None:
            raise AssertionError("no events here")

        deps = ConnectionDeps(
            clock=self.clock,
            state=StateFile(home, self.clock),
            connect_seconds=30.0,
            attach=lambda platform: build(),  # type: ignore[arg-type, return-value]
            claim=claim,
            deliver=deliver,
            on_connected=lambda name, account: self.accounts.append(account),
            report_fatal=report,
            tell=lambda platform, error: None,
        )
        self.connection = PlatformConnection(
            ConfiguredPlatform(WIRE, PlatformOptions(name="wire")), deps
        )
        self.task = asyncio.ensure_future(self.connection.run())

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def stored(self) -> str:
        state = read_state(self.home)
        assert state is not None
        return state.platforms["wire"].state


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


async def unreachable(status: PlatformStatus) -> None:
    raise PlatformUnreachable("No route.")


async def rejected(status: PlatformStatus) -> None:
    raise LoginRejected("The token is wrong.")


async def crashing(status: PlatformStatus) -> None:
    raise ZeroDivisionError


async def works_then_drops(status: PlatformStatus) -> None:
    status.connected("@bot")
    raise PlatformUnreachable("Hung up.")


async def asks_to_wait(status: PlatformStatus) -> None:
    raise PlatformUnreachable("Slow down.", retry_after=77)


def test_pauses_grow_to_five_minutes() -> None:
    assert [pause_seconds(n) for n in (1, 2, 3, 4, 5, 1_000)] == [30, 60, 120, 240, 300, 300]


async def test_a_platform_that_cannot_be_reached_is_tried_for_ever(home: Home) -> None:
    fixture = Fixture(home, [unreachable, crashing, *[unreachable] * 48])
    await fixture.clock.advance(120)
    assert fixture.adapter.starts == [0, 30, 90]
    assert fixture.stored() == "retrying"
    await fixture.clock.advance(300 * 60)
    assert len(fixture.adapter.starts) == 51
    assert fixture.stored() == "connected"
    assert (fixture.accounts, fixture.fatal) == (["@bot"], [])
    await fixture.close()
    assert fixture.adapter.ended == 51


async def test_fifty_failed_connections_leave_no_descriptor_open(home: Home) -> None:
    hung_up = asyncio.Event()
    times: list[None] = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        times.append(None)
        writer.close()
        if len(times) == 51:
            hung_up.set()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    settings = {"WIRE_TOKEN": "x", "WIRE_PORT": str(server.sockets[0].getsockname()[1])}
    context = PlatformContext(
        settings=settings,
        extra={},
        folder=home.root,
        media=home.root,
        max_media_bytes=1,
        http=HttpClient(),
        world=World(),
    )
    fixture = Fixture(home, [], attach=lambda: WireAdapter(context), clock=HastyClock())
    await asyncio.sleep(0)
    before = open_descriptors()
    await asyncio.wait_for(hung_up.wait(), 30)
    await fixture.close()
    # The connection that is under way may have one at either end.
    assert open_descriptors() <= before + 2
    server.close()


async def test_a_wrong_token_ends_a_platform_and_is_reported(home: Home) -> None:
    fixture = Fixture(home, [rejected])
    await fixture.clock.advance(3_600)
    assert fixture.adapter.starts == [0]
    assert fixture.fatal == ["The token is wrong."]
    assert fixture.stored() == "fatal"
    assert fixture.connection.settled.is_set()
    fixture.connection.resume()
    await fixture.clock.advance(1)
    assert fixture.stored() == "connected"
    await fixture.close()


async def test_a_dropped_connection_is_renewed_soon_and_resets_the_pauses(home: Home) -> None:
    fixture = Fixture(home, [unreachable, unreachable, works_then_drops, unreachable])
    await fixture.clock.advance(200)
    assert fixture.adapter.starts == [0, 30, 90, 91, 121]
    await fixture.close()


async def test_the_platform_may_ask_for_a_longer_pause(home: Home) -> None:
    fixture = Fixture(home, [asks_to_wait])
    await fixture.clock.advance(100)
    assert fixture.adapter.starts == [0, 77]
    await fixture.close()


async def test_a_token_that_another_home_uses_ends_a_platform(home: Home) -> None:
    fixture = Fixture(home, [], claim_error="/other listens with the same token; stop it.")
    await fixture.clock.advance(10)
    assert fixture.adapter.starts == []
    assert fixture.stored() == "fatal"
    await fixture.close()


async def test_a_paused_platform_disconnects_until_it_is_resumed(home: Home) -> None:
    fixture = Fixture(home, [])
    await fixture.clock.advance(1)
    fixture.connection.pause()
    await fixture.clock.advance(1)
    assert (fixture.stored(), fixture.adapter.ended) == ("paused", 1)
    await fixture.clock.advance(1_000)
    assert len(fixture.adapter.starts) == 1
    fixture.connection.resume()
    await fixture.clock.advance(1)
    assert fixture.stored() == "connected"
    await fixture.close()


async def test_a_platform_that_never_answers_is_given_up_after_the_limit(home: Home) -> None:
    async def hangs(status: PlatformStatus) -> None:
        await asyncio.Event().wait()

    fixture = Fixture(home, [hangs])
    fixture.connection._deps = fixture.connection._deps._replace(connect_seconds=0.02)
    await asyncio.wait_for(fixture.connection.settled.wait(), 10)
    assert fixture.stored() == "retrying"
    assert "No connection within" in fixture.connection.state.error_message
    await fixture.close()
    assert fixture.adapter.ended == 1


async def test_stopping_while_pausing_stops(home: Home) -> None:
    fixture = Fixture(home, [])
    await fixture.clock.advance(1)
    fixture.connection.pause()
    fixture.task.cancel()
    done = await asyncio.wait_for(asyncio.gather(fixture.task, return_exceptions=True), 5)
    assert isinstance(done[0], asyncio.CancelledError)
