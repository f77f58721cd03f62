"""Colours only for people who can and want to see them."""

from __future__ import annotations

import io

import pytest

from hermes.surfaces.cli.command_context import apply_style, mark


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_terminal_gets_colours() -> None:
    assert apply_style("no", "error", Screen()) == "\x1b[31mno\x1b[0m"


def test_a_pipe_gets_none() -> None:
    assert apply_style("no", "error", io.StringIO()) == "no"
    assert mark("warn") == "⚠"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_none_gets_none(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert apply_style("no", "error", Screen()) == "no"
