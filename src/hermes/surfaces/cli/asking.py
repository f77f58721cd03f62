"""Questions of commands that are not about sessions: asked where somebody can answer."""

from __future__ import annotations

import sys

import click

from hermes.core.errors import UsageError


def confirm(question: str, *, otherwise: str = "Nothing was changed.") -> None:
    """Returns when the person says yes; anything else ends the command."""
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Nobody can answer here; add --yes.")
    if not click.confirm(question, err=True):
        click.echo(otherwise, err=True)
        raise click.exceptions.Exit(1)


def confirm_by_name(warning: str, name: str) -> None:
    """For what cannot be taken back: the person types the name of what goes."""
    if not sys.stdin.isatty():
        raise UsageError(f"{warning} Nobody can answer here; add --yes.")
    if click.prompt(f"{warning} Type {name!r} to go on", default="", err=True) != name:
        click.echo("Nothing was removed.", err=True)
        raise click.exceptions.Exit(1)
