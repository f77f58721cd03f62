"""`hermes cost`: tokens and prices add up, and what is not known is not guessed."""

from __future__ import annotations

import pytest

from hermes.core.messages import Usage
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import costs, says
from tests.surfaces.cli.program import Program

USED = Usage(input=100, output=20, cache_read=40, reasoning=5)


@pytest.fixture
def spent(scripted: Program, model_server: ScriptedServer) -> Program:
    """Two sessions with a model of unknown price, one with the offline assistant, which is free."""
    model_server.add(*[costs(says("ok"), USED)] * 2)
    for prompt in ("one", "two"):
        assert scripted("-z", prompt).code == 0
    scripted.ask("calculate 6*7")
    return scripted


def test_models_are_told_apart(spent: Program) -> None:
    offline, scripted = spent("cost", "--json").json
    assert scripted == {
        "model": "scripted",
        "calls": 2,
        "input": 200,
        "output": 40,
        "cache_read": 80,
        "cache_write": 0,
        "reasoning": 10,
        "cost": None,
        "unpriced": 2,
    }
    assert (offline["model"], offline["calls"]) == ("offline-assistant", 1)
    assert (offline["cost"], offline["unpriced"]) == (0.0, 0)


def test_the_table_has_a_total_that_admits_what_it_does_not_know(spent: Program) -> None:
    head, _, *rows = spent("cost").out.splitlines()
    assert head.split() == ["Model", "Calls", "In", "Out", "Cost"]
    assert [row.split()[0] for row in rows] == ["offline-assistant", "scripted", "total"]
    assert rows[0].endswith("$0.0000")
    assert rows[1].split()[1:] == ["2", "280", "40", "unknown"]
    assert rows[2].endswith("$0.0000 and 2 of unknown price")


@pytest.mark.parametrize(
    ("by", "groups"), [("provider", 2), ("session", 3), ("day", 1), ("cause", 1)]
)
def test_it_can_be_added_up_otherwise(spent: Program, by: str, groups: int) -> None:
    found = spent("cost", "--by", by, "--json").json
    assert len({line[by] for line in found}) == groups
    assert sum(line["calls"] for line in found) == 3
    table = spent("cost", "--by", by).out.splitlines()
    assert len(table) == 2 + groups + (groups > 1)


def test_one_session_or_the_last_days_alone(spent: Program) -> None:
    newest = spent.sessions()[0]["id"]
    only = spent("cost", "--session", newest[:-1], "--by", "session", "--json").json
    assert [(line["session"], line["calls"]) for line in only] == [(newest, 1)]
    today = spent("cost", "--days", "2", "--json").json
    assert sum(line["calls"] for line in today) == 3
    assert spent("cost", "--days", "0").code == 2


def test_conversations_from_elsewhere_cost_nothing(program: Program) -> None:
    said = '{"session": "trip", "at": %d, "role": "%s", "text": "hi"}\n'
    (program.work / "trip.jsonl").write_text(said % (1, "user") + said % (2, "assistant"))
    program("sessions", "import", "trip.jsonl")
    assert program("cost", "--json").json == []


def test_nothing_spent_is_said(program: Program) -> None:
    assert program("cost") == (0, "No model call yet.\n", "")
