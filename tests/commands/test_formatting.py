"""Text, numbers and turn endings for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.commands.formatting import (
    escape_invisible,
    explain_ending,
    format_count,
    format_duration,
    format_elapsed,
    format_money,
    is_error,
    one_line,
    sanitize,
)
from hermes.core.events import EndReason, TurnEnded
from hermes.core.messages import Usage


def test_escape_sequences_lose_their_power_but_not_their_place() -> None:
    assert sanitize("a\x1b[31mred\x07\x7f") == "a␛[31mred␇␡"


def test_line_breaks_stay_and_tabs_become_spaces() -> None:
    assert sanitize("a\tb\r\nc") == "a   b\nc"


def test_text_that_would_run_backwards_is_set_straight() -> None:
    assert sanitize("abc\u202edcba\u2069") == "abcdcba"


def test_joined_emoji_stay_whole_in_prose() -> None:
    assert sanitize("👩\u200d🚀") == "👩\u200d🚀"


def test_what_is_judged_hides_nothing() -> None:
    script = "echo a\u200b\x1b[8m; rm\u00a0x\t\u202e"
    assert escape_invisible(script) == "echo a\\u200b\\x1b[8m; rm\\xa0x\\t\\u202e"


def test_the_lines_of_a_script_stay_lines() -> None:
    assert escape_invisible("a\nb") == "a\nb"


def test_one_line_is_one_line_of_the_wanted_length() -> None:
    assert one_line("  several\n words  here ") == "several words here"
    assert one_line("several words", 8) == "several…"


@given(st.text())
def test_nothing_that_a_terminal_obeys_gets_through(text: str) -> None:
    for shown in (sanitize(text), escape_invisible(text), one_line(text)):
        assert not any(ord(letter) < 32 and letter != "\n" for letter in shown)
        assert not any(0x7F <= ord(letter) < 0xA0 for letter in shown)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1K"),
        (41_230, "41.2K"),
        (999_960, "1M"),
        (1_250_000, "1.2M"),
    ],
)
def test_counts_are_short(count: int, words: str) -> None:
    assert format_count(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0s"), (59.9, "59s"), (60, "1m 00s"), (754, "12m 34s"), (3_780, "1h 03m")],
)
def test_running_times_are_whole_seconds(seconds: float, words: str) -> None:
    assert format_elapsed(seconds) == words


def test_a_short_duration_has_a_decimal() -> None:
    assert [format_duration(s) for s in (0.04, 1.25, 12.3)] == ["0.0s", "1.2s", "12s"]


def test_small_sums_are_not_nothing() -> None:
    assert [format_money(sum_) for sum_ in (0.0, 0.06, 0.0004)] == ["$0.00", "$0.06", "$0.0004"]


def ended(reason: EndReason, detail: str = "", error: str = "") -> TurnEnded:
    return TurnEnded(reason=reason, usage=Usage(), detail=detail, error=error)


def test_a_good_end_needs_no_words() -> None:
    assert explain_ending(ended("done", "text_response(done)"), answered=True) == ""


@pytest.mark.parametrize(
    ("end", "part"),
    [
        (ended("done", "text_response(done)"), "empty answer"),
        (ended("done", "text_response(length)"), "length limit"),
        (ended("interrupted"), "Interrupted."),
        (ended("budget", "max_iterations_reached(90/90)"), "after 90 model calls"),
        (ended("guardrail", "read_file failed 8 times in a row"), "read_file failed 8 times"),
        (ended("partial", "invalid_tool_calls"), "invalid tool calls"),
        (ended("failed", "auth", "The key was refused."), "The key was refused."),
    ],
)
def test_any_other_end_is_explained(end: TurnEnded, part: str) -> None:
    assert part in explain_ending(end, answered=False)


def test_only_faults_are_errors() -> None:
    assert [is_error(ended(r)) for r in ("failed", "interrupted", "budget")] == [True, False, False]
