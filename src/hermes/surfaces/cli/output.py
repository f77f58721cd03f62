"""Small shapes of plain output that several commands share."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import click

from hermes.app.build import App
from hermes.app.start import start
from hermes.codec.json import encode

T = TypeVar("T")

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def with_app(ctx: click.Context, work: Callable[[App], Coroutine[Any, Any, T]]) -> T:
    """Run some work on the app that the options before the command stand for."""

    async def whole() -> T:
        async with start(ctx.find_root().obj or {}) as app:
            return await work(app)

    return asyncio.run(whole())


def print_json(value: object) -> None:
    sys.stdout.buffer.write(encode(value) + b"\n")


def print_table(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    """Columns cut to their widths, a dash row under the first row; the last column is not cut."""
    for number, row in enumerate(rows):
        cells = [f"{_cut(cell, width):<{width}}" for cell, width in zip(row, widths, strict=False)]
        print("  ".join((*cells, *row[len(widths) :])).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def ago(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "now"


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _cut(text: str, width: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= width else plain[: width - 1] + "…"
