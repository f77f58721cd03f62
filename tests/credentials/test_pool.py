"""Which key is picked, and what happens to a key that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.provider_settings import CooldownSettings
from hermes.core.errors import ProviderError, Reason
from hermes.credentials.auth_file import AuthEntry
from hermes.credentials.key_health import PROBE_SECONDS
from hermes.credentials.stored_key import StoredKey
from tests.credentials.bench import Bench, HandClock, failed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def test_the_first_healthy_key_is_used_until_it_fails(root: Path) -> None:
    bench = Bench(root, keys="ABC")
    assert [await bench.next_key() for _ in range(3)] == ["A", "A", "A"]
    first = await bench.pool.pick()
    assert await bench.pool.report(first, failed("billing")) == "rotate"
    assert await bench.next_key() == "B"


async def test_keys_take_turns(root: Path) -> None:
    bench = Bench(root, keys="ABC", strategy="round_robin")
    assert [await bench.next_key() for _ in range(5)] == ["A", "B", "C", "A", "B"]


async def test_turns_go_on_in_the_next_process(root: Path) -> None:
    bench = Bench(root, keys="ABC", strategy="round_robin")
    assert await bench.next_key() == "A"
    await bench.pool.close()
    assert await Bench(root, keys="ABC", strategy="round_robin").next_key() == "B"


async def test_the_least_used_key_counts_all_processes(root: Path) -> None:
    first = Bench(root, keys="AB", strategy="least_used")
    assert await first.next_key() == "A"
    await first.pool.close()
    second = Bench(root, keys="AB", strategy="least_used")
    assert [await second.next_key() for _ in range(3)] == ["B", "A", "B"]


async def test_chance_reaches_every_key(root: Path) -> None:
    bench = Bench(root, keys="ABC", strategy="random")
    assert {await bench.next_key() for _ in range(60)} == {"A", "B", "C"}


async def test_a_limit_of_unknown_length_gets_a_second_try_first(root: Path) -> None:
    bench = Bench(root, keys="AB")
    first = await bench.pool.pick()
    assert await bench.pool.report(first, failed("rate_limit")) == "again"
    assert await bench.next_key(again=first.id) == "A"
    assert await bench.pool.report(first, failed("rate_limit")) == "rotate"
    assert await bench.next_key() == "B"


async def test_a_success_between_two_limits_forgets_the_first(root: Path) -> None:
    bench = Bench(root, keys="AB")
    first = await bench.pool.pick()
    assert await bench.pool.report(first, failed("rate_limit")) == "again"
    await bench.pool.report(first, None)
    assert await bench.pool.report(first, failed("rate_limit")) == "again"


async def test_a_limit_that_names_its_end_rotates_at_once(root: Path) -> None:
    bench = Bench(root, keys="AB")
    first = await bench.pool.pick()
    assert await bench.pool.report(first, failed("rate_limit", retry_after=30)) == "rotate"
    assert await bench.next_key() == "B"
    bench.clock.passed += 30.1
    assert await bench.next_key() == "A"


@pytest.mark.parametrize(
    ("reason", "seconds"), [("rate_limit", 60.0), ("billing", 86_400.0), ("auth", 300.0)]
)
async def test_each_kind_of_failure_has_its_rest(
    root: Path, reason: Reason, seconds: float
) -> None:
    bench = Bench(root, keys="AB")
    first = await bench.pool.pick()
    while await bench.pool.report(first, failed(reason)) != "rotate":
        pass
    bench.clock.passed += seconds - 1
    assert await bench.next_key() == "B"
    bench.clock.passed += 2
    assert await bench.next_key() == "A"


async def test_rests_can_be_set(root: Path) -> None:
    bench = Bench(root, keys="AB", cooldowns=CooldownSettings(billing=10))
    first = await bench.pool.pick()
    await bench.pool.report(first, failed("billing"))
    bench.clock.passed += 11
    assert await bench.next_key() == "A"


async def test_the_last_key_does_not_rest_for_a_time_that_is_only_guessed(root: Path) -> None:
    bench = Bench(root, keys="A")
    first = await bench.pool.pick()
    for reason in ("rate_limit", "billing", "auth"):
        assert await bench.pool.report(first, failed(reason)) == "stop"
    assert await bench.next_key() == "A"


async def test_all_keys_at_rest_name_the_soonest_end(root: Path) -> None:
    bench = Bench(root, keys="AB")
    for seconds in (500, 40):
        held = await bench.pool.pick()
        await bench.pool.report(held, failed("rate_limit", retry_after=seconds))
    with pytest.raises(ProviderError, match="All 2 p keys are in cooldown") as caught:
        await bench.pool.pick()
    assert caught.value.reason == "rate_limit"
    assert caught.value.retry_after == pytest.approx(40, abs=0.2)
    assert caught.value.retryable


async def test_an_end_that_is_far_away_is_not_waited_for(root: Path) -> None:
    bench = Bench(root, keys="A")
    held = await bench.pool.pick()
    await bench.pool.report(held, failed("rate_limit", retry_after=5 * 3600))
    with pytest.raises(ProviderError, match="another 5 h") as caught:
        await bench.pool.pick()
    assert not caught.value.retryable


async def test_no_key_at_all_says_how_to_get_one(root: Path) -> None:
    with pytest.raises(ProviderError, match="hermes auth add p"):
        await Bench(root).pool.pick()


@pytest.mark.parametrize(
    "reason", ["upstream_rate_limit", "overloaded", "server_error", "timeout", "context_overflow"]
)
async def test_what_is_not_about_the_key_does_not_touch_it(root: Path, reason: Reason) -> None:
    bench = Bench(root, keys="AB")
    first = await bench.pool.pick()
    assert await bench.pool.report(first, failed(reason, status=500)) == "stop"
    assert await bench.next_key() == "A"


async def test_a_lack_of_rights_tries_others_but_lets_no_key_rest(root: Path) -> None:
    bench = Bench(root, keys="AB")
    first = await bench.pool.pick()
    assert await bench.pool.report(first, failed("auth", status=403)) == "rotate"
    assert (await bench.pool.pick(avoid=frozenset((first.id,)))).label == "B"
    assert await bench.next_key() == "A"
    with pytest.raises(ProviderError) as caught:
        await bench.pool.pick(avoid=frozenset(held.id for held in await _all(bench)))
    assert caught.value.retry_after is None


async def test_a_rest_is_known_to_other_processes_at_once(root: Path) -> None:
    clock = HandClock()
    one, other = Bench(root, keys="AB", clock=clock), Bench(root, keys="AB", clock=clock)
    assert await other.next_key() == "A"
    await one.pool.report(await one.pool.pick(), failed("billing"))
    assert await other.next_key() == "B"


async def test_a_rested_key_is_tried_by_one_and_others_use_another(root: Path) -> None:
    clock = HandClock()
    one, other = Bench(root, keys="AB", clock=clock), Bench(root, keys="AB", clock=clock)
    await one.pool.report(await one.pool.pick(), failed("rate_limit", retry_after=10))
    clock.passed += 11
    trying = await one.pool.pick()
    assert (trying.label, bool(trying.probe)) == ("A", True)
    assert [await other.next_key(), await one.next_key()] == ["B", "B"]
    await one.pool.report(trying, None)
    assert [await other.next_key(), await one.next_key()] == ["A", "A"]


async def test_a_try_that_fails_rests_again_for_longer(root: Path) -> None:
    bench = Bench(root, keys="AB")
    first = await bench.pool.pick()
    await bench.pool.report(first, failed("rate_limit"))
    await bench.pool.report(first, failed("rate_limit"))
    bench.clock.passed += 61
    trying = await bench.pool.pick()
    assert await bench.pool.report(trying, failed("rate_limit")) == "rotate"
    bench.clock.passed += 61
    assert await bench.next_key() == "B"
    bench.clock.passed += 180
    assert await bench.next_key() == "A"


async def test_a_try_whose_process_dies_is_made_by_another_later(root: Path) -> None:
    clock = HandClock()
    one, other = Bench(root, keys="AB", clock=clock), Bench(root, keys="AB", clock=clock)
    await one.pool.report(await one.pool.pick(), failed("rate_limit", retry_after=10))
    clock.passed += 11
    assert (await one.pool.pick()).probe
    clock.passed += PROBE_SECONDS - 1
    assert await other.next_key() == "B"
    clock.passed += 2
    assert await other.next_key() == "A"


async def test_a_try_that_was_given_up_is_made_by_another_soon(root: Path) -> None:
    bench = Bench(root, keys="AB")
    await bench.pool.report(await bench.pool.pick(), failed("rate_limit", retry_after=10))
    bench.clock.passed += 11
    bench.pool.release(await bench.pool.pick())
    assert await bench.next_key() == "B"
    bench.clock.passed += 6
    assert await bench.next_key() == "A"


async def test_with_nothing_else_to_use_the_try_of_another_is_waited_for(root: Path) -> None:
    clock = HandClock()
    one, other = Bench(root, keys="A", clock=clock), Bench(root, keys="A", clock=clock)
    await one.pool.report(await one.pool.pick(), failed("rate_limit", retry_after=10))
    clock.passed += 11
    assert (await one.pool.pick()).probe
    # The clock moves only because somebody waits; after the window it is the other's turn.
    assert (await other.pool.pick()).probe
    assert clock.passed == pytest.approx(11 + PROBE_SECONDS, abs=1)


async def test_a_late_success_does_not_end_a_rest(root: Path) -> None:
    bench = Bench(root, keys="AB")
    early, late = await bench.pool.pick(), await bench.pool.pick()
    await bench.pool.report(early, failed("rate_limit", retry_after=100))
    await bench.pool.report(late, None)
    assert await bench.next_key() == "B"


async def test_a_late_limit_only_makes_a_rest_longer(root: Path) -> None:
    bench = Bench(root, keys="AB")
    early, late = await bench.pool.pick(), await bench.pool.pick()
    await bench.pool.report(early, failed("rate_limit", retry_after=100))
    await bench.pool.report(late, failed("rate_limit", retry_after=5))
    bench.clock.passed += 50
    assert await bench.next_key() == "B"
    bench.clock.passed += 51
    assert await bench.next_key() == "A"


async def test_a_new_secret_under_the_same_name_has_not_failed_yet(root: Path) -> None:
    clock = HandClock()
    bench = Bench(root, keys="AB", clock=clock)
    await bench.pool.report(await bench.pool.pick(), failed("auth"))
    assert await Bench(root, keys="AB", clock=clock).next_key() == "B"
    changed = Bench(root, keys="AB", clock=clock, secrets=["other-secret", "secret-B"])
    assert await changed.next_key() == "A"


async def test_a_clock_that_is_set_back_does_not_hold_keys_back(root: Path) -> None:
    bench = Bench(root, keys="AB")
    await bench.pool.report(await bench.pool.pick(), failed("billing"))
    bench.clock.passed -= 7 * 86_400
    assert await bench.next_key() == "A"


async def test_damaged_states_are_forgotten(root: Path) -> None:
    bench = Bench(root, keys="AB")
    await bench.pool.report(await bench.pool.pick(), failed("billing"))
    bench.store.states.path.write_text("{torn")
    assert await bench.next_key() == "A"
    await bench.pool.report(await bench.pool.pick(), failed("billing"))
    assert await bench.next_key() == "B"


async def test_where_nothing_can_be_written_this_process_still_knows(root: Path) -> None:
    bench = Bench(root, keys="AB")
    put(root / "locks", "in the way")
    await bench.pool.report(await bench.pool.pick(), failed("billing"))
    assert await bench.next_key() == "B"


async def test_picking_writes_nothing(root: Path) -> None:
    bench = Bench(root, keys="AB")
    for _ in range(10):
        await bench.pool.report(await bench.pool.pick(), None)
    assert not (files_of(root))
    await bench.pool.close()
    assert bench.store.states.path.exists()


async def test_no_secret_is_written_for_what_is_borrowed(root: Path) -> None:
    bench = Bench(root, keys="AB")
    await bench.pool.report(await bench.pool.pick(), failed("billing"))
    await bench.pool.close()
    written = files_of(root)
    assert written
    assert not any(b"secret-" in data for data in written)


async def test_a_removed_source_is_not_used(root: Path) -> None:
    bench = Bench(root, keys="AB")
    await bench.store.auth_file.edit(lambda document: document.suppress("p", "env:A"))
    assert await bench.next_key() == "B"


async def test_keys_added_meanwhile_are_used(root: Path) -> None:
    bench = Bench(root, keys="A")
    first = await bench.pool.pick()
    await bench.put(AuthEntry(id="abc123", label="added", access_token="sk-added"))
    assert await bench.pool.report(first, failed("billing")) == "rotate"
    assert await bench.next_key() == "added"


async def test_a_damaged_file_is_reported_where_there_is_nothing_else(root: Path) -> None:
    put(root / "auth.json", "{")
    with pytest.raises(ProviderError, match="is damaged"):
        await Bench(root).pool.pick()


async def test_a_damaged_file_does_not_stop_borrowed_keys(root: Path) -> None:
    bench = Bench(root, keys="A")
    put(root / "auth.json", "{")
    assert await bench.next_key() == "A"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)


def files_of(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in root.rglob("*") if path.is_file()]


async def _all(bench: Bench) -> tuple[StoredKey, ...]:
    return await bench.store.key_sources("p").keys()
