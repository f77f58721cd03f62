"""Hints of commands: what they advise is true of this home, and can be done."""

from __future__ import annotations

import json

from tests.surfaces.cli.program import OFFLINE, Program


def advice(program: Program, config: str) -> dict[str, str]:
    program.write(config)
    rows = program("config", "check", "--json").json
    return {row["key"]: row["fix"] for row in rows if row.get("key")}


def test_an_unknown_key_is_renamed_only_if_the_right_one_is_free(program: Program) -> None:
    assert advice(program, "agent: {max_turn: 5}\n") == {
        "agent.max_turn": "rename it to agent.max_turns"
    }
    both = advice(program, "agent: {max_turn: 5, max_turns: 6}\n")["agent.max_turn"]
    command = "hermes config unset agent.max_turn"
    assert both == f"`{command}` removes it; agent.max_turns is in the file, too"
    assert program(*command.split()[1:]).code == 0
    assert program("config", "check").out.count("⚠") == program("config", "check").out.count("mode")
    twice = advice(program, "agent: {max_turns: 6}\nagnt: {max_turns: 7}\n")
    assert twice["agnt"] == "move its settings below agent, which is in the file, too"


def test_an_old_key_is_named_with_its_successor(program: Program) -> None:
    found = advice(program, "fallback_model: {provider: openrouter, model: x}\n")
    assert found == {"fallback_model": "move its value to fallback_providers"}


def test_advice_for_a_wrong_type_works(program: Program) -> None:
    found = advice(program, "terminal: {timeout: abc}\n")
    assert found["terminal.timeout"].endswith("`hermes config unset terminal.timeout`")
    assert program("config", "unset", "terminal.timeout").code == 0
    assert "terminal.timeout" not in program("config", "check").out


def test_a_log_without_lines_is_not_promised_by_the_next_session(program: Program) -> None:
    program.ask("calculate 6*7")
    told = program("logs")
    assert told.code == 0
    assert f"Nothing has been logged to {program.home}/logs/agent.log yet" in told.err
    folder = program.home / "logs"
    folder.mkdir(exist_ok=True)
    line = "2026-02-25 14:30:52.123 INFO [s1] hermes.core.x: hello\n"
    (folder / "agent.log").write_text(line)
    assert program("logs").out == line
    assert program("-p", "work", "logs").out == ""


def test_an_imported_session_without_a_model_says_so_when_it_is_resumed(program: Program) -> None:
    file = program.work / "old.jsonl"
    rows = [
        {"session": "old", "at": 1_700_000_000, "role": "user", "text": "hello"},
        {"session": "old", "at": 1_700_000_001, "role": "assistant", "text": "hi"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert program("sessions", "import", str(file)).code == 0
    session = program.sessions()[0]["id"]
    program.write("model: {provider: offline}\n")
    resumed = program("-r", session, "-z", "calculate 6*7")
    assert resumed.code == 0
    assert "()" not in resumed.err
    assert (
        "This session was imported without the name of its model; "
        "using offline-assistant." in resumed.err
    )
    assert "()" not in program(*OFFLINE, "-r", session, "-z", "calculate 6*7").err
