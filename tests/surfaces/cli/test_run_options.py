"""What a run is told about itself: its id, its folder, its time, the words it begins with."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, calls_many, says
from tests.surfaces.cli.program import Program, lines

FAR = "Pacific/Kiritimati"


def test_a_session_knows_its_id_where_that_is_wanted(
    scripted: Program, model_server: ScriptedServer
) -> None:
    model_server.add(says("One."), says("Two."))
    scripted("-z", "Hi")
    found = lines(scripted("-z", "Hi", "--pass-session-id", "--json"))
    told = [json.dumps(request.body) for request in model_server.requests]
    assert "Session ID" not in told[0]
    assert f"Session ID: {found[-1]['session_id']}" in told[1]


def test_a_session_goes_on_in_its_folder_or_in_this_one(
    scripted: Program, model_server: ScriptedServer, tmp_path: Path
) -> None:
    where = calls("terminal", command="pwd")
    model_server.add(says("Hello."), where, says("There."), where, says("Here."))
    session = str(lines(scripted("-z", "Hi", "--json"))[-1]["session_id"])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = f'cd "{elsewhere}" && hermes -z Where? -r {session}'
    scripted.shell(command)
    scripted.shell(f"{command} --no-restore-cwd")
    results = [json.dumps(model_server.requests[n].body["messages"][-1]) for n in (2, 4)]
    assert str(scripted.work) in results[0]
    assert str(elsewhere) in results[1]


def test_staying_here_makes_no_sense_for_a_new_session(program: Program) -> None:
    result = program("-z", "Hi", "--no-restore-cwd")
    assert (result.code, result.out) == (2, "")
    assert "add --resume ID" in result.err


def test_times_are_told_in_the_zone_that_is_set(program: Program) -> None:
    program.write(f"timezone: {FAR}\nmodel: {{provider: offline}}\n")
    days = {f"{datetime.now(ZoneInfo(FAR)):%Y%m%d_%H}"}
    told = program.process("-z", "calculate 6*7", "--json").stdout.splitlines()
    days.add(f"{datetime.now(ZoneInfo(FAR)):%Y%m%d_%H}")
    assert json.loads(told[-1])["session_id"][:11] in days


def test_a_zone_that_there_is_not_is_told_and_changes_nothing(program: Program) -> None:
    program.write("timezone: Mars/Olympus\nmodel: {provider: offline}\n")
    result = program("-z", "calculate 6*7")
    assert (result.code, result.out) == (0, "6*7 = 42\n")
    assert "unknown zone 'Mars/Olympus'" in result.err


def test_requests_begin_with_the_messages_of_a_file(
    scripted: Program, model_server: ScriptedServer
) -> None:
    scripted("config", "set", "prefill_messages_file", "first.json")
    first = [{"role": "user", "content": "Ping?"}, {"role": "assistant", "content": "Pong!"}]
    (scripted.home / "first.json").write_text(json.dumps(first))
    model_server.add(says("Hello."))
    session = str(lines(scripted("-z", "Hi", "--json"))[-1]["session_id"])
    sent = model_server.requests[0].body["messages"]
    assert [each["role"] for each in sent] == ["system", "user", "assistant", "user"]
    assert "Pong!" in json.dumps(sent[2])
    assert scripted.said(session) == ["Hi"]


def test_a_file_of_first_messages_that_cannot_be_used_is_told_and_left_out(
    scripted: Program, model_server: ScriptedServer
) -> None:
    scripted("config", "set", "prefill_messages_file", "first.json")
    model_server.add(says("Hello."), says("Hello."))
    assert "first.json is skipped (No such file" in scripted("-z", "Hi").err
    (scripted.home / "first.json").write_text('[{"role": "system", "content": "Obey."}]')
    assert "first.json is skipped (" in scripted("-z", "Hi").err
    assert [len(request.body["messages"]) for request in model_server.requests] == [2, 2]


def test_a_call_that_takes_too_long_is_given_up_and_the_others_keep_their_results(
    scripted: Program, model_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scripted.work / "note.txt").write_text("The kettle is blue.")
    monkeypatch.setenv("HERMES_CONCURRENT_TOOL_TIMEOUT_S", "1")
    long, short = {"command": "sleep 50"}, {"path": "note.txt"}
    model_server.add(calls_many(("terminal", long), ("read_file", short)), says("So be it."))
    assert scripted("-z", "Both").out == "So be it.\n"
    first, second = model_server.requests[1].body["messages"][-2:]
    assert "took too long and was given up" in json.dumps(first)
    assert "The kettle is blue." in json.dumps(second)
