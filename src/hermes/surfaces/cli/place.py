"""The home and settings that a command works on, from the options before it."""

from __future__ import annotations

from typing import Any

import click

from hermes.config.flags import flag_values
from hermes.config.home import Home, resolve_home
from hermes.config.load import Config, load
from hermes.config.secrets import environment


def home_of(ctx: click.Context) -> Home:
    return resolve_home(environment(), profile=_options(ctx).get("profile"))


def config_of(ctx: click.Context) -> Config:
    return load(home_of(ctx), flags=flag_values(_options(ctx)))


def _options(ctx: click.Context) -> dict[str, Any]:
    return ctx.find_root().obj or {}
