"""Confirmation prompts of commands; without a terminal the command is refused."""

from __future__ import annotations

import sys

import click

from hermes.core.errors import UsageError

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, *, otherwise: str = "Nothing was changed.") -> None:
    """Return if the user agrees; any other answer ends the command. Do not call it inside an event
    loop, which would swallow Ctrl+C while the prompt waits."""
    _require_terminal(question)
    if not click.confirm(question, err=True):
        click.echo(otherwise, err=True)
        raise click.exceptions.Exit(1)


def confirm_by_name(warning: str, name: str) -> None:
    """For what cannot be undone: the user types the name of what is removed."""
    _require_terminal(warning)
    if click.prompt(f"{warning} Type {name!r} to go on", default="", err=True) != name:
        click.echo("Nothing was removed.", err=True)
        raise click.exceptions.Exit(1)


def _require_terminal(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to answer in; add --yes.")
