"""Small shapes of plain output that several commands share."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from unicodedata import combining, east_asian_width

import click

from hermes.app.build import App
from hermes.app.start import start
from hermes.codec.json import encode
from hermes.codec.values import JsonValue, Value
from hermes.commands.visible import one_line
from hermes.surfaces.cli.interruptible import run
from hermes.surfaces.cli.place import tell_faults

T = TypeVar("T")

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def with_app(ctx: click.Context, work: Callable[[App], Coroutine[Any, Any, T]]) -> T:
    """Run some work on the app that the options before the command stand for."""

    async def whole() -> T:
        async with start(ctx.find_root().obj or {}) as app:
            tell_faults(ctx, app.config.findings)
            return await work(app)

    return run(whole())


def print_json(value: object) -> None:
    """In UTF-8, whatever the terminal speaks."""
    sys.stdout.flush()
    sys.stdout.buffer.write(encode(value) + b"\n")


def columns(value: object) -> JsonValue:
    """A value with all its fields, also those that have their default: scripts like to find the
    same columns in every line."""
    if isinstance(value, Value):
        return {name: columns(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list | tuple):
        return [columns(item) for item in value]
    return value


def print_table(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    """Columns cut to their widths, a dash row under the first row; the last column is not cut."""
    for number, row in enumerate(rows):
        cells = [_fitted(cell, width) for cell, width in zip(row, widths, strict=False)]
        rest = [one_line(cell) for cell in row[len(widths) :]]
        print("  ".join((*cells, *rest)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in (*widths, *map(len, rest))))


def ago(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "now"


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _fitted(text: str, width: int) -> str:
    """Exactly that many columns of a terminal."""
    plain = one_line(text)
    if _width(plain) > width:
        while _width(plain) > width - 1:
            plain = plain[:-1]
        plain += "…"
    return plain + " " * (width - _width(plain))


def _width(text: str) -> int:
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
