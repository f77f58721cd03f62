from __future__ import annotations

import asyncio
import random

import pytest

from hermes.core.errors import ProviderError, Reason
from hermes.core.messages import AssistantMessage, Text, Usage
from hermes.core.prompt import Notice, ReasoningDelta, Reply, Restarted, TextDelta
from hermes.core.world import World
from hermes.providers.failures import malformed_response
from hermes.providers.profile import ModelProfile
from hermes.providers.retry import AdaptiveProfile, RetryingProvider
from tests.providers.asking import Heard, Listed, NapClock, ask, endpoint

DONE = Reply(
    message=AssistantMessage(parts=(Text(text="ok"),)), usage=Usage(), model="m", provider="p"
)


def fails(
    reason: Reason, *, retryable: bool = True, retry_after: float | None = None, body: str = ""
) -> ProviderError:
    return ProviderError(
        f"It failed ({reason}).",
        reason=reason,
        retryable=retryable,
        retry_after=retry_after,
        body=body,
    )


def world() -> tuple[World, NapClock]:
    clock = NapClock()
    return World(clock=clock, chance=random.Random(1)), clock


async def test_what_goes_well_passes_through_untouched() -> None:
    here, clock = world()
    heard = await ask(RetryingProvider(Listed([TextDelta(text="ok"), DONE]), here))
    assert (heard.deltas, heard.whole, clock.naps) == ([TextDelta(text="ok")], DONE, [])


async def test_waits_double_with_some_chance_in_them() -> None:
    here, clock = world()
    inner = Listed(*([fails("server_error")],) * 7, [DONE])
    await ask(RetryingProvider(inner, here, attempts=8))
    bounds = [2, 4, 8, 16, 32, 60, 60]
    assert all(low <= nap <= low * 1.5 for low, nap in zip(bounds, clock.naps, strict=True))
    assert len({nap / low for low, nap in zip(bounds, clock.naps, strict=True)}) > 5


async def test_answers_that_make_no_sense_are_given_more_time() -> None:
    here, clock = world()
    nonsense = malformed_response(endpoint("chat", "http://x"), "it is no JSON")
    await ask(RetryingProvider(Listed(*([nonsense],) * 6, [DONE]), here, attempts=7))
    bounds = [5, 10, 20, 40, 80, 120]
    assert all(low <= nap <= low * 1.5 for low, nap in zip(bounds, clock.naps, strict=True))


@pytest.mark.parametrize(("wish", "nap"), [(7.0, 7.0), (5000.0, 600.0), (0.0, 0.0)])
async def test_the_servers_own_wish_wins_up_to_a_limit(wish: float, nap: float) -> None:
    here, clock = world()
    await ask(RetryingProvider(Listed([fails("rate_limit", retry_after=wish)], [DONE]), here))
    assert clock.naps == [nap]


async def test_three_attempts_are_all() -> None:
    here, _ = world()
    inner = Listed(*([fails("server_error")],) * 5)
    with pytest.raises(ProviderError):
        await ask(RetryingProvider(inner, here))
    assert len(inner.prompts) == 3


@pytest.mark.parametrize("reason", ["auth", "billing", "context_overflow", "format_error"])
async def test_what_cannot_get_better_is_not_tried_again(reason: Reason) -> None:
    here, clock = world()
    inner = Listed([fails(reason, retryable=False)], [DONE])
    with pytest.raises(ProviderError) as caught:
        await ask(RetryingProvider(inner, here))
    assert (caught.value.reason, len(inner.prompts), clock.naps) == (reason, 1, [])


async def test_waits_for_a_rate_limit_are_told_at_once() -> None:
    here, _ = world()
    heard = await ask(RetryingProvider(Listed([fails("rate_limit", retry_after=9)], [DONE]), here))
    (notice,) = heard.deltas
    assert isinstance(notice, Notice)
    assert notice.text == "It failed (rate_limit). Retrying in 9 s (2 of 3)."


async def test_other_troubles_are_told_only_if_all_fails() -> None:
    here, _ = world()
    heard = await ask(RetryingProvider(Listed([fails("server_error")], [DONE]), here))
    assert heard.deltas == []
    failed = Heard()
    with pytest.raises(ProviderError):
        await ask(RetryingProvider(Listed(*([fails("overloaded")],) * 3), here), heard=failed)
    assert len([d for d in failed.deltas if isinstance(d, Notice)]) == 2


async def test_what_was_shown_before_a_failure_is_void() -> None:
    here, _ = world()
    inner = Listed([ReasoningDelta(text="hm"), fails("cut")], [TextDelta(text="ok"), DONE])
    heard = await ask(RetryingProvider(inner, here))
    assert heard.deltas == [ReasoningDelta(text="hm"), Restarted(), TextDelta(text="ok")]


async def test_a_repair_is_tried_at_once_and_costs_no_attempt() -> None:
    here, clock = world()
    refused = fails("format_error", retryable=False, body="Use 'max_completion_tokens' instead")
    adaptive = AdaptiveProfile(ModelProfile())
    inner = Listed([refused], *([fails("server_error")],) * 2, [DONE], [refused], [DONE])
    provider = RetryingProvider(inner, here, adaptive=adaptive)
    await ask(provider)
    assert adaptive.profile.output_field == "max_completion_tokens"
    assert len(clock.naps) == 2


async def test_a_repair_that_did_not_help_is_not_repeated() -> None:
    here, _ = world()
    refused = fails("format_error", retryable=False, body="failed to parse grammar")
    inner = Listed(*([refused],) * 5)
    with pytest.raises(ProviderError):
        await ask(RetryingProvider(inner, here, adaptive=AdaptiveProfile(ModelProfile())))
    assert len(inner.prompts) == 2


async def test_silence_over_several_turns_ends_the_patience() -> None:
    here, _ = world()
    inner = Listed(*([fails("timeout")],) * 8, [DONE], [fails("timeout")], [DONE])
    provider = RetryingProvider(inner, here, max_timeouts=5)
    asked = []
    for _ in range(4):
        before = len(inner.prompts)
        with pytest.raises(ProviderError):
            await ask(provider)
        asked.append(len(inner.prompts) - before)
    assert asked == [3, 2, 1, 1]


async def test_an_answer_restores_the_patience() -> None:
    here, _ = world()
    silence = [fails("timeout")]
    inner = Listed(*(silence,) * 2, [DONE], *(silence,) * 2, [DONE], *(silence,) * 2, [DONE])
    provider = RetryingProvider(inner, here, max_timeouts=5)
    for _ in range(3):
        await ask(provider)


async def test_a_wait_can_be_cancelled() -> None:
    provider = RetryingProvider(Listed([fails("rate_limit", retry_after=500)], [DONE]), World())
    asking = asyncio.create_task(ask(provider))
    await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
