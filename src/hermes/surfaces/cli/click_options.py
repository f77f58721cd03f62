"""The global options as click options."""

from __future__ import annotations

from typing import Any

import click

from hermes.surfaces.cli.options import GlobalOption


def click_option(option: GlobalOption) -> click.Option:
    kinds: dict[str, dict[str, Any]] = {
        "text": {},
        "flag": {"is_flag": True},
        "count": {"type": click.IntRange(min=1)},
        "path": {"type": click.Path(dir_okay=False)},
        "optional": {"is_flag": False, "flag_value": ""},
    }
    return click.Option(
        (*option.names, option.key),
        help=option.words,
        metavar=option.metavar,
        **kinds[option.kind],
    )
