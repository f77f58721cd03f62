"""`hermes replay`, and the commands around it: export to be replayed, fork to another model."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.surfaces.cli.program import Program, lines


@pytest.fixture
def recorded(
    program: Program, model_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> Program:
    """A program that records, with a model that reads a file and answers."""
    url = f"{model_server.url}/v1"
    model = f'model: {{default: scripted, provider: custom, base_url: "{url}"}}\n'
    program.write(f"{model}sessions: {{record: true}}\n")
    program.work.joinpath("a.txt").write_text("alpha\n")
    model_server.add(calls("read_file", path="a.txt"), says("It says alpha."))
    return program


def asked(program: Program) -> str:
    return str(lines(program("-z", "Read it.", "--json"))[-1]["session_id"])


def test_a_session_of_this_home_is_played_by_its_id(recorded: Program) -> None:
    session = asked(recorded)
    result = recorded("replay", session[:17])
    assert (result.code, result.err) == (0, "")
    assert result.out == "Identical: 13 records, 2 requests, the same hashes.\n"


def test_json_has_all_columns(recorded: Program) -> None:
    session = asked(recorded)
    found = recorded("replay", session, "--json").json
    assert found == {
        "identical": True,
        "session_id": session,
        "records": 13,
        "played": 13,
        "requests": 2,
        "hashes": "same",
        "restarts": [],
        "words": [],
        "divergence": None,
        "request": None,
        "after": [],
    }


def test_an_exported_file_is_played_in_another_home(recorded: Program, tmp_path: Path) -> None:
    session = asked(recorded)
    file = tmp_path / "bug.gz"
    assert recorded("sessions", "export", str(file), "--session-id", session, "--format", "replay")
    assert gzip.decompress(file.read_bytes()).startswith(b'{"header":{"format":"hermes-replay-1"')
    recorded.work.joinpath("a.txt").unlink()
    elsewhere = {"HERMES_HOME": str(tmp_path / "elsewhere")}
    result = recorded.process("replay", str(file), env=elsewhere)
    if b"There is no command" not in result.stderr:
        assert (result.returncode, result.stderr) == (0, b"")
        assert result.stdout.startswith(b"Identical: 13 records")
    assert recorded("replay", str(file)).code == 0


def test_a_changed_file_is_named_as_damaged(recorded: Program, tmp_path: Path) -> None:
    session = asked(recorded)
    file = tmp_path / "bug.jsonl"
    recorded("sessions", "export", str(file), "--session-id", session, "--format", "replay")
    text = gzip.decompress(file.read_bytes()).decode()
    file.write_text(text.replace('"text":"1|alpha"', '"text":"1|omega"'))
    result = recorded("replay", str(file))
    assert (result.code, result.out) == (2, "")
    assert "is damaged: it was changed after the export; export it again." in result.err


def test_live_tools_run_in_a_copy(recorded: Program) -> None:
    session = asked(recorded)
    assert recorded("replay", session, "--tools", "live").code == 0
    recorded.work.joinpath("a.txt").write_text("omega\n")
    result = recorded("replay", session, "--tools", "live")
    assert result.code == 1
    assert "record 9 (tool_finished)" in result.out and "1|omega" in result.out


def test_a_session_without_a_tape_is_played_from_its_records(recorded: Program) -> None:
    recorded("config", "set", "sessions.record", "false")
    result = recorded("replay", asked(recorded))
    assert result.code == 0
    assert "replies were taken from the records" in result.out
    assert result.out.endswith("Identical: 13 records, the same hashes.\n")


@pytest.mark.parametrize("content", ["", "hello", '{"end":0}\n'])
def test_an_unusable_file_is_a_usage_error(recorded: Program, content: str) -> None:
    recorded.work.joinpath("bug.gz").write_text(content)
    result = recorded("replay", "bug.gz")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: bug.gz ")


def test_a_session_that_is_not_there_is_a_usage_error(recorded: Program) -> None:
    result = recorded("replay", "nothing")
    assert result.code == 2 and "There is no session “nothing”" in result.err


def test_a_replay_is_exported_of_one_session_and_masked(recorded: Program) -> None:
    assert recorded("sessions", "export", "-", "--format", "replay").code == 2
    options = ("--session-id", asked(recorded), "--format", "replay", "--no-redact")
    assert recorded("sessions", "export", "-", *options).code == 2


def test_a_fork_goes_on_with_another_model(recorded: Program, model_server: ScriptedServer) -> None:
    session = asked(recorded)
    made = recorded("sessions", "fork", session, "--at", "9", "-m", "other", "--json").json
    assert (made["model"], made["provider"]) == ("other", "custom")
    before = model_server.requests[-1]
    # The turn that was cut off at record 9 is finished first.
    model_server.add(says("Still alpha."), says("Yes."))
    result = recorded("-z", "Sure?", "--resume", made["session_id"])
    assert result.out == "Still alpha.\nYes.\n"
    _, _, first, last = model_server.requests
    assert (first.model, last.model) == ("other", "other")
    system, *rest = first.body["messages"]
    then, *rest_then = before.body["messages"]
    assert rest == rest_then
    assert "Model: other" in system["content"]
    assert system["content"].replace("Model: other", f"Model: {before.model}") == then["content"]
    assert recorded("replay", made["session_id"]).code == 0


def test_a_fork_keeps_its_model_unless_told_otherwise(recorded: Program) -> None:
    session = asked(recorded)
    made = recorded("sessions", "fork", session, "--json").json
    assert (made["model"], made["provider"]) == ("scripted", "custom")
    events = lines(recorded("trace", made["session_id"], "--json"))
    assert events[-1]["type"] == "session_opened"
