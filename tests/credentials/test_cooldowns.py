"""How long keys rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.config.provider_settings import CooldownSettings
from hermes.core.errors import Reason
from hermes.credentials.key_health import (
    LONGEST_SECONDS,
    KeyState,
    accepts_key,
    cooldown_reason,
    cooldown_seconds,
    drop_unused,
    lacks_permission,
)
from hermes.credentials.key_pool import format_duration
from tests.credentials.bench import failed

COOLDOWNS = CooldownSettings()


@pytest.mark.parametrize(
    ("reason", "retry_after", "failures", "seconds"),
    [
        ("rate_limit", 12.0, 5, 12.0),
        ("rate_limit", 0.0, 0, 0.5),
        ("rate_limit", 1e12, 0, LONGEST_SECONDS),
        ("rate_limit", None, 0, 60.0),
        ("rate_limit", None, 1, 240.0),
        ("rate_limit", None, 9, 3600.0),
        ("billing", None, 3, 86_400.0),
        ("auth", None, 0, 300.0),
        ("auth", None, 1, 600.0),
        ("auth", None, 99, 86_400.0),
        ("auth_permanent", None, 0, 300.0),
    ],
)
def test_a_rest_is_as_long_as_the_provider_says_else_as_set(
    reason: Reason, retry_after: float | None, failures: int, seconds: float
) -> None:
    error = failed(reason, retry_after=retry_after)
    assert cooldown_seconds(error, failures=failures, cooldowns=COOLDOWNS) == seconds


@given(
    st.sampled_from(["rate_limit", "billing", "auth"]),
    st.none() | st.floats(0, 1e9),
    st.integers(0, 10_000),
)
def test_no_rest_is_endless_or_nothing(
    reason: Reason, retry_after: float | None, failures: int
) -> None:
    error = failed(reason, retry_after=retry_after)
    assert 0 < cooldown_seconds(error, failures=failures, cooldowns=COOLDOWNS) <= LONGEST_SECONDS


def test_only_failures_of_the_key_make_it_rest() -> None:
    assert cooldown_reason(failed("auth_permanent")) == "auth"
    assert cooldown_reason(failed("overloaded")) == ""
    assert cooldown_reason(failed("upstream_rate_limit")) == ""


def test_what_an_error_says_of_the_key() -> None:
    assert lacks_permission(failed("auth", status=403))
    assert not lacks_permission(failed("auth", status=401))
    assert accepts_key(failed("context_overflow", status=400))
    assert not accepts_key(failed("server_error", status=500))


def test_what_nobody_used_for_a_month_is_forgotten() -> None:
    now = 100 * 86_400.0
    states = {
        "p/old": KeyState(used_at=now - 31 * 86_400),
        "p/new": KeyState(used_at=now - 86_400),
        "p/rests": KeyState(since=now - 86_400),
    }
    drop_unused(states, now)
    assert sorted(states) == ["p/new", "p/rests"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (59, "59 s"), (90, "2 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_spans_are_said_in_one_unit(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words
