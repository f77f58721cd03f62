"""`hermes sessions`: list, show, search, fork, rename, archive and browse past sessions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click

from hermes.app.app import App
from hermes.commands.formatting import one_line, sanitize
from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import fold
from hermes.journal.archive import Lineage, SearchHit, SessionFilter, SessionInfo
from hermes.surfaces.cli.command_context import apply_style
from hermes.surfaces.cli.commands.session_files import (
    delete,
    export,
    filter_options,
    import_,
    is_narrowed,
    optimize,
    parse_filter,
    prune,
    repair,
    verify,
)
from hermes.surfaces.cli.output import (
    Output,
    ago,
    fields,
    format_time,
    json_output,
    table,
    with_app,
)


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
        return await app.archive.recent(limit=limit), app.run.world.clock.now()

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
    from hermes.surfaces.cli.chat.startup import run_chat

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


LINE = 160
NONE_YET = "No sessions yet; start one with `hermes`."
ALL_ARCHIVED = "All sessions are archived; `hermes sessions list --archived` lists them."

limit_type = click.IntRange(min=1)


@click.group(help="List, search, export, fork and prune past sessions.")
def command() -> None:
    pass


@command.command("list", help="List past sessions, most recently used first.")
@filter_options
@click.option("--archived", is_flag=True, help="List the archived ones instead.")
@click.option(
    "--limit", metavar="N", type=limit_type, default=20, show_default=True, help="How many."
)
@json_output(with_app)
async def list_(app: App, /, limit: int, archived: bool, **given: Any) -> Output:
    now = app.run.world.clock.now()
    wanted = parse_filter({**given, "archived": archived}, now)
    found = await app.archive.recent(wanted, limit=limit)
    if found:
        rows = [
            (info.title or "—", info.preview, ago(now - info.last_at), info.source, info.id)
            for info in found
        ]
        head = ("Title", "Preview", "Last active", "Source", "ID")
        return Output(found, table([head, *rows], (32, 40, 11, 8)))
    if archived or is_narrowed(given):
        return Output(found, "No session matches.")
    hidden = await app.archive.recent(SessionFilter(archived=True), limit=1)
    return Output(found, ALL_ARCHIVED if hidden else NONE_YET)


@command.command(help="Show one session: its details and its conversation.")
@click.argument("session")
@json_output(with_app)
async def show(app: App, session: str) -> Output:
    session_id = await app.archive.find(session)
    info = await app.archive.info(session_id)
    lineage = await app.archive.lineage(session_id)
    messages = await app.archive.conversation(session_id)
    transcript = fold(await app.archive.records(session_id))
    data = {**fields(info), "lineage": lineage, "messages": messages}
    return Output(data, _session_lines(info, lineage, transcript.messages))


def _session_lines(
    info: SessionInfo, lineage: Lineage, messages: Iterable[Message]
) -> Iterator[str]:
    yield apply_style(one_line(info.title or info.preview or info.id), "bold")
    archived = "  (archived)" if info.archived else ""
    yield f"{info.id}  {format_time(info.started_at)}  from {info.source}{archived}"
    if info.model:
        yield one_line(f"{info.model} ({info.provider}) in {info.cwd}")
    if lineage.ancestors:
        yield f"forked from {lineage.ancestors[-1]} after record {info.parent_n}"
    for child in lineage.children:
        yield f"forked as {child}"
    for message in messages:
        yield from _message_lines(message)


def _message_lines(message: Message) -> Iterator[str]:
    match message:
        case UserMessage():
            yield f"\n{apply_style('❯', 'bold')} {sanitize(message.text)}"
        case AssistantMessage():
            for call in message.calls:
                yield apply_style(one_line(f"┊ {call.name} {call.arguments}", LINE), "dim")
            if message.text:
                yield f"\n{sanitize(message.text)}"
        case ToolMessage():
            for result in message.results:
                first = result.text.strip().partition("\n")[0]
                sign = "✗ " if result.failed else ""
                yield apply_style(one_line(f"┊   {sign}{first}", LINE), "dim")


@command.command(help="Search all past sessions; “quoted” words are a phrase.")
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--limit", metavar="N", type=limit_type, default=10, show_default=True, help="How many."
)
@click.option("--session", help="Only in this session.")
@json_output(with_app)
async def search(app: App, query: tuple[str, ...], limit: int, session: str | None) -> Output:
    inside = (await app.archive.find(session),) if session else None
    hits = await app.archive.search(" ".join(query), limit=limit, inside=inside)
    lines = []
    for hit in hits:
        lines.append(f"{apply_style(_place(hit), 'bold')}  {hit.role}  {format_time(hit.at)}")
        lines.append(f"  {one_line(hit.snippet)}")
    data = [{**fields(hit), "message_id": _place(hit)} for hit in hits]
    return Output(data, lines or "Nothing found.")


def _place(hit: SearchHit) -> str:
    return f"{hit.session_id}:{hit.n}"


@command.command(help="Create a session that shares the beginning of another.")
@click.argument("session")
@click.option(
    "--at", metavar="N", type=click.IntRange(min=1), help="Last record to share (default: all)."
)
@click.option("--title", default="", help="Its title.")
@click.option("-m", "--model", metavar="MODEL", help="Continue with this model.")
@click.option("--provider", metavar="NAME", help="Continue with this provider.")
@json_output()
def fork(
    ctx: click.Context,
    /,
    session: str,
    at: int | None,
    title: str,
    model: str | None,
    provider: str | None,
) -> Output:
    async def work(app: App) -> SessionInfo:
        session_id = await app.archive.find(session)
        made = await app.archive.fork(session_id, at=at, title=title)
        if app.models.is_explicit():
            # Opening the session switches it to the requested model.
            await app.close_session(
                await app.open(SessionRequest(source="cli", attended=False, resume=made))
            )
        return await app.archive.info(made)

    root = ctx.find_root()
    given = {"model": model, "provider": provider}
    root.obj = {**(root.obj or {}), **{key: value for key, value in given.items() if value}}
    made = with_app(ctx, work)
    data = {"session_id": made.id, "model": made.model, "provider": made.provider}
    return Output(data, made.id)


@command.command(help="Set the title of a session; an empty one removes it.")
@click.argument("session")
@click.argument("title")
@json_output(with_app)
async def rename(app: App, session: str, title: str) -> Output:
    session_id = await app.archive.find(session)
    given = await app.archive.rename(session_id, title)
    words = f"is now called “{given}”." if given else "has no title."
    return Output({"session_id": session_id, "title": given}, f"{session_id} {words}")


@command.command(help="Count sessions, messages and records.")
@json_output(with_app)
async def stats(app: App) -> Output:
    found = await app.archive.stats()
    lines = [
        f"{found.sessions} session(s), {found.messages} message(s), {found.events} record(s)",
        *(f"  {count} from {one_line(source)}" for source, count in found.by_source.items()),
        f"{found.bytes / 1_000_000:.1f} MB, {found.quarantined} record(s) in quarantine",
    ]
    return Output(found, lines)


for each in (
    browse,
    export,
    import_,
    verify,
    repair,
    prune,
    delete,
    archive,
    unarchive,
    optimize,
):
    command.add_command(each)
