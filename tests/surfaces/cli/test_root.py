"""The command line as a whole: names, options, streams, errors and what looking leaves behind."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path
from threading import Timer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.cli.options import OPTIONS, plain_options
from hermes.surfaces.cli.root import COMMANDS, root
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says
from tests.surfaces.cli.program import PROGRAM, Program

# Whatever may be asked of a home without changing it.
READING = [
    "sessions list",
    "sessions list --json",
    "sessions search word",
    "sessions search word --json",
    "sessions export",
    "sessions verify",
    "sessions verify --json",
    "sessions prune --dry-run",
    "sessions prune --yes",
    "sessions stats",
    "sessions stats --json",
    "cost",
    "cost --json",
    "--provider offline prompt-size",
    "--provider offline prompt-size --json",
    "config show",
    "config path",
    "logs",
    "doctor",
    "--help",
    "--version",
    "sessions --help",
]
ASKING_FOR_ONE = [
    "sessions show nosuch",
    "sessions show nosuch --json",
    "sessions search word --session nosuch",
    "sessions export --session-id nosuch",
    "sessions verify nosuch",
    "sessions fork nosuch",
    "sessions rename nosuch title",
    "sessions delete nosuch --yes",
    "trace nosuch",
    "cost --session nosuch",
    "--provider offline -r nosuch -z hi",
    "--provider offline -c -z hi",
    "--provider offline -c nosuch -z hi",
]


@pytest.mark.parametrize("line", READING)
def test_looking_at_an_empty_home_is_well_and_makes_nothing(program: Program, line: str) -> None:
    result = program(*line.split())
    assert result.code == 0
    assert "error" not in result.err
    assert not program.home.exists()


@pytest.mark.parametrize("line", ASKING_FOR_ONE)
def test_an_empty_home_has_no_session_and_says_so(program: Program, line: str) -> None:
    result = program(*line.split())
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: There is no session")
    assert "`hermes`" in result.err
    assert result.err.count("\n") == 1
    assert not program.home.exists()


def test_help_names_every_command_and_option(program: Program) -> None:
    result = program("--help")
    for name in COMMANDS:
        assert f"\n  {name} " in result.out
    for option in OPTIONS:
        assert all(name in result.out for name in option.names.split())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(program: Program, name: str) -> None:
    result = program(name, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: hermes {name}")


def test_a_group_without_a_command_shows_its_help_and_is_wrong_usage(program: Program) -> None:
    result = program("sessions")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("Usage: hermes sessions")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sesions list", "There is no command 'sesions'. Did you mean `sessions`?"),
        ("qqqq", "There is no command 'qqqq'. `hermes --help` lists them."),
        ("sessions lst", "No such command 'lst'. Did you mean 'list'?"),
        ("sessions list --limt 3", "No such option '--limt'. Did you mean '--limit'?"),
        ("sessions show", "Missing argument 'SESSION'. See `hermes sessions show --help`."),
        ("--provider", "Option '--provider' requires an argument. See `hermes --help`."),
        ("--json sessions list", "--json before a command needs -z; write it after"),
        ("--json", "--json before a command needs -z; add -z PROMPT."),
        ("--usage-file u.json", "--usage-file needs -z; add -z PROMPT."),
        ("-z hi sessions list", "-z takes no command; leave out `sessions` or -z."),
        ("-r a -c -z hi", "Give --resume or --continue, not both."),
        ("--max-turns 0 -z hi", "Invalid value for '--max-turns'"),
        ("-t qqq --provider offline -z hi", "There is no toolset named 'qqq'. There are:"),
        ("-t fil --provider offline -z hi", "There is no toolset named 'fil'. Did you mean file?"),
    ],
)
def test_wrong_usage_is_told_in_one_line_with_the_next_step(
    program: Program, line: str, words: str
) -> None:
    result = program(*line.split())
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {words}")
    assert result.err.count("\n") == 1
    assert not program.home.exists()


@pytest.mark.parametrize("arguments", [("-z", ""), ("-z", "  \n"), ("-r", "", "-z", "hi")])
def test_an_empty_prompt_or_session_is_wrong_usage(
    program: Program, arguments: tuple[str, ...]
) -> None:
    result = program("--provider", "offline", *arguments)
    assert (result.code, result.out) == (2, "")
    assert not program.home.exists()


def test_all_ways_to_the_version_say_the_same(program: Program) -> None:
    said = {
        program.process(*line.split()).stdout.decode()
        for line in ("--version", "-V", "version", "-p default version", "--yolo --version")
    }
    assert len(said) == 1
    assert said.pop().startswith("hermes 0.")


OPTION_WORDS = [name for option in OPTIONS for name in option.names.split()]
VALUES = ["hi there", "offline", "3", "0", "a,b", "--json", "-v", "", "x.json"]


@given(st.lists(st.sampled_from([*OPTION_WORDS, *VALUES]), max_size=8))
def test_the_quick_way_understands_what_the_full_command_line_does(arguments: list[str]) -> None:
    quick = plain_options(arguments)
    if quick is not None:
        assert root.make_context("hermes", list(arguments)).params == quick


def test_the_quick_way_is_taken_for_a_plain_oneshot() -> None:
    assert plain_options(["-m", "x", "--max-turns", "3", "-z", "hi", "--json"]) is not None
    assert plain_options(["-c", "-z", "hi"]) is None
    assert plain_options(["sessions", "list"]) is None


def test_a_home_that_cannot_be_written_is_told_in_one_sentence(program: Program) -> None:
    program.home.write_text("a file where the folder should be")
    result = program.ask("hello")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: ")
    assert str(program.home) in result.err
    assert result.err.count("\n") == 1


def test_settings_that_cannot_be_read_are_an_error(program: Program) -> None:
    program.write("agent: [\n")
    result = program("sessions", "list")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert "line 2, column 1" in result.err
    assert result.err.count("\n") == 1


def test_with_verbose_an_error_shows_where_it_came_from(program: Program) -> None:
    result = program("--verbose", "sessions", "show", "nosuch")
    assert result.code == 1
    assert "Traceback" in result.err
    assert result.err.splitlines()[-1].startswith("error: There is no session")


def test_an_error_that_nobody_foresaw_is_one_line_too(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMMANDS, "cost", ("nosuchmodule:command", "Cost."))
    result = program("cost")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: Internal error (ModuleNotFoundError")
    assert "--verbose" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "script",
    [
        "hermes config show | head -1",
        "hermes config show 2>&1 | true",
        "hermes --provider offline -z help | head -1",
        "hermes --provider offline --json -z help | head -1",
        "hermes --help | true",
    ],
)
def test_a_closed_pipe_ends_quietly(program: Program, script: str) -> None:
    result = program.shell(f"{script}; exit ${{PIPESTATUS[0]}}")
    assert (result.code, result.err) == (0, "")


def test_wrong_usage_stays_wrong_usage_when_nobody_reads_the_error(program: Program) -> None:
    assert program.shell("hermes sesions 2>&1 | true; exit ${PIPESTATUS[0]}").code == 2


def test_closed_streams_do_no_harm(program: Program) -> None:
    assert program.shell("hermes --provider offline -z 'calculate 6*7' <&-").out == "6*7 = 42\n"
    assert program.shell("hermes sessions list >&-").code == 0
    assert program.shell("hermes sesions 2>&-").code == 2
    assert program.shell("hermes <&- >&- 2>&-").code == 2


def test_a_terminal_without_our_letters_gets_question_marks(program: Program) -> None:
    program.ask("say “grüße”")
    env = {"PYTHONIOENCODING": "ascii"}
    result = program.shell("hermes sessions list", env)
    assert (result.code, result.err) == (0, "")
    assert "?gr??e?" in result.out
    assert "“grüße”" in program.shell("hermes sessions list --json", env).out


def on_a_terminal(program: Program, *arguments: str, **env: str) -> str:
    """What the program writes when its output is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [PROGRAM, *arguments],
        env=program.env({"TERM": "xterm", **env}),
        cwd=program.work,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        guard = Timer(60, process.kill)
        guard.start()
        os.close(theirs)
        found = b""
        try:
            while more := os.read(ours, 65536):
                found += more
        except OSError:
            pass  # how Linux says that the other side has closed
        process.wait(60)
        guard.cancel()
    os.close(ours)
    return found.decode()


def test_colours_are_for_terminals_whose_owner_wants_them(program: Program) -> None:
    session = program.session("calculate 6*7")
    for arguments, env in (
        (("sessions", "show", session), {"NO_COLOR": "1"}),
        (("trace", session), {"TERM": "dumb"}),
        (("sesions",), {"NO_COLOR": "1"}),
    ):
        assert "\x1b[" in on_a_terminal(program, *arguments)
        plain = on_a_terminal(program, *arguments, **env)
        assert plain
        assert "\x1b" not in plain


def test_what_others_wrote_cannot_steer_the_terminal(program: Program) -> None:
    session = program.session("say \x1b[2J\x1b]0;owned\x07 hello")
    for arguments in (
        ("sessions", "list"),
        ("sessions", "show", session),
        ("sessions", "search", "hello"),
        ("sessions", "show", "owned"),
        ("trace", session),
    ):
        result = program(*arguments)
        assert "owned" in result.out + result.err
        assert "\x1b" not in result.out + result.err


def test_an_answer_cannot_steer_the_terminal_but_reaches_a_program_as_it_is(
    scripted: Program, model_server: ScriptedServer
) -> None:
    model_server.add(*[says("\x1b[2Jowned")] * 2)
    assert scripted("-z", "hi").out == "\x1b[2Jowned\n"
    assert on_a_terminal(scripted, "-z", "hi") == "␛[2Jowned\r\n"


def test_the_program_runs_where_the_current_folder_is_gone(program: Program) -> None:
    gone = Path(program.work, "gone")
    result = program.shell(f"mkdir {gone}; cd {gone}; rmdir {gone}; hermes sessions list")
    assert (result.code, result.err) == (0, "")
