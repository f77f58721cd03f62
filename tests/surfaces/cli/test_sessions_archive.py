"""`hermes sessions archive`, `unarchive`: out of the lists and back, found all the same."""

from __future__ import annotations

import pytest

from tests.surfaces.cli.past import add_session
from tests.surfaces.cli.program import Program


@pytest.fixture
def home(program: Program) -> Program:
    add_session(program.home, "garden", days=3, title="Garden", said="the marmalade tree")
    add_session(program.home, "house", days=2, title="House")
    return program


def ids(program: Program, *options: str) -> list[str]:
    return [info["id"] for info in program("sessions", "list", "--json", *options).json]


def test_a_session_is_put_away_and_brought_back(home: Program) -> None:
    done = home("sessions", "archive", "Garden")
    assert done.out == "garden is archived; `hermes sessions unarchive garden` restores it.\n"
    assert (ids(home), ids(home, "--archived")) == (["house"], ["garden"])
    (listed,) = home("sessions", "list", "--archived", "--json").json
    assert listed["archived"] is True
    assert "Garden" in home("sessions", "list", "--archived").out
    assert home("sessions", "unarchive", "garden", "--json").json == [
        {"session_id": "garden", "archived": False}
    ]
    assert (ids(home), ids(home, "--archived")) == (["house", "garden"], [])
    assert home("sessions", "list", "--archived").out == "No session matches.\n"


def test_what_was_put_away_is_still_found(home: Program) -> None:
    assert home("sessions", "archive", "Garden", "house", "Garden", "--json").json == [
        {"session_id": "garden", "archived": True},
        {"session_id": "house", "archived": True},
    ]
    assert home("sessions", "list").out.startswith("All sessions are archived")
    (hit,) = home("sessions", "search", "marmalade", "--json").json
    assert hit["session_id"] == "garden"
    shown = home("sessions", "show", "Garden")
    assert "(archived)" in shown.out
    assert len(home("sessions", "export").out.splitlines()) == 2
    assert "archived" in home("trace", "garden").out


def test_nothing_is_put_away_unless_all_are_known(home: Program) -> None:
    assert home("sessions", "archive", "Garden", "nosuch").code == 1
    assert ids(home) == ["house", "garden"]
    assert home("sessions", "archive").code == 2
