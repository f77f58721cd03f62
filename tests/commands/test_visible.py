"""Text from outside cannot steer a terminal or hide from the eye."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.commands.formatting import escape_invisible, one_line, sanitize


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
