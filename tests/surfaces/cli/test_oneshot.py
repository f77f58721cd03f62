"""`hermes -z`: one turn, its answer or its events, its accounts, and going on with a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.codec.json import decode
from hermes.core.events import DurableEvent, Event
from hermes.core.messages import Usage
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, calls_many, costs, fails, says
from tests.surfaces.cli.past import add_session
from tests.surfaces.cli.program import Program, lines

SUM = "calculate 6*7"


def usage_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_the_answer_and_nothing_else_is_on_stdout(program: Program) -> None:
    run = program.process("--provider", "offline", "-z", SUM)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"6*7 = 42\n", b"")


def test_the_choice_of_a_model_is_said_on_stderr(program: Program) -> None:
    program.write("model: {provider: offline}\n")
    assert program("-z", SUM) == (0, "6*7 = 42\n", "")


def test_every_event_is_a_line_that_can_be_decoded(program: Program) -> None:
    (program.work / "notes.txt").write_text("buy marmalade")
    result = program.process("--provider", "offline", "--json", "-z", "read notes.txt")
    assert (result.returncode, result.stderr) == (0, b"")
    raw = result.stdout.splitlines()
    kinds = [json.loads(line)["type"] for line in raw]
    assert [kinds[0], kinds[1], kinds[-1]] == ["session_opened", "message_received", "turn_ended"]
    assert {"model_called", "tool_intended", "tool_finished", "text_delta"} <= set(kinds)
    for line in raw:
        decode(Event, line)  # type: ignore[arg-type]


def test_the_stream_has_all_that_is_stored(program: Program) -> None:
    (program.work / "notes.txt").write_text("buy marmalade")
    stream = lines(program.ask("read notes.txt", "--json"))
    stored = [line for line in stream if "n" in line]
    assert [line["n"] for line in stored] == list(range(1, len(stored) + 1))
    assert stored == lines(program("trace", stored[0]["session_id"], "--json"))
    for line in stored:
        decode(DurableEvent, json.dumps(line))  # type: ignore[arg-type]


def test_words_between_calls_are_not_the_answer(
    scripted: Program, model_server: ScriptedServer
) -> None:
    (scripted.work / "a.txt").write_text("a")
    look = calls_many(("read_file", {"path": "a.txt"}), text="Let me look.")
    model_server.add(look, says("It says a."))
    assert scripted("-z", "what does it say?") == (0, "It says a.\n", "")


def test_a_turn_that_ends_early_is_explained_and_fails(
    scripted: Program, model_server: ScriptedServer
) -> None:
    model_server.add(*[calls("todo")] * 3)
    result = scripted("--max-turns", "1", "-z", "hi", "--usage-file", "u.json")
    assert result.code == 1
    assert result.out.startswith("The steps of this turn are used up.")
    assert "Stopped after 1 model calls" in result.err
    facts = usage_of(scripted.work / "u.json")
    assert (facts["completed"], facts["error"][:7]) == (False, "Stopped")


def test_a_failed_call_is_one_line_and_exit_code_1(
    scripted: Program, model_server: ScriptedServer
) -> None:
    model_server.add(fails(401, "who are you?"))
    result = scripted("-z", "hi", "--usage-file", "u.json")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: ")
    facts = usage_of(scripted.work / "u.json")
    assert (facts["completed"], facts["model"]) == (False, "scripted")
    assert facts["error"] in result.err


def test_the_usage_file_tells_what_this_run_has_used(
    scripted: Program, model_server: ScriptedServer
) -> None:
    used = Usage(input=100, output=20, cache_read=40, reasoning=5)
    model_server.add(costs(says("one"), used), costs(says("two"), used))
    for name in ("first.json", "second.json"):
        newest = ("-c",) if name == "second.json" else ()
        assert scripted(*newest, "-z", "go", "--usage-file", name).code == 0
    first, second = (usage_of(scripted.work / name) for name in ("first.json", "second.json"))
    assert (
        first
        == second
        == {
            "session_id": first["session_id"],
            "model": "scripted",
            "provider": "custom",
            "api_calls": 1,
            "input_tokens": 100,
            "output_tokens": 20,
            "cache_read_tokens": 40,
            "cache_write_tokens": 0,
            "reasoning_tokens": 5,
            "estimated_cost_usd": 0.0,
            "completed": True,
            "error": "",
        }
    )


@pytest.mark.parametrize(
    "line",
    [
        "--provider nosuch -z hi",
        "--provider openrouter -z hi",
        "--provider offline -t nosuch -z hi",
        "--provider offline -r nosuch -z hi",
        "--provider offline -c -z hi",
        "--profile nosuch -z hi",
    ],
)
def test_the_usage_file_is_written_even_if_no_turn_began(program: Program, line: str) -> None:
    result = program(*line.split(), "--usage-file", "u.json")
    assert result.code in (1, 2)
    facts = usage_of(program.work / "u.json")
    assert (facts["completed"], facts["api_calls"], facts["session_id"]) == (False, 0, "")
    assert facts["error"]
    assert facts["error"] in result.err


def test_a_usage_file_that_cannot_be_written_stops_the_run_before_it_costs(
    program: Program,
) -> None:
    for path in (program.work, program.work / "no" / "such.json"):
        result = program.ask(SUM, "--usage-file", str(path))
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"error: {path} cannot be written")
    assert not program.home.exists()


def test_the_usage_is_complete_though_nobody_reads_the_events(program: Program) -> None:
    script = "hermes --provider offline --json --usage-file u.json -z help | head -1"
    assert json.loads(program.shell(script).out)["type"] == "session_opened"
    assert usage_of(program.work / "u.json")["completed"]


@pytest.mark.parametrize("way", ["id", "beginning", "title", "newest", "newest of a title"])
def test_a_session_goes_on(program: Program, way: str) -> None:
    add_session(program.home, "20250101_000000_aaaaaa", days=300, title="Other")
    mine = program.session(SUM)
    program("sessions", "rename", mine, "Sums")
    options = {
        "id": ("-r", mine),
        "beginning": ("--resume", mine[:-1]),
        "title": ("-r", "Sums"),
        "newest": ("-c",),
        "newest of a title": ("--continue", "Sums"),
    }[way]
    stream = lines(program.ask("calculate 1+2", "--json", *options))
    assert {line["session_id"] for line in stream} == {mine}
    assert stream[0]["type"] == "message_received"
    assert program.said(mine) == [SUM, "calculate 1+2"]


def test_the_newest_session_is_the_one_last_used_here(program: Program) -> None:
    add_session(program.home, "old", days=2)
    add_session(program.home, "older", days=3)
    add_session(program.home, "elsewhere", days=1, source="import")
    assert program.session(SUM, "-c") == "old"
    assert program.session(SUM, "-r", "older") == "older"
    assert program.session(SUM, "-c") == "older"


def test_a_title_means_the_newest_of_its_line(program: Program) -> None:
    add_session(program.home, "one", title="plan")
    add_session(program.home, "two", title="plan #2", days=4)
    assert program.session(SUM, "-c", "plan") == "two"
    assert program.session(SUM, "-r", "plan") == "two"


def test_a_beginning_that_several_have_names_them(program: Program) -> None:
    for name in ("2026_a", "2026_b"):
        add_session(program.home, name)
    result = program.ask(SUM, "-r", "2026")
    assert (result.code, result.out) == (1, "")
    first, *rest = result.err.splitlines()
    assert first == "error: Several sessions begin with “2026”; type more of the id."
    assert sorted(rest) == ["  2026_a", "  2026_b"]


def test_an_unknown_session_is_an_error_that_names_the_closest(program: Program) -> None:
    for name, title in (("a1", "Garden"), ("a2", "Docker deploy"), ("a3", "Taxes"), ("a4", "")):
        add_session(program.home, name, title=title, said=f"about {title}")
    result = program.ask(SUM, "-r", "dokcer depoly")
    assert (result.code, result.out) == (1, "")
    first, *rest = result.err.splitlines()
    assert "There is no session “dokcer depoly”; `hermes sessions list`" in first
    assert rest[0] == "  a2 Docker deploy"
    assert len(rest) == 3


def test_a_session_whose_model_is_out_of_reach_goes_on_with_another(program: Program) -> None:
    program.write("model: {provider: offline}\n")
    add_session(program.home, "old", title="Sums")
    result = program("-r", "old", "-z", SUM)
    assert (result.code, result.out) == (0, "6*7 = 42\n")
    gone, other = result.err.splitlines()
    assert gone.startswith("/plans no longer exists; this session continues in ")
    assert other == "m1 (p1) is not available now; using offline-assistant."


def test_bytes_that_are_no_text_are_taken_as_far_as_possible(program: Program) -> None:
    run = program.process("--provider", "offline", "-z", "calculate 6*7 \udcff")
    assert run.returncode == 0
    assert b"Traceback" not in run.stderr
    assert program.process("sessions", "show", "\udcff").returncode == 1
    assert program.process("sessions", "search", "\udcff").returncode == 0


def test_a_program_that_starts_this_one_can_name_the_source(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_SESSION_SOURCE", "nightly")
    program.ask(SUM)
    assert [info["source"] for info in program.sessions()] == ["nightly"]


def test_an_answer_after_edits_that_all_failed_is_found_out(
    scripted: Program, model_server: ScriptedServer
) -> None:
    edit = calls("patch", path="nosuch.txt", old_string="a", new_string="b")
    model_server.add(edit, says("All done."))
    result = scripted("-z", "edit it")
    assert result.out == "All done.\n"
    assert result.err == "No file was changed: every edit failed (nosuch.txt).\n"


def test_model_calls_are_written_down_without_secrets_on_request(
    scripted: Program, model_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-or-v1-0123456789abcdef0123"
    scripted("config", "set", "OPENROUTER_API_KEY", key)
    monkeypatch.setenv("HERMES_DUMP_REQUESTS", "1")
    model_server.add(fails(500), says(f"The key is {key}."))
    assert scripted("-z", "say the key").code == 0
    first, second = sorted((scripted.home / "logs" / "requests").iterdir())
    pages = [json.loads(path.read_text()) for path in (first, second)]
    assert [page["status"] for page in pages] == [500, 200]
    assert pages[1]["request"]["messages"][-1]["content"] == "say the key"
    assert "The key is" in str(pages[1]["answer"])
    assert key not in first.read_text() + second.read_text()
    assert first.stat().st_mode & 0o777 == 0o600


def test_a_command_knows_the_session_that_it_runs_for(
    scripted: Program, model_server: ScriptedServer
) -> None:
    script = (
        'echo "$HERMES_SESSION_ID, $HERMES_HOME, $HERMES_SESSION_PLATFORM, $HERMES_INTERACTIVE."'
    )
    model_server.add(calls("terminal", command=script), says("Done."))
    scripted("profile", "create", "work", "--clone")
    stream = lines(scripted("-p", "work", "--json", "-z", "who am I?"))
    (result,) = [line for line in stream if line["type"] == "tool_finished"]
    home = scripted.home / "profiles" / "work"
    assert f"{stream[0]['session_id']}, {home}, cli, ." in json.dumps(result)
