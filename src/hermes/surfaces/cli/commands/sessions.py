"""`hermes sessions`: list, show, search, fork, rename, archive and browse past sessions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from hermes.app.app import App
from hermes.commands.formatting import (
    format_age,
    format_bytes,
    format_time,
    one_line,
    plural,
    sanitize,
)
from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import fold
from hermes.journal.archive import SessionArchive
from hermes.journal.index.search import MessageHit
from hermes.journal.listing import CHILD_SOURCES, JOB_SOURCES, SessionFilter, SessionInfo
from hermes.surfaces.cli.command_context import (
    PickerRow,
    apply_style,
    is_terminal,
    options_of,
    with_app,
    with_archive,
)
from hermes.surfaces.cli.commands.session_files import (
    files,
    filter_options,
    is_narrowed,
    parse_filter,
)
from hermes.surfaces.cli.output import CommandGroup, Output, fields, limit_option, pick, table

MOST_BROWSED = 200
LINE = 160
NO_TERMINAL = (
    "Choosing needs a terminal. Use instead:\n"
    "  hermes sessions list\n"
    "  hermes sessions search WORDS\n"
    "  hermes --resume ID"
)
NONE_YET = "There are no sessions yet; `hermes` starts one."
ALL_ARCHIVED = "All sessions are archived; `hermes sessions list --archived` lists them."

command = CommandGroup(
    help="List, search, export, fork and prune past sessions.", commands=files.commands
)


@command.json("Hide sessions from lists; names and search still find them.", with_archive)
@click.option("--to-file", is_flag=True, help="Move each session to a file that can be imported.")
async def archive(archive: SessionArchive, sessions: tuple[str, ...], to_file: bool) -> Output:
    ids = await _find(archive, sessions)
    if not to_file:
        for session_id in ids:
            await archive.set_archived(session_id, away=True)
        data: object = [{"session_id": each, "archived": True} for each in ids]
        restore = {each: f"unarchive {each}" for each in ids}
    else:
        files = {each: str(await archive.archive(each)) for each in ids}
        data = [{"session_id": each, "file": file} for each, file in files.items()]
        restore = {each: f"import {file}" for each, file in files.items()}
    lines = [
        f"{session_id} is archived; `hermes sessions {subcommand}` restores it."
        for session_id, subcommand in restore.items()
    ]
    return Output(data, lines)


@command.json("Show archived sessions in lists again.", with_archive)
async def unarchive(archive: SessionArchive, sessions: tuple[str, ...]) -> Output:
    ids = await _find(archive, sessions)
    for session_id in ids:
        await archive.set_archived(session_id, away=False)
    data = [{"session_id": session_id, "archived": False} for session_id in ids]
    return Output(data, [f"{session_id} is no longer archived." for session_id in ids])


async def _find(archive: SessionArchive, sessions: tuple[str, ...]) -> tuple[str, ...]:
    """All names are resolved before anything changes."""
    return tuple(dict.fromkeys([await archive.find(each) for each in sessions]))


@command.command(help="Choose a past session in the terminal and resume it.")
@limit_option(default=MOST_BROWSED)
@click.pass_context
def browse(ctx: click.Context, limit: int) -> int:
    wanted = SessionFilter(exclude_sources=(*JOB_SOURCES, *CHILD_SOURCES))
    sessions = with_archive(ctx, lambda archive: archive.recent(wanted, limit=limit))
    now = time.time()
    if not sessions or not is_terminal():
        print(NO_TERMINAL if sessions else NONE_YET)
        return 0
    rows = [
        PickerRow(
            text=info.title or info.preview or info.id,
            value=info.id,
            note=" · ".join(
                # Without a title, the preview is the text.
                (format_age(now - info.last_at), info.source, *[info.preview] * bool(info.title))
            ),
        )
        for info in sessions
    ]
    picked = pick("Resume", rows)
    if picked is None:
        return 0
    from hermes.surfaces.cli.chat.startup import run_chat

    return run_chat({**options_of(ctx), "resume": picked})


@command.json("List past sessions, newest first.", with_archive)
@filter_options
@click.option("--archived", is_flag=True, help="List archived sessions instead.")
@click.option("--children", is_flag=True, help="Also list the sessions of sub-agents.")
@limit_option(default=20)
async def list_(
    archive: SessionArchive, /, limit: int, archived: bool, children: bool, **filters: Any
) -> Output:
    now = time.time()
    # Runs of scheduled jobs are listed on request: `--source cron`.
    hidden_sources = JOB_SOURCES if children else (*JOB_SOURCES, *CHILD_SOURCES)
    others = {} if is_narrowed(filters) else {"exclude_sources": hidden_sources}
    wanted = parse_filter({**filters, **others, "archived": archived})
    sessions = await archive.recent(wanted, limit=limit)
    if sessions:
        rows = [
            (
                _title(info),
                info.preview,
                format_age(now - info.last_at),
                info.source,
                info.id,
            )
            for info in sessions
        ]
        head = ("Title", "Preview", "Last active", "Source", "ID")
        return Output(sessions, table([head, *rows], (32, 40, 11, 8)))
    if archived or is_narrowed(filters):
        return Output(sessions, "No session matches.")
    hidden = await archive.recent(SessionFilter(archived=True), limit=1)
    return Output(sessions, ALL_ARCHIVED if hidden else NONE_YET)


def _title(info: SessionInfo) -> str:
    count = f" (+{plural(info.children, 'sub-agent')})" if info.children else ""
    return f"{info.title or '—'}{count}"


@command.json("Show the details and the conversation of a session.", with_archive)
async def show(archive: SessionArchive, session: str) -> Output:
    session_id = await archive.find(session)
    info, lineage = await archive.info(session_id), await archive.lineage(session_id)
    messages = await archive.conversation(session_id)
    transcript = fold(await archive.records(session_id))

    def lines() -> Iterator[str]:
        yield apply_style(one_line(info.title or info.preview or info.id), "bold")
        archived = "  (archived)" if info.archived else ""
        yield f"{info.id}  {format_time(info.started_at)}  from {info.source}{archived}"
        if info.model:
            yield one_line(f"{info.model} ({info.provider}) in {info.cwd}")
        if lineage.ancestors:
            yield f"forked from {lineage.ancestors[-1]} after record {info.parent_n}"
        for child in lineage.children:
            yield f"forked as {child}"
        for message in transcript.messages:
            yield from _message_lines(message)

    return Output({**fields(info), "lineage": lineage, "messages": messages}, lines())


def _message_lines(message: Message) -> Iterator[str]:
    match message:
        case UserMessage():
            yield f"\n{apply_style('❯', 'bold')} {sanitize(message.text)}"
        case AssistantMessage():
            for call in message.calls:
                yield apply_style(one_line(f"┊ {call.name} {call.arguments}", LINE), "dim")
            if message.text:
                yield f"\n{sanitize(message.text)}"
            if message.stop == "interrupted":
                yield apply_style("(interrupted)", "dim")
        case ToolMessage():
            for result in message.results:
                first = result.text.strip().partition("\n")[0]
                sign = "✗ " if result.failed else ""
                yield apply_style(one_line(f"┊   {sign}{first}", LINE), "dim")


@command.json('Search past sessions; "quoted words" are a phrase.', with_archive)
@limit_option(default=10)
@click.option("--session", metavar="ID", help="Search only this session.")
async def search(
    archive: SessionArchive, query: tuple[str, ...], limit: int, session: str | None
) -> Output:
    inside = (await archive.find(session),) if session else None
    hits = await archive.search(" ".join(query), limit=limit, inside=inside)
    lines = []
    for hit in hits:
        lines.append(f"{apply_style(_place(hit), 'bold')}  {hit.role}  {format_time(hit.at)}")
        lines.append(f"  {one_line(hit.snippet)}")
    data = [{**fields(hit), "message_id": _place(hit)} for hit in hits]
    return Output(data, lines or "Nothing found.")


def _place(hit: MessageHit) -> str:
    return f"{hit.session_id}:{hit.n}"


@command.json("Create a session that continues another one.")
@click.option("--at", metavar="N", type=click.IntRange(min=1), help="Fork after record N.")
@click.option("--title", default="", help="Set the title of the new session.")
@click.option("-m", "--model", metavar="MODEL", help="Continue with this model.")
@click.option("--provider", metavar="NAME", help="Continue with this provider.")
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

    choices = {"model": model, "provider": provider}
    chosen = {key: value for key, value in choices.items() if value}
    ctx.find_root().obj = {**options_of(ctx), **chosen}
    made = with_app(ctx, work)
    data = {"session_id": made.id, "model": made.model, "provider": made.provider}
    return Output(data, made.id)


@command.json("Set the title of a session; an empty title removes it.", with_archive)
async def rename(archive: SessionArchive, session: str, title: str) -> Output:
    session_id = await archive.find(session)
    new_title = await archive.rename(session_id, title)
    result = f"is now called “{new_title}”." if new_title else "has no title now."
    return Output({"session_id": session_id, "title": new_title}, f"{session_id} {result}")


@command.json("Count sessions, messages and records.", with_archive)
async def stats(archive: SessionArchive) -> Output:
    found = await archive.stats()
    lines = [
        f"{plural(found.sessions, 'session')}, {plural(found.messages, 'message')}, "
        f"{plural(found.events, 'record')}",
        *(f"  {count} from {one_line(source)}" for source, count in found.by_source.items()),
        f"{format_bytes(found.bytes)}, {plural(found.quarantined, 'record')} in quarantine",
    ]
    return Output(found, lines)
