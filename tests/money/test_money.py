"""The bill never exceeds a cap, whatever breaks, and the accounts say what the bill says."""

from __future__ import annotations

import asyncio
import random
import signal
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

from hermes.core.commands import Say
from hermes.core.events import TurnEnded
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import fold
from hermes.testing.server import ScriptedServer
from tests.money.market import PRICES, Market, Model, check_session
from tests.money.worker import newest_end

TURNS = 30


def names(jobs: int, each: int) -> list[str]:
    return [f"job{job:02}-{part}" for job in range(jobs) for part in range(each)]


async def live_through(
    market: Market, groups: Sequence[Sequence[str]], *, kills: int, seed: int
) -> None:
    """Every group in a process of its own; some of these are killed and begun again."""
    chance = random.Random(seed)
    running: dict[int, Process] = {}
    for number, group in enumerate(groups):
        running[number] = await market.start(group, turns=TURNS)
    for _ in range(kills):
        await asyncio.sleep(chance.uniform(0.8, 2.0))
        number = chance.choice(sorted(running))
        with suppress(ProcessLookupError):
            running[number].send_signal(signal.SIGKILL)
        await running[number].communicate()
        running[number] = await market.start(groups[number], turns=TURNS)
    for process in running.values():
        _, err = await process.communicate()
        assert (process.returncode, err.decode()) == (0, "")


async def check_accounts(market: Market, every: Sequence[str], server: ScriptedServer) -> None:
    charges = market.charges()
    assert set(charges) <= set(every)
    async with market.app() as app:
        assumed_calls = 0
        for name in every:
            records = await app.journal.read(name)
            assumed_calls += check_session(records, charges.get(name, []))
        lines = await app.archive.spending()
    assert {line.principal for line in lines} == {"owner"}
    assert {line.cause for line in lines} <= {"chat", "retry", "continuation"}
    assert {line.job for line in lines} == {name.partition("-")[0] for name in every}
    assert sum(line.assumed_calls for line in lines) == assumed_calls
    settled = sum(line.usage.cost or 0.0 for line in lines)
    assumed = sum(line.assumed.cost or 0.0 for line in lines)
    assert settled <= server.bill.dollars + 1e-9 <= settled + assumed + 2e-9


async def run(root: Path, *, jobs: int, each: int, processes: int, kills: int, seed: int) -> None:
    model, every = Model(seed), names(jobs, each)
    async with ScriptedServer(model, prices=PRICES) as server:
        market = Market(root, server, model)
        groups = [every[at::processes] for at in range(processes)]
        await live_through(market, groups, kills=kills, seed=seed)
        market.check_caps()
        await check_accounts(market, every, server)
        assert server.violations == []
        await go_on_after_a_top_up(market, every)
        market.check_caps(day=Decimal(100), job=Decimal(100))
        await check_accounts(market, every, server)


async def go_on_after_a_top_up(market: Market, every: Sequence[str]) -> None:
    """Work that was paused goes on with all that was said and done before."""
    async with market.app() as app:
        paused = [name for name in every if await newest_end(app, name) == "paused"]
        assert paused
        market.set_caps(day=Decimal(100), job=Decimal(100))
        name = paused[0]
        before = fold(await app.journal.read(name)).messages
        session = await app.open(SessionRequest(source="test", attended=False, resume=name))
        await session.send(Say(text=f"{name} goes on at last"))
        await session.wait_until_idle()
        records = await app.journal.read(name)
    ends = [record.event.reason for record in records if isinstance(record.event, TurnEnded)]
    assert ends[-1] != "paused"
    assert fold(records).messages[: len(before)] == before


async def test_no_cap_is_exceeded_and_the_accounts_are_right(tmp_path: Path) -> None:
    await run(tmp_path, jobs=4, each=1, processes=2, kills=1, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_twenty_sessions_in_three_processes_that_are_killed(
    tmp_path: Path, seed: int
) -> None:
    await run(tmp_path, jobs=20, each=1, processes=3, kills=6, seed=seed)


async def run_tree(root: Path, *, size: int, processes: int, kills: int, seed: int) -> None:
    """Child sessions of one turn, in several processes, until the cap of the turn stops them."""
    model, every = Model(seed), [f"tree00-{number}" for number in range(size)]
    cap = Decimal("0.50")
    async with ScriptedServer(model, prices=PRICES) as server:
        market = Market(root, server, model)
        market.set_caps(day=Decimal(100), job=Decimal(100), task=cap)
        groups = [every[at::processes] for at in range(processes)]
        await live_through(market, groups, kills=kills, seed=seed)
        bill = Decimal(server.bill.micros) / 1_000_000
        assert cap / 2 < bill <= cap
        await check_accounts(market, every, server)
        async with market.app() as app:
            assert "paused" in {await newest_end(app, name) for name in every}


async def test_child_sessions_of_a_turn_share_its_cap(tmp_path: Path) -> None:
    await run_tree(tmp_path, size=4, processes=2, kills=1, seed=1)


@pytest.mark.slow
async def test_forty_child_sessions_in_three_processes_that_are_killed(tmp_path: Path) -> None:
    await run_tree(tmp_path, size=40, processes=3, kills=6, seed=2)


@pytest.mark.slow
async def test_the_sessions_of_a_job_share_its_cap(tmp_path: Path) -> None:
    await run(tmp_path, jobs=5, each=4, processes=3, kills=3, seed=9)
