"""Advice about scripts: commands that need the background, and the meaning of exit codes."""

from __future__ import annotations

import re
import signal

from hermes.codec.values import Value
from hermes.policy.shell.simple_commands import (
    SimpleCommand,
    executed,
    simple_commands,
    sudo_options,
)

_DETACHING = ("nohup", "disown", "setsid")

_RUNNERS = re.compile(
    r"(?:npx|bunx|uvx|pnpx)(?: -\S+)* |(?:uv|poetry|pipenv|pdm|hatch) run (?:-\S+ )*"
    r"|bundle exec |(?:pnpm|yarn) exec "
)

# Programs that run until they are stopped, as usually invoked.
_ENDLESS = re.compile(
    r"""
      python[\d.]*\ (?:-[a-zA-Z]+\ )*-m\ (?:http\.server|SimpleHTTPServer|uvicorn|gunicorn)\b
    | python[\d.]*\ .*\bmanage\.py\ runserver\b
    | (?:python[\d.]*\ -m\ )?flask\ (?:.*\ )?run\b
    | (?:python[\d.]*\ -m\ )?(?:streamlit\ run|jupyter[\ -](?:lab|notebook|server))\b
    | (?:npm|pnpm|yarn|bun)\ (?:run\ )?(?:\S*[:-])?(?:dev|start|serve|watch|preview)(?:$|\ )
    | (?:npm|pnpm|yarn|bun)\ run\ storybook\b
    | (?:vite|next|nuxt|astro|remix|gatsby|docusaurus)\ (?:dev|start|serve|preview|develop)\b
    | vite$
    | (?:uvicorn|hypercorn|daphne|nodemon|http-server|live-server|webpack-dev-server|ngrok)\b
    | gunicorn\b(?!.*\ (?:-D|--daemon)\b)
    | (?:ng|hugo|jekyll|mkdocs|webpack|vue-cli-service)\ (?:serve|server)\b
    | rails\ (?:s|server)\b(?!.*\ (?:-d|--daemon)\b)
    | php\ (?:-S\ |artisan\ serve\b)
    | (?:webpack|tsc|rollup|esbuild|sass|tailwindcss|jest|vitest)\ .*--watch(?:All)?\b(?!=false)
    | tsc\ (?:.*\ )?-w\b
    | cargo\ watch\b
    | caddy\ run\b
    | docker(?:\ compose|-compose)\ (?:-\S+\ \S+\ )*up\b(?!.*\ (?:-d|--detach|--wait)\b)
    | (?:docker|kubectl)\ (?:.*\ )?logs\ (?:.*\ )?(?:-f|--follow)\b
    | kubectl\ (?:port-forward|proxy)\b
    | (?:tail|journalctl)\ (?:.*\ )?(?:-[a-zA-Z0-9]*[fF]|--follow\S*)(?:$|\ )
    | redis-server\b(?!.*--daemonize\ yes)
    | mongod\b(?!.*--fork)
    | watch\ .+
    | celery\ .*\b(?:worker|beat)\b
    """,
    re.VERBOSE,
)
_INQUIRY = frozenset(("--help", "--version", "-h", "-V"))


def find_objection(script: str) -> str | None:
    """Return why the script cannot run in the foreground, with advice, or None."""
    commands = simple_commands(script)
    for command in commands:
        words = executed(command.words)
        if words and words[0] in _DETACHING:
            return (
                f"'{words[0]}' hides a process from the tools. "
                "Run the command itself with background=true."
            )
        if command.end != "&" and _runs_forever(words):
            return (
                f"'{' '.join(words)[:80]}' does not end on its own. Run it with background=true, "
                "then read it with the process tool."
            )
    if commands and commands[-1].end == "&":
        return "Drop the '&' at the end and set background=true instead."
    return None


def _runs_forever(words: tuple[str, ...]) -> bool:
    if not words or _INQUIRY & {*words}:
        return False
    line = " ".join(words)
    return bool(_ENDLESS.match(_RUNNERS.sub("", line, count=1) if _RUNNERS.match(line) else line))


def pipes_password_to_sudo(script: str) -> bool:
    """Return whether a script passes a password to sudo itself."""
    return any(map(_pipes_password, simple_commands(script)))


def _pipes_password(command: SimpleCommand) -> bool:
    given = sudo_options(command.words) or ()
    return any(word == "--stdin" or re.fullmatch(r"-[A-Za-z]*S[A-Za-z]*", word) for word in given)


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
