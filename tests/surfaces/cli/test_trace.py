"""`hermes trace`: what was done, who allowed it, with which model, at what price."""

from __future__ import annotations

from hermes.core.messages import Usage
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, costs, fails, says
from tests.surfaces.cli.past import add_session
from tests.surfaces.cli.program import Program, lines


def steps(program: Program, session: str) -> list[str]:
    """The words of a trace without numbers and times."""
    result = program("trace", session)
    assert (result.code, result.err) == (0, "")
    return [line[28:] for line in result.out.splitlines()]


def test_a_turn_is_told_step_by_step(scripted: Program, model_server: ScriptedServer) -> None:
    (scripted.work / "a.txt").write_text("buy marmalade")
    used = Usage(input=100, output=20)
    model_server.add(costs(calls("read_file", path="a.txt"), used), costs(says("Done."), used))
    session = lines(scripted("-z", "read a.txt", "--json"))[0]["session_id"]
    told = steps(scripted, session)
    assert told[0] == f"opened by cli for owner in {scripted.work}"
    assert told[1] == "user: read a.txt"
    assert told[2] == "calls scripted (custom) for chat"
    assert told[3] == "scripted: (calls tools) [100 in, 20 out, $0.000000]"
    assert told[4].startswith(f"read_file: read {scripted.work}/a.txt — allowed")
    assert told[5].startswith("read_file done in 0.")
    assert "buy marmalade" in told[5]
    assert told[7] == "scripted: Done. [100 in, 20 out, $0.000000]"
    assert told[8].startswith("turn ended: done")


def test_a_refusal_says_why(scripted: Program, model_server: ScriptedServer) -> None:
    model_server.add(calls("terminal", command="rm -rf /"), says("I may not."))
    session = lines(scripted("-z", "go", "--json"))[0]["session_id"]
    told = steps(scripted, session)
    assert any(line.startswith("terminal: rm -rf / — denied: ") for line in told)
    assert any(line.startswith("terminal failed in 0.") for line in told)


def test_a_question_that_nobody_could_answer_is_told(
    scripted: Program, model_server: ScriptedServer
) -> None:
    model_server.add(calls("terminal", command="git push"), says("No."))
    session = lines(scripted("-z", "go", "--json"))[0]["session_id"]
    told = steps(scripted, session)
    assert any(line.startswith("terminal: git push — needs a") for line in told)


def test_a_failed_turn_says_what_happened(scripted: Program, model_server: ScriptedServer) -> None:
    model_server.add(fails(401, "who are you?"))
    stream = lines(scripted("-z", "go", "--json"))
    told = steps(scripted, stream[0]["session_id"])
    assert told[-1] == f"turn ended: failed {stream[-1]['error']}"


def test_titles_and_other_models_are_part_of_the_story(program: Program) -> None:
    add_session(program.home, "old")
    program("sessions", "rename", "old", "Sums")
    program.ask("calculate 6*7", "-r", "Sums")
    told = steps(program, "Sums")
    assert told.index("title: Sums") < told.index("model is now offline-assistant (offline)")


def test_every_line_of_json_has_its_place(program: Program) -> None:
    session = program.session("calculate 6*7")
    found = lines(program("trace", session[:-1], "--json"))
    assert [line["n"] for line in found] == list(range(1, len(found) + 1))
    assert {line["session_id"] for line in found} == {session}
    assert len({line["turn_id"] for line in found if "turn_id" in line}) == 1
    assert all(line["type"] and line["at"] > 0 for line in found)


def test_a_fork_tells_what_it_shares_too(program: Program) -> None:
    parent = program.session("calculate 6*7")
    child = program("sessions", "fork", parent).out.strip()
    above, below = (lines(program("trace", each, "--json")) for each in (parent, child))
    assert below[: len(above)] == above
    assert below[len(above)]["parent"] == parent
