"""`hermes sessions`: list, show, search, fork, rename, count, and the commands about files and
removal."""

from __future__ import annotations

from typing import Any

import click

from hermes.app.build import App
from hermes.commands.visible import clean, one_line
from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.core.session_request import Opening
from hermes.core.transcript import fold
from hermes.journal.archive import Hit, Lineage, SessionFilter, SessionInfo
from hermes.surfaces.cli.commands import (
    sessions_archive,
    sessions_browse,
    sessions_files,
    sessions_removal,
)
from hermes.surfaces.cli.commands.session_filters import chosen, filter_options, is_narrowed
from hermes.surfaces.cli.output import (
    ago,
    as_json_option,
    columns,
    moment,
    print_json,
    print_table,
    with_app,
)
from hermes.surfaces.cli.style import styled

LINE = 160
NONE_YET = "No sessions yet; start one with `hermes`."
ALL_AWAY = "All sessions are put away; `hermes sessions list --archived` shows them."

limit_type = click.IntRange(min=1)


@click.group(help="List, search, export, fork and prune past sessions.")
def command() -> None:
    pass


@command.command("list", help="Past sessions, those last used first.")
@filter_options
@click.option("--archived", is_flag=True, help="Those that were put away instead.")
@click.option(
    "--limit", metavar="N", type=limit_type, default=20, show_default=True, help="How many."
)
@as_json_option
@click.pass_context
def list_(ctx: click.Context, /, limit: int, archived: bool, as_json: bool, **given: Any) -> None:
    async def work(app: App) -> tuple[tuple[SessionInfo, ...], float, bool]:
        now = app.world.clock.now()
        wanted = chosen({**given, "archived": archived}, now)
        found = await app.library.recent(wanted, limit=limit)
        away = () if found else await app.library.recent(SessionFilter(archived=True), limit=1)
        return found, now, bool(away)

    found, now, all_away = with_app(ctx, work)
    if as_json:
        print_json(columns(found))
    elif not found and (archived or is_narrowed(given)):
        print("No session is like that.")
    elif not found:
        print(ALL_AWAY if all_away else NONE_YET)
    else:
        rows = [
            (info.title or "—", info.preview, ago(now - info.last_at), info.source, info.id)
            for info in found
        ]
        print_table([("Title", "Preview", "Last active", "Source", "ID"), *rows], (32, 40, 11, 8))


@command.command(help="One session: its facts and its conversation.")
@click.argument("session")
@as_json_option
@click.pass_context
def show(ctx: click.Context, session: str, as_json: bool) -> None:
    async def work(app: App) -> None:
        session_id = await app.library.find(session)
        info = await app.library.info(session_id)
        lineage = await app.library.lineage(session_id)
        if as_json:
            said = await app.library.conversation(session_id)
            print_json({**columns(info), "lineage": columns(lineage), "messages": columns(said)})
            return
        _print_facts(info, lineage)
        for message in fold(await app.library.records(session_id)).messages:
            _print_message(message)

    with_app(ctx, work)


def _print_facts(info: SessionInfo, lineage: Lineage) -> None:
    print(styled(one_line(info.title or info.preview or info.id), "bold"))
    away = "  (put away)" if info.archived else ""
    print(f"{info.id}  {moment(info.started_at)}  from {info.source}{away}")
    if info.model:
        print(one_line(f"{info.model} ({info.provider}) in {info.cwd}"))
    if lineage.ancestors:
        print(f"forked from {lineage.ancestors[-1]} after record {info.parent_n}")
    for child in lineage.children:
        print(f"forked as {child}")


def _print_message(message: Message) -> None:
    match message:
        case UserMessage():
            print(f"\n{styled('❯', 'bold')} {clean(message.text)}")
        case AssistantMessage():
            for call in message.calls:
                print(styled(one_line(f"┊ {call.name} {call.arguments}", LINE), "dim"))
            if message.text:
                print(f"\n{clean(message.text)}")
        case ToolMessage():
            for result in message.results:
                first = result.text.strip().partition("\n")[0]
                sign = "✗ " if result.failed else ""
                print(styled(one_line(f"┊   {sign}{first}", LINE), "dim"))


@command.command(help="Find words in all past sessions; “quoted” words stand together.")
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--limit", metavar="N", type=limit_type, default=10, show_default=True, help="How many."
)
@click.option("--session", help="Only in this session.")
@as_json_option
@click.pass_context
def search(
    ctx: click.Context, query: tuple[str, ...], limit: int, session: str | None, as_json: bool
) -> None:
    async def work(app: App) -> tuple[Hit, ...]:
        inside = (await app.library.find(session),) if session else None
        return await app.library.search(" ".join(query), limit=limit, inside=inside)

    hits = with_app(ctx, work)
    if as_json:
        print_json([{**columns(hit), "message_id": _place(hit)} for hit in hits])
        return
    for hit in hits:
        print(f"{styled(_place(hit), 'bold')}  {hit.role}  {moment(hit.at)}")
        print(f"  {one_line(hit.snippet)}")
    if not hits:
        print("Nothing found.")


def _place(hit: Hit) -> str:
    return f"{hit.session_id}:{hit.n}"


@command.command(help="A new session that shares the beginning of another.")
@click.argument("session")
@click.option(
    "--at", metavar="N", type=click.IntRange(min=1), help="Last record to share (default: all)."
)
@click.option("--title", default="", help="Its title.")
@click.option("-m", "--model", metavar="MODEL", help="Go on with this model.")
@click.option("--provider", metavar="NAME", help="Go on with this provider.")
@as_json_option
@click.pass_context
def fork(
    ctx: click.Context,
    /,
    session: str,
    at: int | None,
    title: str,
    model: str | None,
    provider: str | None,
    as_json: bool,
) -> None:
    async def work(app: App) -> SessionInfo:
        session_id = await app.library.find(session)
        made = await app.library.fork(session_id, at=at, title=title)
        if app.models.asked_for():
            # Opening it is what switches to the model that was asked for.
            await app.leave(await app.open(Opening(source="cli", attended=False, resume=made)))
        return await app.library.info(made)

    root = ctx.find_root()
    given = {"model": model, "provider": provider}
    root.obj = {**(root.obj or {}), **{key: value for key, value in given.items() if value}}
    made = with_app(ctx, work)
    if as_json:
        print_json({"session_id": made.id, "model": made.model, "provider": made.provider})
    else:
        print(made.id)


@command.command(help="Give a session a title; an empty one takes it away.")
@click.argument("session")
@click.argument("title")
@as_json_option
@click.pass_context
def rename(ctx: click.Context, session: str, title: str, as_json: bool) -> None:
    async def work(app: App) -> tuple[str, str]:
        session_id = await app.library.find(session)
        return session_id, await app.library.rename(session_id, title)

    session_id, given = with_app(ctx, work)
    if as_json:
        print_json({"session_id": session_id, "title": given})
    else:
        print(f"{session_id} is now called “{given}”." if given else f"{session_id} has no title.")


@command.command(help="How much there is.")
@as_json_option
@click.pass_context
def stats(ctx: click.Context, as_json: bool) -> None:
    found = with_app(ctx, lambda app: app.library.stats())
    if as_json:
        print_json(columns(found))
        return
    print(f"{found.sessions} session(s), {found.messages} message(s), {found.events} record(s)")
    for source, count in found.by_source.items():
        print(f"  {count} from {one_line(source)}")
    print(f"{found.bytes / 1_000_000:.1f} MB, {found.quarantined} record(s) in quarantine")


for each in (
    sessions_browse.browse,
    sessions_files.export,
    sessions_files.import_,
    sessions_files.verify,
    sessions_files.repair,
    sessions_removal.prune,
    sessions_removal.delete,
    sessions_archive.archive,
    sessions_archive.unarchive,
    sessions_removal.optimize,
):
    command.add_command(each)
