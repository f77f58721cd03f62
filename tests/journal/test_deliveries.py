"""The delivery ledger and the due times of scheduled jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.journal.deliveries import KEEP_SECONDS, DeliveryLedger
from hermes.journal.due_times import DueTimes
from tests.journal.samples import journal_in


async def test_a_message_delivered_twice_is_stored_once(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        ledger = DeliveryLedger(journal)
        twice = (
            ledger.receive("telegram", "42:7", "chat", "{}"),
            ledger.receive("telegram", "42:7", "chat", "{}"),
        )
        assert sorted(await asyncio.gather(*twice)) == [False, True]
        assert await ledger.receive("matrix", "42:7", "chat", "{}")


async def test_a_message_is_owed_until_it_is_finished(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        ledger = DeliveryLedger(journal)
        await ledger.receive("telegram", "1", "chat", '{"text":"first"}')
        await ledger.receive("telegram", "2", "chat", '{"text":"second"}')
        await ledger.accept("telegram", "1", "session-1")
        states = [(each.key, each.state, each.session_id) for each in await ledger.open_messages()]
        assert states == [("1", "accepted", "session-1"), ("2", "new", "")]
    async with journal_in(tmp_path) as journal:
        ledger = DeliveryLedger(journal)
        await ledger.finish("telegram", "1")
        assert [each.key for each in await ledger.open_messages("telegram")] == ["2"]
        assert not await ledger.receive("telegram", "1", "chat", "{}")


async def test_a_post_keeps_its_identity_and_loses_its_text_when_confirmed(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        ledger = DeliveryLedger(journal)
        await ledger.intend("turn-1:0", "telegram", "{}", '{"text":"Hello"}', attempt=True)
        (open_post,) = await ledger.open_posts("telegram")
        assert (open_post.state, open_post.attempts) == ("attempting", 1)
        again = await ledger.intend("turn-1:0", "telegram", "{}", '{"text":"Other"}')
        assert again == open_post
        await ledger.confirm("turn-1:0", "m-5")
        assert await ledger.open_posts() == ()
        found = await ledger.post("turn-1:0")
        assert found is not None
        assert (found.state, found.message_id, found.body) == ("confirmed", "m-5", "")
        await ledger.revise("turn-1:0", '{"text":"Hello, world"}')
        (editing,) = await ledger.open_posts()
        assert (editing.state, editing.message_id) == ("editing", "m-5")


async def test_a_route_outlives_the_process_and_expires_unused(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await DeliveryLedger(journal).set_route("agent:main:telegram:dm:1", "s1", "{}")
    async with journal_in(tmp_path) as journal:
        ledger = DeliveryLedger(journal)
        route = await ledger.route("agent:main:telegram:dm:1")
        assert route is not None
        assert route.session_id == "s1"
        await journal.world.clock.sleep(KEEP_SECONDS + 1)
        await ledger.prune(routes_older_than=KEEP_SECONDS)
        assert await ledger.routes() == ()


async def test_a_due_time_is_claimed_once_by_all_processes(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as first, journal_in(tmp_path) as second:
        claims = [DueTimes(journal).claim("job", 60.0) for journal in (first, second) * 5]
        assert sum(await asyncio.gather(*claims)) == 1


async def test_only_due_times_of_dead_processes_are_taken_over(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as first:
        await DueTimes(first).claim("job", 60.0, session_id="s1")
        async with journal_in(tmp_path) as second:
            assert await DueTimes(second).take_over() == ()
    async with journal_in(tmp_path) as third:
        due_times = DueTimes(third)
        (taken,) = await due_times.take_over()
        assert (taken.job, taken.due_at, taken.session_id) == ("job", 60.0, "s1")
        await due_times.start("job", 60.0)
        await due_times.end("job", 60.0, "completed", delivery="local")
        assert await due_times.open_runs() == ()
        (ended,) = await due_times.history("job")
        assert (ended.state, ended.delivery) == ("completed", "local")
        assert not await due_times.claim("job", 60.0)
        assert not await due_times.skip("job", 60.0, "late")
