"""`hermes sessions archive`, `unarchive`: out of the lists and back into them."""

from __future__ import annotations

from pathlib import Path

import click

from hermes.app.build import App
from hermes.surfaces.cli.output import as_json_option, print_json, with_app


@click.command(help="Put sessions away: out of all lists, still found by name and by words.")
@click.argument("sessions", nargs=-1, required=True)
@click.option("--to-file", is_flag=True, help="Move each into a file that brings it back instead.")
@as_json_option
@click.pass_context
def archive(ctx: click.Context, sessions: tuple[str, ...], to_file: bool, as_json: bool) -> None:
    if to_file:
        _to_files(ctx, sessions, as_json)
        return
    for session_id in _put(ctx, sessions, as_json, away=True):
        print(f"{session_id} is put away; `hermes sessions unarchive {session_id}` brings it back.")


@click.command(help="Bring sessions that were put away back into the lists.")
@click.argument("sessions", nargs=-1, required=True)
@as_json_option
@click.pass_context
def unarchive(ctx: click.Context, sessions: tuple[str, ...], as_json: bool) -> None:
    for session_id in _put(ctx, sessions, as_json, away=False):
        print(f"{session_id} is in the lists again.")


def _put(
    ctx: click.Context, sessions: tuple[str, ...], as_json: bool, *, away: bool
) -> tuple[str, ...]:
    """The ids that are still to be told of."""

    async def work(app: App) -> tuple[str, ...]:
        found = await _found(app, sessions)
        for session_id in found:
            await app.library.put_away(session_id, away=away)
        return found

    done = with_app(ctx, work)
    if not as_json:
        return done
    print_json([{"session_id": session_id, "archived": away} for session_id in done])
    return ()


def _to_files(ctx: click.Context, sessions: tuple[str, ...], as_json: bool) -> None:
    async def work(app: App) -> list[tuple[str, Path]]:
        return [(each, await app.library.archive(each)) for each in await _found(app, sessions)]

    done = with_app(ctx, work)
    if as_json:
        print_json([{"session_id": session_id, "file": str(file)} for session_id, file in done])
        return
    for session_id, file in done:
        print(f"{session_id} is put away; `hermes sessions import {file}` brings it back.")


async def _found(app: App, sessions: tuple[str, ...]) -> tuple[str, ...]:
    """All names are looked up before anything moves."""
    return tuple(dict.fromkeys([await app.library.find(each) for each in sessions]))
