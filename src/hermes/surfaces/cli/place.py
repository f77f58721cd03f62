"""The home and settings of a command, from the global options."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import click

from hermes.config.findings import Diagnostic
from hermes.config.flags import flag_values
from hermes.config.home import Home, resolve_home
from hermes.config.load import Config, load
from hermes.config.secrets import process_environment
from hermes.surfaces.cli.style import apply_style

FAULTS_SHOWN = "hermes.faults_told"


def home_of(ctx: click.Context) -> Home:
    return resolve_home(process_environment(), profile=_options(ctx).get("profile"))


def config_of(ctx: click.Context, *, tell: bool = True) -> Config:
    """Prints errors of the files, unless `tell` is false."""
    given = _options(ctx)
    use_file = not given.get("ignore_config")
    config = load(home_of(ctx), flags=flag_values(given), use_file=use_file)
    if tell:
        warn_about_faults(ctx, config.diagnostics)
    return config


def warn_about_faults(ctx: click.Context, findings: Iterable[Diagnostic]) -> None:
    """Warn about settings that cannot be read, once per run."""
    if ctx.meta.setdefault(FAULTS_SHOWN, False):
        return
    ctx.meta[FAULTS_SHOWN] = True
    sign = apply_style("warning:", "warn", to=sys.stderr)
    for finding in findings:
        if finding.level == "error":
            print(f"{sign} {finding.text}; {finding.fix}.", file=sys.stderr)


def _options(ctx: click.Context) -> dict[str, Any]:
    return ctx.find_root().obj or {}
