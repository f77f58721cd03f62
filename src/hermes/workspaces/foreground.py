"""Detects commands that must not run in the foreground, with advice."""

from __future__ import annotations

import re

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
