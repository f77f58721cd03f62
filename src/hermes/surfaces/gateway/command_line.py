"""What the commands of the gateway share: settings, output as lines or JSON, and questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from hermes.codec.json import encode
from hermes.codec.values import Value
from hermes.commands.formatting import sanitize
from hermes.config.environment import process_environment
from hermes.config.home import Home, resolve_home
from hermes.config.layers import flag_values
from hermes.config.load import Config, load
from hermes.core.errors import ConfigError
from hermes.credentials.redaction import redact_error
from hermes.surfaces.gateway.services import FATAL_CODE

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def home_of(ctx: click.Context) -> Home:
    return resolve_home(process_environment(), profile=_options(ctx).get("profile"))


def config_of(ctx: click.Context) -> Config:
    """The settings. Errors of the files are printed."""
    options = _options(ctx)
    config = load(
        home_of(ctx), flags=flag_values(options), use_file=not options.get("ignore_config")
    )
    for finding in config.diagnostics:
        if finding.level == "error":
            click.echo(f"warning: {finding.text}; {finding.fix}.", err=True)
    return config


def _options(ctx: click.Context) -> dict[str, Any]:
    return ctx.find_root().obj or {}


def print_result(data: object, lines: str | Iterable[str], *, as_json: bool) -> None:
    """Lines for people, or one line of JSON with all fields."""
    if as_json:
        click.echo(encode(_columns(data)))
        return
    for line in (lines,) if isinstance(lines, str) else lines:
        click.echo(line)


def _columns(value: object) -> object:
    if isinstance(value, Value):
        return {name: _columns(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {name: _columns(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_columns(item) for item in value]
    return value


@contextmanager
def refuse_bad_config() -> Iterator[None]:
    """End with the exit code after which a service does not start the gateway again."""
    try:
        yield
    except ConfigError as error:
        text = sanitize(redact_error(str(error)))
        click.echo(f"error: {text}", err=True)
        raise click.exceptions.Exit(FATAL_CODE) from error
