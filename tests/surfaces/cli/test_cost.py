"""`hermes cost`: tokens and prices add up, and what is not known is not guessed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.core.events import CallSettled, ModelCalled, SessionOpened
from hermes.core.messages import Usage
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import costs, says
from tests.surfaces.cli.program import Program

USED = Usage(input=100, output=20, cache_read=40, reasoning=5)
OPENED = SessionOpened(source="cli", cwd="/", model="m", provider="p", system="")


def called(call: str, most: Usage) -> ModelCalled:
    return ModelCalled(model="m", provider="p", call=call, reserved=most)


@pytest.fixture
def spent(scripted: Program, model_server: ScriptedServer) -> Program:
    """Two sessions with a model on this machine and one with the offline assistant; both are
    free, unless somebody says otherwise."""
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
        "cost": 0.0,
        "unpriced": 0,
        "assumed_calls": 0,
        "assumed_tokens": 0,
        "assumed_cost": 0.0,
        "corrected_calls": 0,
        "corrected_cost": 0.0,
    }
    assert (offline["model"], offline["calls"]) == ("offline-assistant", 1)
    assert (offline["cost"], offline["unpriced"]) == (0.0, 0)


def test_the_table_has_a_total(spent: Program) -> None:
    head, _, *rows = spent("cost").out.splitlines()
    assert head.split() == ["Model", "Calls", "In", "Out", "Cost"]
    assert [row.split()[0] for row in rows] == ["offline-assistant", "scripted", "total"]
    assert rows[1].split()[1:] == ["2", "280", "40", "$0.0000"]
    assert rows[2].endswith("$0.0000")


async def unknown(home: Path) -> None:
    """A session with one call of unknown price, and one whose end is not known."""
    most = Usage(input=900, output=100, requests=1, cost=0.5)
    async with SqliteJournal(home / "hermes.db", World()) as journal:
        lease, _ = await journal.create("one", [OPENED])
        settled = CallSettled(call="call_1", usage=USED)
        await journal.append(lease, [called("call_1", Usage()), settled, called("call_2", most)])


def test_what_is_not_known_is_admitted(program: Program) -> None:
    program.home.mkdir(exist_ok=True)
    asyncio.run(unknown(program.home))
    head, _, row = program("cost", "--by", "person").out.splitlines()
    assert head.split() == ["Person", "Calls", "In", "Out", "Cost", "Assumed"]
    assert row.split() == ["owner", "2", "140", "20", "unknown", "up", "to", "$0.5000"]
    (job,) = program("cost", "--by", "job", "--since", "1d", "--json").json
    assert (job["job"], job["unpriced"], job["assumed_calls"]) == ("one", 1, 1)
    assert (job["assumed_tokens"], job["assumed_cost"]) == (1000, 0.5)


async def corrected(home: Path) -> None:
    """A session with one call whose report could not be right."""
    most = Usage(input=900, output=100, requests=1, cost=0.5)
    async with SqliteJournal(home / "hermes.db", World()) as journal:
        lease, _ = await journal.create("one", [OPENED])
        settled = CallSettled(call="call_1", usage=most, certain=False, corrected=True)
        await journal.append(lease, [called("call_1", most), settled])


def test_corrected_reports_are_shown_as_such(program: Program) -> None:
    program.home.mkdir(exist_ok=True)
    asyncio.run(corrected(program.home))
    lines = program("cost").out.splitlines()
    assert lines[2].split() == ["m", "1", "0", "0", "-", "up", "to", "$0.5000"]
    assert lines[3] == "corrected: 1 call with an implausible report, counted as up to $0.5000"
    (line,) = program("cost", "--json").json
    assert (line["corrected_calls"], line["corrected_cost"]) == (1, 0.5)
    assert "the reported usage is not plausible; at most $0.500000" in program("trace", "one").out


def test_a_cap_is_shown_with_what_it_leaves(spent: Program) -> None:
    assert spent("config", "set", "budget.day", "2").code == 0
    assert spent("cost").out.splitlines()[-1] == "today $0.00 of $2.00 (budget.day)"


def test_the_day_to_begin_with_can_be_named(spent: Program) -> None:
    assert len(spent("cost", "--since", "2020-01-01", "--json").json) == 2
    assert spent("cost", "--since", "2199-01-01", "--json").json == []
    assert spent("cost", "--since", "yesterday").code == 2


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
    assert program("cost") == (0, "There are no model calls yet.\n", "")


def test_a_turn_that_a_cap_forbids_is_paused_with_the_next_step(scripted: Program) -> None:
    assert scripted("config", "set", "budget.task.tokens", "10").code == 0
    paused = scripted("-z", "hello")
    assert (paused.code, paused.out) == (1, "")
    assert paused.err.startswith("Paused: The cap for one answer of 10 tokens ")
    assert "`hermes config set budget.task.tokens 20`" in paused.err
    assert scripted("cost").out == "There are no model calls yet.\n"


def test_after_the_cap_is_lifted_the_work_goes_on(
    scripted: Program, model_server: ScriptedServer
) -> None:
    scripted("config", "set", "budget.job.tokens", "10")
    assert scripted("-z", "What is it?").code == 1
    assert scripted("config", "unset", "budget.job.tokens").code == 0
    model_server.add(says("It is this."))
    newest = scripted.sessions()[0]["id"]
    assert scripted("-z", "Go on", "--resume", newest).out == "It is this.\n"
    (request,) = model_server.requests
    assert [said.text for said in request.messages if said.role == "user"] == [
        "What is it?\n\nGo on"
    ]
