"""`hermes sessions archive` and `unarchive`: hide sessions from lists and show them again."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.surfaces.cli.output import Output, json_output, with_app


@click.command(help="Archive sessions: hidden from lists, still found by name and by search.")
@click.argument("sessions", nargs=-1, required=True)
@click.option("--to-file", is_flag=True, help="Move each to a file that can be imported instead.")
@json_output(with_app)
async def archive(app: App, sessions: tuple[str, ...], to_file: bool) -> Output:
    if not to_file:
        ids = await _set_archived(app, sessions, archived=True)
        data: object = [{"session_id": each, "archived": True} for each in ids]
        restore = {each: f"unarchive {each}" for each in ids}
    else:
        files = {each: str(await app.archive.archive(each)) for each in await _find(app, sessions)}
        data = [{"session_id": each, "file": file} for each, file in files.items()]
        restore = {each: f"import {file}" for each, file in files.items()}
    lines = [
        f"{session_id} is archived; `hermes sessions {words}` restores it."
        for session_id, words in restore.items()
    ]
    return Output(data, lines)


@click.command(help="Show archived sessions in lists again.")
@click.argument("sessions", nargs=-1, required=True)
@json_output(with_app)
async def unarchive(app: App, sessions: tuple[str, ...]) -> Output:
    ids = await _set_archived(app, sessions, archived=False)
    data = [{"session_id": session_id, "archived": False} for session_id in ids]
    return Output(data, [f"{session_id} is no longer archived." for session_id in ids])


async def _set_archived(app: App, sessions: tuple[str, ...], *, archived: bool) -> tuple[str, ...]:
    found = await _find(app, sessions)
    for session_id in found:
        await app.archive.set_archived(session_id, away=archived)
    return found


async def _find(app: App, sessions: tuple[str, ...]) -> tuple[str, ...]:
    """All names are resolved before anything changes."""
    return tuple(dict.fromkeys([await app.archive.find(each) for each in sessions]))
