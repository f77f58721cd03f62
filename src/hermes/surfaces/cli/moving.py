"""What became of things that were taken in from another agent, in lines."""

from __future__ import annotations

from collections import Counter

import click

from hermes.app.build import App
from hermes.codec.values import replace
from hermes.homes.moving.foreign import Foreign, Item
from hermes.homes.moving.taking import Wish, take_in
from hermes.surfaces.cli.asking import confirm
from hermes.surfaces.cli.output import columns, print_json, with_app
from hermes.surfaces.cli.style import mark, styled


def move_in(ctx: click.Context, foreign: Foreign, wish: Wish, *, yes: bool, as_json: bool) -> None:
    """Say what would be taken, ask, and take it."""

    async def work(app: App, how: Wish) -> tuple[Item, ...]:
        return await take_in(app.run, app.memory, app.library, foreign, how)

    for problem in foreign.problems:
        click.echo(f"{styled('warning:', 'warn')} {problem}", err=True)
    if wish.dry_run or not yes:
        planned = with_app(ctx, lambda app: work(app, replace(wish, dry_run=True)))
        if wish.dry_run:
            _print(planned, as_json=as_json)
            return
        if not as_json:
            _print(planned, as_json=False)
        wanted = sum(item.state == "would be taken" for item in planned)
        confirm(f"Take in {wanted} of these? {foreign.root} stays as it is.")
    _print(with_app(ctx, lambda app: work(app, wish)), as_json=as_json)


def _print(items: tuple[Item, ...], *, as_json: bool) -> None:
    if as_json:
        print_json(columns(items))
        return
    for item in items:
        sign = mark("warn") if item.state == "left out" else mark("ok")
        note = f" ({item.note})" if item.note else ""
        print(f"{sign} {item.kind:<9} {item.name}: {item.state}{note}")
    counts = Counter(item.state for item in items)
    print("; ".join(f"{count} {state}" for state, count in counts.items()) or "Nothing was found.")
