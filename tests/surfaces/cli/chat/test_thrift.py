"""Fewer bytes for the terminal, with the same effect."""

from __future__ import annotations

from hermes.surfaces.cli.chat.thrift import HIDE, NO_WRAP, SHOW, WRAP, Thrift

RESET = "\x1b[0m"


def test_a_small_change_is_little_more_than_its_letters() -> None:
    thrift = Thrift()
    drawn = f"{HIDE}{NO_WRAP}\x1b[3A{RESET} word{RESET}\r\n\r\n\r\n\x1b[4C{WRAP}{RESET}{SHOW}"
    assert thrift.shortened(RESET, calm=False) == RESET
    assert thrift.shortened(drawn, calm=True) == "\x1b[3A word\r\x1b[3B\x1b[4C"


def test_the_way_back_to_where_the_cursor_was_is_short() -> None:
    thrift = Thrift()
    first, second = "\x1b[3A one\r\x1b[3B\x1b[4C", "\x1b[3A\x1b[4C two\r\x1b[3B\x1b[4C"
    assert thrift.shortened(first, calm=True) == first
    assert thrift.shortened(second, calm=True) == "\x1b7\x1b[3A\x1b[4C two\x1b8"
    assert thrift.shortened(second, calm=True) == "\x1b7\x1b[3A\x1b[4C two\x1b8"
    typed = "x"
    assert thrift.shortened(typed, calm=True) == typed
    assert thrift.shortened(second, calm=True) == second


def test_what_may_reach_the_edge_or_needs_rows_is_left_as_it_is() -> None:
    drawn = f"{HIDE}{NO_WRAP}word\r\n\r\n{WRAP}{SHOW}"
    assert Thrift().shortened(drawn, calm=False) == drawn


def test_colours_end_once() -> None:
    thrift = Thrift()
    assert thrift.shortened(f"\x1b[31mred{RESET}{RESET}", calm=False) == f"\x1b[31mred{RESET}"
    assert thrift.shortened(f"{RESET}plain", calm=False) == "plain"
    assert thrift.shortened(f"\x1b[J{RESET}plain", calm=False) == f"\x1b[J{RESET}plain"


def test_a_cursor_that_stays_hidden_is_hidden() -> None:
    assert Thrift().shortened(f"{HIDE}x", calm=True) == f"{HIDE}x"
