"""`hermes chat`: the interactive chat, or one query with `-q`."""

from __future__ import annotations

import stat
import sys
from os import fstat
from pathlib import Path
from typing import Any

import click

from hermes.config.environment import env_flag, process_environment
from hermes.core.errors import UsageError
from hermes.surfaces.cli.command_context import options_of
from hermes.surfaces.cli.options import OPTIONS, check_conflicts
from hermes.surfaces.cli.output import click_option

# Global options that `chat` does not accept.
_ALONE = frozenset(("profile", "prompt", "as_json", "usage_file"))
SHARED = tuple(option.key for option in OPTIONS if option.key not in _ALONE)


@click.command(help="Chat in the terminal; with -q, run one turn and print the answer.")
@click.option("-q", "--query", metavar="TEXT", help="Send this message; piped input is appended.")
@click.option(
    "--query-file",
    type=click.Path(allow_dash=True),
    help="Read the message from a file (- is stdin).",
)
@click.option(
    "--image",
    "images",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="With -q: attach an image (repeatable).",
)
@click.option("-Q", "--quiet", is_flag=True, help="With -q: print only the answer.")
@click.option("--source", metavar="TAG", help="Record this as the source of the session.")
@click.pass_context
def command(ctx: click.Context, /, **own: Any) -> int:
    shared = {key: own.pop(key) for key in SHARED}
    # Options after `chat` take precedence over global ones.
    changed = {key: value for key, value in shared.items() if value not in (None, False)}
    options = {**options_of(ctx), **changed}
    check_conflicts(options, "chat")
    options["source"] = own["source"]
    text = _query(own["query"], own["query_file"])
    if text is None:
        if own["images"] or own["quiet"]:
            raise UsageError("--image and --quiet need a message; add -q TEXT.")
        from hermes.surfaces.cli.chat.startup import run_chat

        return run_chat(options)
    from hermes.surfaces.cli.oneshot import run_oneshot

    quiet = own["quiet"] or env_flag(process_environment(), "HERMES_QUIET")
    options["prompt"] = text
    return run_oneshot(options, images=own["images"], quiet=quiet, show_id=not quiet)


command.params += [click_option(option) for option in OPTIONS if option.key in SHARED]


def _query(query: str | None, query_file: str | None) -> str | None:
    """The message with piped input appended; None without a message."""
    if query is not None and query_file is not None:
        raise UsageError("Give --query or --query-file, not both.")
    if query_file is not None:
        with click.open_file(query_file, encoding="utf-8", errors="replace") as file:
            query = file.read()
    elif query is not None and sys.stdin is not None and not sys.stdin.closed:
        mode = fstat(sys.stdin.fileno()).st_mode
        # Reading a terminal would never end.
        if stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode):
            piped = sys.stdin.buffer.read().decode("utf-8", "replace")
            query = f"{query}\n\n{piped.strip()}".rstrip("\n")
    if query is not None and not query.strip():
        raise UsageError("The message is empty; write something after -q.")
    return query
