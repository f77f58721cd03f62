"""Every command there is: run as it should be, with wrong words, in a home that cannot be written
and with settings that cannot be read. None of these has a terminal to ask in."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from hermes.surfaces.cli.running import run
from tests.surfaces.cli.lines import COMMANDS, LINES
from tests.surfaces.cli.program import Program
from tests.surfaces.cli.rights import modes_heeded
from tests.surfaces.cli.terminal import Result

SETTINGS = "# mine\nmodel: {default: assistant, provider: offline}\n"
DAMAGED = f"{SETTINGS}agent: [\n"
# They answer from the home, from the words they were given or from stdin.
WITHOUT_SETTINGS = {
    "backup",
    "claw cleanup",
    "completion",
    "config edit",
    "config env-path",
    "config path",
    "extras",
    "extras add",
    "extras list",
    "extras remove",
    "logs",
    "model",
    "model install",
    "model remove",
    "policy check",
    "policy redact",
    "policy scan",
    "profile alias",
    "profile create",
    "profile delete",
    "profile describe",
    "profile export",
    "profile import",
    "profile list",
    "profile rename",
    "profile show",
    "profile use",
    "setup",
    "uninstall",
    "update",
    "version",
}
# Besides success, failure and wrong usage: no platform is configured, and the gateway does not run.
FURTHER_CODES = {"gateway": 78, "gateway status": 3}
# A port that nobody listens at: who wants to leave this machine learns so at once.
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one session and one skill: it is copied often."""
    home = tmp_path_factory.mktemp("lived-in") / "home"
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text(SETTINGS)
    (home / "config.yaml").chmod(0o600)
    (home / "profiles" / "home").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HERMES_HOME", str(home))
        assert run(["-z", "calculate 6*7"]) == 0
    for folder in (home / "skills").iterdir():
        if folder.is_dir() and folder.name != "home":
            shutil.rmtree(folder)
    return home


@pytest.fixture
def copied(program: Program, lived_in: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """Such a home, a network that leads nowhere, and nobody at the keyboard."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, NOWHERE)
    monkeypatch.delenv("NO_PROXY", raising=False)
    # What is asked of a remote or of the package index is refused without leaving this machine.
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "none")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    shutil.copytree(lived_in, program.home)
    (program.work / "workspace").mkdir()
    (program.work / "SOUL.md").write_text("Be kind.\n")
    with Path("/dev/null").open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        yield program


def line_of(path: str, program: Program, session: str = "") -> list[str]:
    if "{session}" in LINES[path] and not session:
        session = str(program.sessions()[0]["id"])
    places = {"file": program.work / "new.file", "old": program.work, "claw": program.work}
    words = LINES[path].format(session=session, **places)
    return [*path.split(), *shlex.split(words)]


def tidy(result: Result, path: str) -> None:
    """A failure is a sentence or two, never a traceback; wrong usage says nothing else."""
    assert result.code in (0, 1, 2, FURTHER_CODES.get(path, 0)), result
    assert "Traceback" not in result.err, result.err
    assert "Internal error" not in result.err, result.err
    if result.code:
        assert result.err or result.out, "it failed without a word"


def is_closed(command: click.Command) -> bool:
    """Whether it takes only so many arguments."""
    return not isinstance(command, click.Group) and all(
        param.nargs > 0 for param in command.params if isinstance(param, click.Argument)
    )


def picky_options(command: click.Command) -> Iterator[str]:
    """Options that do not take any text."""
    for param in command.params:
        picky = isinstance(param.type, click.Choice | click.IntRange)
        if isinstance(param, click.Option) and picky and not (param.is_flag or param.count):
            yield param.opts[-1]


@contextmanager
def told_which(path: str) -> Iterator[None]:
    """For what needs no home of its own: all commands in one test, which takes less time."""
    try:
        yield
    except AssertionError as error:
        error.add_note(f"It was `hermes {path}`.")
        raise


def test_every_command_has_its_line() -> None:
    assert set(COMMANDS) == set(LINES)


@pytest.mark.parametrize("path", LINES)
def test_it_runs_where_nobody_can_be_asked(copied: Program, path: str) -> None:
    result = copied(*line_of(path, copied))
    tidy(result, path)
    if result.code == 0:
        assert "error:" not in result.err


def test_wrong_usage_is_told_and_nothing_is_done(program: Program) -> None:
    for path in LINES:
        with told_which(path):
            wrong_usage_is_told(program, path)


def wrong_usage_is_told(program: Program, path: str) -> None:
    before, command = path.split(), COMMANDS[path]
    refused(program, *before, "--nosuch-option", words="No such option '--nosuch-option'")
    for option in picky_options(command):
        refused(program, *before, option, "nonsense", words="Invalid value for '")
    if is_closed(command):
        told = refused(program, *before, *["1"] * 9)
        assert f"See `hermes {path} --help`." in told or "There is no" in told, told
    assert not program.home.exists()


def refused(program: Program, *arguments: str, words: str = "") -> str:
    """What is said of wrong usage: one line, on stderr."""
    result = program(*arguments)
    assert (result.code, result.out) == (2, ""), result
    assert result.err.startswith(f"error: {words}"), result
    assert result.err.count("\n") == 1, result
    return result.err


@pytest.mark.parametrize("path", LINES)
def test_settings_that_cannot_be_read_stop_nothing_that_does_not_write_them(
    copied: Program, path: str
) -> None:
    line = line_of(path, copied)
    copied.write(DAMAGED)
    result = copied(*line)
    tidy(result, path)
    assert (copied.home / "config.yaml").read_text() == DAMAGED
    if result.code != 2 and path not in WITHOUT_SETTINGS:
        said = [*result.err.splitlines(), *result.out.splitlines()]
        # Who also wanted to write them says why that was not done.
        assert sum("line 4, column 1" in line for line in said) in (1, 2), result


def locked(home: Path) -> None:
    for path in (*home.rglob("*"), home):
        if not path.is_symlink():
            path.chmod(0o500 if path.is_dir() else 0o400)


def content(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes() if path.is_file() else b""
        for path in home.rglob("*")
    }


def test_a_home_that_cannot_be_written_is_read_or_told(copied: Program) -> None:
    session = str(copied.sessions()[0]["id"])
    locked(copied.home)
    before = content(copied.home)
    for path in LINES:
        with modes_heeded():
            result = copied(*line_of(path, copied, session))
        with told_which(path):
            tidy(result, path)
            assert content(copied.home) == before
        (copied.work / "new.file").unlink(missing_ok=True)
