"""What people, programs and logs get to see of secrets: nothing, on any surface."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hermes import AIAgent
from hermes.config.home import Home
from hermes.config.load import load
from hermes.config.logs import start_logging
from hermes.credentials.redaction import SecretRedactor
from hermes.testing.faults import paced
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.secrecy.canaries import CANARIES, found, told
from tests.secrecy.stage import Stage
from tests.surfaces.cli.chat.pane import Pane


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def careless(request: Request) -> Step:
    """Reads the notes, says all of them, and names the session after them."""
    if "Name the conversation" in request.raw.decode():
        return says(told()[20:80])
    if request.results:
        return paced(says(told()), chunk=11)
    return calls("terminal", command="cat notes.txt")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_the_chat_shows_stores_and_sends_no_secret(stage: Stage) -> None:
    with ScriptedServer.in_thread(careless, strict=False) as server:
        pane = Pane(stage.work, stage.env(server), columns=200, rows=50)
        try:
            pane.hermes("-m test --provider custom --yolo")
            typed = f"look at the notes, not at {_key(7)} or {_key(19)}"
            pane.say(typed)
            pane.wait(lambda _: _titles(stage.home / "hermes.db") == 1)
            pane.wait_for("[secret:")
            # What was typed stands where it was typed, and nowhere else.
            screen = pane.everything().replace("\n", "")
            stage.seen.append(screen.replace(_key(7), "", 1).replace(_key(19), "", 1).encode())
        finally:
            pane.close()
        stage.see_requests(server, typed)
    assert stage.leaks() == {}


def _titles(file: Path) -> int:
    """How many sessions have a name by now; none while the journal is only being made."""
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            query = "SELECT count(*) FROM events WHERE kind = 'titled'"
            return int(db.execute(query).fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_callbacks_are_told_no_secret(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in stage.env().items():
        monkeypatch.setenv(name, value)
    heard: list[str] = []

    def hear(*values: object, **named: object) -> None:
        heard.append(repr((values, named)))

    with ScriptedServer.in_thread(careless, strict=False) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        with AIAgent(
            model="test",
            provider="custom",
            home=stage.home,
            cwd=stage.work,
            yolo=True,
            stream_delta_callback=hear,
            tool_progress_callback=hear,
            tool_start_callback=hear,
            tool_complete_callback=hear,
            step_callback=hear,
            status_callback=hear,
            event_callback=hear,
        ) as agent:
            answered = agent.run_conversation(told())
            # A caller gets its own message back as it wrote it.
            assert answered["messages"].pop(0)["content"] == told()
            heard.append(repr(answered))
    assert len(heard) > 10
    assert found("\n".join(heard).encode()) == []
    assert stage.leaks() == {}


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    yield logger


def test_tracebacks_in_logs_and_on_the_terminal_are_masked(
    stage: Stage, root_logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    env = stage.env()
    config = load(Home(stage.home), env=env)
    log = start_logging(config, redact=SecretRedactor(config, env).line, verbose=True)
    try:
        for canary in CANARIES:
            try:
                raise RuntimeError(canary.text)
            except RuntimeError:
                root_logger.exception("tool crashed", extra={"why": canary.text})
    finally:
        log.close()
    written = stage.home.joinpath("logs/errors.log").read_bytes()
    assert written.count(b"Traceback") == len(CANARIES)
    plain = written.replace(b"\\n", b"\n")
    keys_of_logins = {canary.name for canary in CANARIES[18:20]}
    assert {*found(plain), *found(capsys.readouterr().err.encode())} <= keys_of_logins


def test_an_error_that_ends_the_program_is_told_without_secrets(stage: Stage) -> None:
    config = stage.home / "config.yaml"
    config.write_text(config.read_text() + f"model: {{default: x, provider: '{_key(5)}'}}\n")
    done = stage.run("-z", "hi", "-v")
    assert b"error: There is no provider" in done.stderr
    assert found(done.stdout + done.stderr) == []


def _key(number: int) -> str:
    return CANARIES[number].value


def test_a_short_answer_loads_no_tables_of_formats(stage: Stage) -> None:
    with ScriptedServer.in_thread([says("It is a fine day.")], strict=False) as server:
        program = (
            "import sys; sys.argv[1:] = ['-m','test','--provider','custom','-z','hello you'];"
            "from hermes.surfaces.cli.running import run; run(sys.argv[1:]);"
            "print([m for m in sys.modules if m.startswith('hermes.policy.redact')])"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=stage.env(server),
            cwd=stage.work,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert "It is a fine day." in done.stdout
    assert "formats" not in done.stdout
