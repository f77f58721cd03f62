"""Explains exit codes that mean more than success or failure."""

from __future__ import annotations

import signal

from hermes.codec.values import Value
from hermes.policy.shell.simple_commands import executed, simple_commands


class Meaning(Value):
    """`harmless` codes answer a question; nothing went wrong."""

    words: str
    harmless: bool = False


_GREPS = ("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack")

_OF_PROGRAM: dict[str, dict[int, Meaning]] = {
    **{name: {1: Meaning(words=f"{name} found nothing", harmless=True)} for name in _GREPS},
    **{
        name: {1: Meaning(words="the condition is false", harmless=True)}
        for name in ("test", "[", "[[")
    },
    "diff": {1: Meaning(words="the files differ", harmless=True)},
    "cmp": {1: Meaning(words="the files differ", harmless=True)},
    "pgrep": {1: Meaning(words="no such process", harmless=True)},
    "which": {1: Meaning(words="not found on PATH", harmless=True)},
    "find": {1: Meaning(words="find could not read everything")},
    "pytest": {
        1: Meaning(words="some tests failed"),
        2: Meaning(words="the test run was interrupted"),
        4: Meaning(words="wrong pytest arguments"),
        5: Meaning(words="no tests were found"),
    },
    "curl": {
        6: Meaning(words="the host name was not found"),
        7: Meaning(words="no connection to the host"),
        22: Meaning(words="the server answered with an HTTP error"),
        28: Meaning(words="the request took too long"),
        35: Meaning(words="the TLS handshake failed"),
        60: Meaning(words="the certificate was not accepted"),
    },
    "make": {2: Meaning(words="a make target failed")},
    "timeout": {124: Meaning(words="`timeout` ended the command")},
    "git": {128: Meaning(words="git refused; see its message")},
}

_OF_SHELL = {
    126: Meaning(words="found but not executable"),
    127: Meaning(words="command not found"),
    137: Meaning(words="killed, possibly out of memory"),
    139: Meaning(words="crashed: segmentation fault"),
}


def meaning(script: str, code: int) -> Meaning | None:
    """Explain by the program that returned the code, if it is unambiguous, else by shell
    conventions."""
    words = _last_words(script)
    program = words[0] if words else ""
    if words[1:3] == ("-m", "pytest"):
        program = "pytest"
    if known := _OF_PROGRAM.get(program, {}).get(code):
        return known
    if known := _OF_SHELL.get(code):
        return known
    return _of_signal(code)


def _of_signal(code: int) -> Meaning | None:
    try:
        name = signal.Signals(code - 128).name
    except ValueError:
        return None
    return Meaning(words=f"ended by {name}")


def _last_words(script: str) -> tuple[str, ...]:
    """Return the words of the last command, unless `&&` or `||` leave open whether it ran."""
    commands = simple_commands(script)
    if not commands or any(command.end in ("&&", "||") for command in commands[-2:-1]):
        return ()
    return executed(commands[-1].words)
