"""Runs beyond the limit wait their turn, in an order that is fair to clients."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.core.errors import AdmissionRefused
from hermes.core.events import SessionOpened
from hermes.hosting.admission import Admission, AdmissionTicket
from hermes.testing.request import Request
from hermes.testing.steps import Rule, Step, says
from tests.durability.stage import KEY
from tests.hosting.hosts import echo, host, running, settled, until, until_no_run_is_stored


async def test_all_of_256_clients_are_served(tmp_path: Path) -> None:
    admission = Admission(max_active=8, max_queued=256)
    most = 0

    def rule(request: Request) -> Step:
        nonlocal most
        most = max(most, admission.active)
        return echo(request)

    async with host(tmp_path, rule, admission=admission) as own:
        runs = await asyncio.gather(
            *(own.ask(str(n), client=f"client {n % 16}") for n in range(256))
        )
        assert [run.text for run in runs] == [f"You said: {n}" for n in range(256)]
    assert most <= 8
    assert (admission.active, admission.queued) == (0, 0)


async def start_all(admission: Admission, *clients: str) -> list[str]:
    """The order in which tickets of these clients become active, one at a time."""
    order: list[str] = []

    async def one(ticket: AdmissionTicket) -> None:
        await ticket.wait()
        order.append(ticket.client)
        await asyncio.sleep(0)
        ticket.release()

    await asyncio.gather(*(one(admission.enter(each)) for each in clients))
    return order


async def test_a_principal_with_many_runs_does_not_delay_another() -> None:
    admission = Admission(max_active=1, max_queued=10)
    assert await start_all(admission, *"aaaaabb") == ["a", "a", "b", "a", "b", "a", "a"]


async def test_runs_of_one_principal_start_in_order(tmp_path: Path) -> None:
    async with host(tmp_path, admission=Admission(max_active=1, max_queued=10)) as own:
        order: list[str] = []

        async def one(text: str, client: str) -> None:
            order.append((await own.ask(text, client=client)).text[-2:])

        names = ["a1", "a2", "a3", "a4", "b1"]
        await asyncio.gather(*(one(name, name[0]) for name in names))
        assert order == ["a1", "a2", "b1", "a3", "a4"]


async def test_more_than_the_queue_holds_is_refused_with_a_delay(tmp_path: Path) -> None:
    release = asyncio.Event()
    async with host(
        tmp_path, held_by(release), admission=Admission(max_active=1, max_queued=1)
    ) as own:
        first = await own.start("one")
        second = asyncio.ensure_future(own.ask("two"))
        await until(lambda: own.admission.queued == 1)
        with pytest.raises(AdmissionRefused) as refused:
            await own.start("three", "claimed")
        assert (refused.value.retry_after, refused.value.is_draining) == (5.0, False)
        assert own.run_executor.claim("claimed")
        release.set()
        assert (await settled(first)).status == (await second).status == "completed"


async def test_a_run_that_waits_too_long_is_refused(tmp_path: Path) -> None:
    release = asyncio.Event()
    admission = Admission(max_active=1, max_queued=5, wait_seconds=0.05)
    async with host(tmp_path, held_by(release), admission=admission) as own:
        first = await own.start("one")
        with pytest.raises(AdmissionRefused, match=r"within 0\.05 seconds"):
            await own.start("two", "two")
        assert [info.id for info in await own.app.archive.recent()] == [first.session_id]
        release.set()
        await settled(first)
        assert (await own.ask("three")).status == "completed"


async def test_a_queued_run_is_reported_as_queued(tmp_path: Path) -> None:
    release = asyncio.Event()
    admission = Admission(max_active=1, max_queued=5, wait_seconds=0.05)
    async with host(tmp_path, held_by(release), admission=admission) as own:
        first = await own.start("one", persistent=True)
        second = await own.start("two", persistent=True)
        await until(lambda: first.status == "running")
        assert (second.status, own.run_executor.queued) == ("queued", 1)
        assert (await own.run_executor.find(second.id)) is second
        # A persistent run was accepted, so it waits longer than `wait_seconds`.
        await asyncio.sleep(0.1)
        assert second.status == "queued"
        release.set()
        for run in (first, second):
            assert (await settled(run)).status == "completed"


@pytest.mark.parametrize("waits_for", ["capacity", "session"])
async def test_a_queued_run_that_is_stopped_never_starts(tmp_path: Path, waits_for: str) -> None:
    release = asyncio.Event()
    admission = Admission(max_active=1 if waits_for == "capacity" else 0, max_queued=5)
    async with host(tmp_path, held_by(release), admission=admission) as own:
        first = await own.start("one", "session")
        await until(lambda: first.status == "running")
        session_id = "other" if waits_for == "capacity" else "session"
        second = await own.start("two", session_id, persistent=True)
        assert second.status == "queued"
        await own.run_executor.stop(second)
        assert (await settled(second)).status == "cancelled"
        assert first.status == "running"
        assert await own.run_executor.find(second.id) is second
        await until_no_run_is_stored(own)
        assert (own.admission.active, own.admission.queued, own.run_executor.queued) == (1, 0, 0)
        release.set()
        assert (await settled(first)).status == "completed"
        assert [info.id for info in await own.app.archive.recent()] == ["session"]
        assert (await own.ask("three", session_id)).status == "completed"


async def test_a_queued_run_survives_a_restart(tmp_path: Path) -> None:
    release = asyncio.Event()
    admission = Admission(max_active=1, max_queued=5)
    async with host(tmp_path, held_by(release), admission=admission) as own:
        first = await own.start("one")
        second = await own.start(
            "two", persistent=True, create="always", instructions="Be brief.", client="p"
        )
        drained = asyncio.ensure_future(own.run_executor.drain(30))
        await settled(second)
        assert second.status == "failed" and isinstance(second.failure, AdmissionRefused)
        release.set()
        await drained
        assert first.status == "completed"
        async with running(own.stage) as other:
            await other.run_executor.continue_unfinished()
            again = await settled(await other.run_executor.find(second.id))
            assert (again.status, again.text) == ("completed", "You said: two")
            opened = (await other.app.archive.records(again.session_id))[0].event
            assert isinstance(opened, SessionOpened) and "Be brief." in opened.system
            await until_no_run_is_stored(other)


async def test_the_request_of_a_queued_run_is_stored_without_secrets(tmp_path: Path) -> None:
    release = asyncio.Event()
    admission = Admission(max_active=1, max_queued=5)
    async with host(tmp_path, held_by(release), admission=admission) as own:
        await own.start("one")
        run = await own.start(f"my key is {KEY}", persistent=True, instructions=f"Use {KEY}.")
        ((run_id, request),) = await own.store.unfinished_runs()
        assert run_id == run.id
        assert KEY not in request.text and KEY not in request.instructions
        release.set()
        assert (await settled(run)).status == "completed"


async def test_draining_refuses_what_waits_and_finishes_what_runs(tmp_path: Path) -> None:
    release = asyncio.Event()
    admission = Admission(max_active=1, max_queued=5)
    async with host(tmp_path, held_by(release), admission=admission) as own:
        first = await own.start("one")
        waiting = [asyncio.ensure_future(own.start(str(n))) for n in range(3)]
        await until(lambda: admission.queued == 3)
        drained = asyncio.ensure_future(own.run_executor.drain(30))
        failures = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(each, AdmissionRefused) and each.is_draining for each in failures)
        assert not first.is_over
        release.set()
        await drained
        assert first.status == "completed"
        assert len(await own.app.archive.recent()) == 1


async def test_a_cancelled_wait_frees_its_place() -> None:
    admission = Admission(max_active=1, max_queued=5)
    first = admission.enter("a")
    await first.wait()
    tickets = [admission.enter("a") for _ in range(2)]
    waits = [asyncio.ensure_future(ticket.wait()) for ticket in tickets]
    await asyncio.sleep(0)
    waits[0].cancel()
    await asyncio.gather(waits[0], return_exceptions=True)
    tickets[0].release()
    assert (admission.active, admission.queued) == (1, 1)
    first.release()
    await waits[1]
    assert (admission.active, admission.queued) == (1, 0)
    # Cancelled after the place was given, but before the task has run.
    third = admission.enter("b")
    late = asyncio.ensure_future(third.wait())
    await asyncio.sleep(0)
    tickets[1].release()
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    third.release()
    assert (admission.active, admission.queued) == (0, 0)


def held_by(release: asyncio.Event) -> Rule[Request]:
    async def wait(request: Request) -> Step:
        await release.wait()
        return says(f"You said: {request.last_text}")

    return wait
