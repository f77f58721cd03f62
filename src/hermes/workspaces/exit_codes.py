"""Explains exit codes that mean more than success or failure."""

from __future__ import annotations

import signal

from hermes.codec.values import Value
from hermes.policy.shell.simple_commands import executed, simple_commands


class ExitCodeMeaning(Value):
    """`harmless` codes answer a question; nothing went wrong."""

    words: str
    harmless: bool = False


_GREPS = ("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack")

_OF_PROGRAM: dict[str, dict[int, ExitCodeMeaning]] = {
    **{name: {1: ExitCodeMeaning(words=f"{name} found nothing", harmless=True)} for name in _GREPS},
    **{
        name: {1: ExitCodeMeaning(words="the condition is false", harmless=True)}
        for name in ("test", "[", "[[")
    },
    "diff": {1: ExitCodeMeaning(words="the files differ", harmless=True)},
    "cmp": {1: ExitCodeMeaning(words="the files differ", harmless=True)},
    "pgrep": {1: ExitCodeMeaning(words="no such process", harmless=True)},
    "which": {1: ExitCodeMeaning(words="not found on PATH", harmless=True)},
    "find": {1: ExitCodeMeaning(words="find could not read everything")},
    "pytest": {
        1: ExitCodeMeaning(words="some tests failed"),
        2: ExitCodeMeaning(words="the test run was interrupted"),
        4: ExitCodeMeaning(words="wrong pytest arguments"),
        5: ExitCodeMeaning(words="no tests were found"),
    },
    "curl": {
        6: ExitCodeMeaning(words="the host name was not found"),
        7: ExitCodeMeaning(words="no connection to the host"),
        22: ExitCodeMeaning(words="the server answered with an HTTP error"),
        28: ExitCodeMeaning(words="the request took too long"),
        35: ExitCodeMeaning(words="the TLS handshake failed"),
        60: ExitCodeMeaning(words="the certificate was not accepted"),
    },
    "make": {2: ExitCodeMeaning(words="a make target failed")},
    "timeout": {124: ExitCodeMeaning(words="`timeout` ended the command")},
    "git": {128: ExitCodeMeaning(words="git refused; see its message")},
}

_OF_SHELL = {
    126: ExitCodeMeaning(words="found but not executable"),
    127: ExitCodeMeaning(words="command not found"),
    137: ExitCodeMeaning(words="killed, possibly out of memory"),
    139: ExitCodeMeaning(words="crashed: segmentation fault"),
}


def explain_exit_code(script: str, code: int) -> ExitCodeMeaning | None:
    """Explain by the program that returned the code, if it is unambiguous, else by shell
    conventions."""
    words = _last_command(script)
    program = words[0] if words else ""
    if words[1:3] == ("-m", "pytest"):
        program = "pytest"
    if known := _OF_PROGRAM.get(program, {}).get(code):
        return known
    if known := _OF_SHELL.get(code):
        return known
    return _explain_signal(code)


def _explain_signal(code: int) -> ExitCodeMeaning | None:
    try:
        name = signal.Signals(code - 128).name
    except ValueError:
        return None
    return ExitCodeMeaning(words=f"ended by {name}")


def _last_command(script: str) -> tuple[str, ...]:
    """Return the words of the last command, unless `&&` or `||` leave open whether it ran."""
    commands = simple_commands(script)
    if not commands or any(command.end in ("&&", "||") for command in commands[-2:-1]):
        return ()
    return executed(commands[-1].words)
