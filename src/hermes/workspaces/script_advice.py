"""Advice about scripts: commands that need the background, and the meaning of exit codes."""

from __future__ import annotations

import contextlib
import re
import signal

from hermes.codec.values import Value
from hermes.policy.shell.simple_commands import (
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
        line = " ".join(words)
        bare = _RUNNERS.sub("", line, count=1) if _RUNNERS.match(line) else line
        if command.end != "&" and not _INQUIRY & {*words} and _ENDLESS.match(bare):
            return (
                f"'{line[:80]}' does not end on its own. Run it with background=true, "
                "then read it with the process tool."
            )
    if commands and commands[-1].end == "&":
        return "Drop the '&' at the end and set background=true instead."
    return None


def pipes_password_to_sudo(script: str) -> bool:
    """Return whether a script passes a password to sudo itself."""
    return any(
        word == "--stdin" or re.fullmatch(r"-[A-Za-z]*S[A-Za-z]*", word)
        for command in simple_commands(script)
        for word in sudo_options(command.words) or ()
    )


class ExitCodeMeaning(Value):
    """What an exit code means. A `harmless` code answers a question; nothing went wrong."""

    meaning: str
    harmless: bool = False


_GREPS = ("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack")

# Exit code 1 of programs that answer a question.
_ANSWERS = {
    **{name: f"{name} found nothing" for name in _GREPS},
    **dict.fromkeys(("test", "[", "[["), "the condition is false"),
    **dict.fromkeys(("diff", "cmp"), "the files differ"),
    "pgrep": "no such process",
    "which": "not found on PATH",
}
_OF_PROGRAM = {
    ("find", 1): "find could not read everything",
    ("pytest", 1): "some tests failed",
    ("pytest", 2): "the test run was interrupted",
    ("pytest", 4): "wrong pytest arguments",
    ("pytest", 5): "no tests were found",
    ("curl", 6): "the host name was not found",
    ("curl", 7): "no connection to the host",
    ("curl", 22): "the server answered with an HTTP error",
    ("curl", 28): "the request took too long",
    ("curl", 35): "the TLS handshake failed",
    ("curl", 60): "the certificate was not accepted",
    ("make", 2): "a make target failed",
    ("timeout", 124): "`timeout` ended the command",
    ("git", 128): "git refused; see its message",
}
_OF_SHELL = {
    126: "found but not executable",
    127: "command not found",
    137: "killed, possibly out of memory",
    139: "crashed: segmentation fault",
}


def explain_exit_code(script: str, code: int) -> ExitCodeMeaning | None:
    """Explain by the program that returned the code, if it is unambiguous, else by shell
    conventions."""
    commands = simple_commands(script)
    words: tuple[str, ...] = ()
    # `&&` and `||` leave open whether the last command ran.
    if commands and not any(command.end in ("&&", "||") for command in commands[-2:-1]):
        words = executed(commands[-1].words)
    program = "pytest" if words[1:3] == ("-m", "pytest") else "".join(words[:1])
    if code == 1 and program in _ANSWERS:
        return ExitCodeMeaning(meaning=_ANSWERS[program], harmless=True)
    meaning = _OF_PROGRAM.get((program, code)) or _OF_SHELL.get(code)
    with contextlib.suppress(ValueError):
        meaning = meaning or f"ended by {signal.Signals(code - 128).name}"
    return ExitCodeMeaning(meaning=meaning) if meaning else None
