"""`hermes sessions browse`: pick a past session and resume it."""

from __future__ import annotations

import asyncio
import sys

import click

from hermes.app.build import App
from hermes.journal.archive import SessionInfo
from hermes.surfaces.cli.output import ago, with_app

MOST = 200
WITHOUT_TERMINAL = (
    "There is no terminal to choose in. Use instead:\n"
    "  hermes sessions list\n"
    "  hermes sessions search WORDS\n"
    "  hermes --resume ID"
)


@click.command(help="Pick a past session and resume it.")
@click.option("--limit", type=click.IntRange(min=1), default=MOST, help="How many to offer.")
@click.pass_context
def browse(ctx: click.Context, limit: int) -> int:
    async def work(app: App) -> tuple[tuple[SessionInfo, ...], float]:
        return await app.archive.recent(limit=limit), app.world.clock.now()

    found, now = with_app(ctx, work)
    if not found:
        print("No sessions yet; start one with `hermes`.")
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(WITHOUT_TERMINAL)
        return 0
    picked = _pick(found, now)
    if picked is None:
        return 0
    from hermes.surfaces.cli.chat.entrance import run_chat

    return run_chat({**(ctx.find_root().obj or {}), "resume": picked})


def _pick(found: tuple[SessionInfo, ...], now: float) -> str | None:
    # The picker loads a large library.
    from hermes.surfaces.cli.picker import Picker, PickerRow

    rows = [
        PickerRow(
            text=info.title or info.preview or info.id,
            value=info.id,
            note=" · ".join(
                # Without a title, the preview is the text.
                (ago(now - info.last_at), info.source, *((info.preview,) if info.title else ()))
            ),
        )
        for info in found
    ]
    return asyncio.run(Picker("Resume", rows).run())
