"""`hermes chat -q`: one question, its answer, and how to go on."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says
from tests.surfaces.cli.chat.pane import HERMES

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def chat(
    *arguments: str,
    home: Path,
    given: str | None = None,
    server: ScriptedServer | None = None,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "HERMES_HOME": str(home / "hermes")}
    env |= more
    if server:
        env |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
    before = ("-m", "test") if server else ("--provider", "offline")
    return subprocess.run(
        [HERMES, *before, "chat", *arguments],
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=home,
    )


def test_the_answer_is_on_stdout_and_the_session_on_stderr(tmp_path: Path) -> None:
    done = chat("-q", "what is 2 + 3", home=tmp_path)
    assert (done.returncode, "5" in done.stdout) == (0, True)
    found = re.search(r"^session: (\S+)$", done.stderr, re.MULTILINE)
    assert found
    again = chat("-q", "hello", "--source", "script", home=tmp_path)
    assert f"session: {found[1]}" not in again.stderr


def test_quiet_says_nothing_but_the_answer(tmp_path: Path) -> None:
    done = chat("-Q", "-q", "what is 2 + 3", home=tmp_path)
    assert done.stderr == ""
    assert chat("-q", "hello", home=tmp_path, HERMES_QUIET="1").stderr == ""


def test_what_is_piped_in_is_added(tmp_path: Path, model_server: ScriptedServer) -> None:
    model_server.add(says("Short."))
    done = chat("-q", "summarise", home=tmp_path, given="a long text\n", server=model_server)
    assert done.stdout == "Short.\n"
    assert model_server.requests[0].last_text == "summarise\n\na long text"


def test_a_question_can_come_from_a_file(tmp_path: Path, model_server: ScriptedServer) -> None:
    model_server.add(says("Yes."), says("Yes again."))
    (tmp_path / "question.txt").write_text("Is it so?")
    chat("--query-file", "question.txt", home=tmp_path, server=model_server)
    chat("--query-file", "-", home=tmp_path, given="And so?", server=model_server)
    assert [each.last_text for each in model_server.requests] == ["Is it so?", "And so?"]


def test_references_are_resolved(tmp_path: Path, model_server: ScriptedServer) -> None:
    model_server.add(says("It says hello."))
    (tmp_path / "note.txt").write_text("hello from the note\n")
    chat("-q", "What does @file:note.txt say?", home=tmp_path, server=model_server)
    assert "hello from the note" in model_server.requests[0].last_text


def test_a_picture_is_sent_along(tmp_path: Path, model_server: ScriptedServer) -> None:
    model_server.add(says("A picture."))
    (tmp_path / "a.png").write_bytes(PNG)
    chat("-q", "what is it?", "--image", "a.png", home=tmp_path, server=model_server)
    assert "data:image/png;base64" in model_server.requests[0].raw.decode()


@pytest.mark.parametrize(
    "arguments", [("-q", " "), ("-Q",), ("-q", "a", "--query-file", "b"), ("--image", "nosuch")]
)
def test_wrong_usage_is_one_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = chat(*arguments, home=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_without_a_terminal_there_is_no_chat(tmp_path: Path) -> None:
    done = chat(home=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "hermes -z" in done.stderr


def test_options_behind_chat_mean_the_same_as_before_it(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    model_server.add(says("One."), says("Two."))
    first = chat("-q", "Hi", "-m", "other", "-t", "file", home=tmp_path, server=model_server)
    assert first.returncode == 0, first.stderr
    again = chat("-q", "And?", "-c", home=tmp_path, server=model_server)
    session = re.search(r"session: (\S+)", first.stderr)
    assert session is not None
    assert f"session: {session[1]}" in again.stderr
    assert model_server.requests[0].body["model"] == "other"
    named = {each["function"]["name"] for each in model_server.requests[0].body["tools"]}
    assert "terminal" not in named
    assert "read_file" in named
