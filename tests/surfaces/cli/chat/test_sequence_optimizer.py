"""Fewer bytes for the terminal, with the same effect."""

from __future__ import annotations

from hermes.surfaces.cli.chat.flicker_free_renderer import (
    HIDE,
    NO_WRAP,
    SHOW,
    WRAP,
    SequenceOptimizer,
)

RESET = "\x1b[0m"


def test_a_small_change_is_little_more_than_its_letters() -> None:
    optimizer = SequenceOptimizer()
    drawn = f"{HIDE}{NO_WRAP}\x1b[3A{RESET} word{RESET}\r\n\r\n\r\n\x1b[4C{WRAP}{RESET}{SHOW}"
    assert optimizer.shorten(RESET, calm=False) == RESET
    assert optimizer.shorten(drawn, calm=True) == "\x1b[3A word\r\x1b[3B\x1b[4C"


def test_the_way_back_to_where_the_cursor_was_is_short() -> None:
    optimizer = SequenceOptimizer()
    first, second = "\x1b[3A one\r\x1b[3B\x1b[4C", "\x1b[3A\x1b[4C two\r\x1b[3B\x1b[4C"
    assert optimizer.shorten(first, calm=True) == first
    assert optimizer.shorten(second, calm=True) == "\x1b7\x1b[3A\x1b[4C two\x1b8"
    assert optimizer.shorten(second, calm=True) == "\x1b7\x1b[3A\x1b[4C two\x1b8"
    typed = "x"
    assert optimizer.shorten(typed, calm=True) == typed
    assert optimizer.shorten(second, calm=True) == second


def test_what_may_reach_the_edge_or_needs_rows_is_left_as_it_is() -> None:
    drawn = f"{HIDE}{NO_WRAP}word\r\n\r\n{WRAP}{SHOW}"
    assert SequenceOptimizer().shorten(drawn, calm=False) == drawn


def test_colours_end_once() -> None:
    optimizer = SequenceOptimizer()
    assert optimizer.shorten(f"\x1b[31mred{RESET}{RESET}", calm=False) == f"\x1b[31mred{RESET}"
    assert optimizer.shorten(f"{RESET}plain", calm=False) == "plain"
    assert optimizer.shorten(f"\x1b[J{RESET}plain", calm=False) == f"\x1b[J{RESET}plain"


def test_a_cursor_that_stays_hidden_is_hidden() -> None:
    assert SequenceOptimizer().shorten(f"{HIDE}x", calm=True) == f"{HIDE}x"
