"""`hermes logs`: the newest lines, filtered, and what is written while one looks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import pytest

from hermes.core.errors import UsageError
from hermes.surfaces.cli.commands.logs import Tail, age_seconds, parse_entries
from tests.surfaces.cli.terminal import Terminal


def line(text: str, *, level: str = "INFO", session: str = "-", age: float = 0) -> str:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - age))
    return f"{at}.000 {level} [{session}] hermes.x: {text}\n"


@pytest.fixture
def logs(hermes: Terminal) -> Path:
    folder = hermes.home / "logs"
    folder.mkdir(parents=True)
    return folder


def texts(out: str) -> list[str]:
    return [found.partition("hermes.x: ")[2] or found for found in out.splitlines()]


@pytest.mark.parametrize("name", ["agent", "errors", "mcp", "list"])
def test_an_empty_home_has_no_logs_and_gets_none(hermes: Terminal, name: str) -> None:
    result = hermes("logs", name)
    assert (result.code, result.out) == (0, "")
    assert "no" in result.err
    assert not hermes.home.exists()


def test_the_newest_entries_are_shown_across_rotated_files(hermes: Terminal, logs: Path) -> None:
    (logs / "agent.log.2").write_text(line("one"))
    (logs / "agent.log.1").write_text(line("two") + line("three"))
    (logs / "agent.log").write_text(line("four") + line("five"))
    assert texts(hermes("logs").out) == ["one", "two", "three", "four", "five"]
    assert texts(hermes("logs", "-n", "3").out) == ["three", "four", "five"]
    assert texts(hermes("logs", "-n", "0").out) == []


def test_entries_are_chosen_by_level_session_and_age(hermes: Terminal, logs: Path) -> None:
    (logs / "agent.log").write_text(
        line("old", session="s1", age=7200)
        + line("mine", session="s1")
        + line("odd", session="s2", level="WARNING")
        + line("bad", session="s2", level="ERROR")
    )
    assert texts(hermes("logs", "--level", "warning").out) == ["odd", "bad"]
    assert texts(hermes("logs", "--session", "s1").out) == ["old", "mine"]
    assert texts(hermes("logs", "--since", "1h").out) == ["mine", "odd", "bad"]
    assert texts(hermes("logs", "--since", "1h", "--session", "s1").out) == ["mine"]


def test_a_traceback_stays_with_its_line(hermes: Terminal, logs: Path) -> None:
    (logs / "errors.log").write_text(
        line("crashed", level="ERROR") + "  Traceback\n  ValueError: x\n" + line("fine")
    )
    out = hermes("logs", "errors", "--level", "ERROR").out
    assert texts(out) == ["crashed", "  Traceback", "  ValueError: x"]


def test_entries_as_json(hermes: Terminal, logs: Path) -> None:
    (logs / "agent.log").write_text(line("hello", session="s1") + "  more\n")
    (entry,) = map(json.loads, hermes("logs", "--json").out.splitlines())
    assert entry.pop("at").startswith("20")
    assert entry == {
        "level": "INFO",
        "session": "s1",
        "logger": "hermes.x",
        "text": "hello\n  more",
    }


def test_the_files_are_listed(hermes: Terminal, logs: Path) -> None:
    (logs / "agent.log").write_text("x" * 10)
    (logs / "agent.log.1").write_text("x" * 20)
    found = [json.loads(entry) for entry in hermes("logs", "list", "--json").out.splitlines()]
    assert [(Path(entry["path"]).name, entry["bytes"]) for entry in found] == [
        ("agent.log", 10),
        ("agent.log.1", 20),
    ]
    assert "agent.log.1" in hermes("logs", "list").out


def test_what_servers_say_is_shown_by_server_masked_and_harmless(
    hermes: Terminal, logs: Path
) -> None:
    (logs / "mcp").mkdir()
    (logs / "mcp" / "files.log.1").write_text("first\n")
    (logs / "mcp" / "files.log").write_text("second\nthird\x1b[2J\n")
    (logs / "mcp" / "mail.log").write_text("key sk-or-v1-0123456789abcdef0123456789abcdef\n")
    shown = hermes("logs", "mcp", "-n", "2")
    assert shown.code == 0
    first, second, third = shown.out.splitlines()
    assert first == "[files] second"
    assert second.startswith("[files] third")
    assert "\x1b" not in shown.out
    assert third.startswith("[mail] key ")
    assert "0123456789abcdef0123" not in third
    assert json.loads(hermes("logs", "mcp", "-n", "9", "--json").out.splitlines()[0]) == {
        "server": "files",
        "text": "first",
    }
    assert hermes("logs", "mcp", "--session", "x").code == 2
    assert str(logs / "mcp" / "mail.log") in hermes("logs", "list").out


def test_lines_that_are_no_log_are_passed_over() -> None:
    assert list(parse_entries(["garbage\n", "2026-01-01 00:00:00.000 ODD [-] x: y\n", "\n"])) == []


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1h", 3600), ("2", 172800)])
def test_ages_have_units(text: str, seconds: float) -> None:
    assert age_seconds(text) == seconds


def test_what_is_no_age_is_wrong_usage(hermes: Terminal) -> None:
    with pytest.raises(UsageError):
        age_seconds("soon")
    assert hermes("logs", "--since", "soon").code == 2
    assert hermes("logs", "nosuch").code == 2


def test_a_tail_follows_the_file_through_rotation(logs: Path) -> None:
    path = logs / "agent.log"
    path.write_text("before\n")
    tail = Tail(path)
    assert tail.new_lines() == []
    with path.open("a") as file:
        file.write("one\nhal")
        file.flush()
        assert tail.new_lines() == ["one\n"]
        file.write("f\n")
    path.rename(logs / "agent.log.1")
    with (logs / "agent.log.1").open("a") as file:
        file.write("last of the old\n")
    path.write_text("first of the new\n")
    assert tail.new_lines() == ["half\n", "last of the old\n", "first of the new\n"]
    path.unlink()
    assert tail.new_lines() == []
    path.write_text("again\n")
    assert tail.new_lines() == ["again\n"]
    tail.close()


def test_following_goes_on_in_the_next_file(hermes: Terminal, logs: Path) -> None:
    path = logs / "agent.log"
    path.write_text(line("old", level="ERROR"))
    code = "import sys; from hermes.surfaces.cli.running import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "logs", "-f", "-n", "1", "--level", "WARNING"]
    source = Path(__file__).parents[3] / "src"
    env = {**os.environ, "PYTHONPATH": str(source), "HERMES_HOME": str(hermes.home)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        guard = Timer(60, process.kill)
        guard.start()
        assert texts(process.stdout.readline()) == ["old"]
        path.rename(logs / "agent.log.1")
        path.write_text(line("too fine") + line("new", level="ERROR"))
        assert texts(process.stdout.readline()) == ["new"]
        guard.cancel()
        process.terminate()
