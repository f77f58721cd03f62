"""`hermes sessions`: list, show, search, export, import, verify, prune, fork and more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from hermes.app.build import App
from hermes.app.library import SessionFilter, SessionInfo
from hermes.codec.json import plain
from hermes.config.logs import masking
from hermes.core.errors import UsageError
from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.core.transcript import fold
from hermes.surfaces.cli.output import (
    ago,
    as_json_option,
    moment,
    print_json,
    print_table,
    with_app,
)
from hermes.surfaces.cli.style import styled


@click.group(help="List, search, export, fork and prune past sessions.")
def command() -> None:
    pass


def filters(function: Any) -> Any:
    """The options that narrow a choice of sessions."""
    for option in (
        click.option("--source", help="Only sessions of this surface."),
        click.option("--title", help="Only titles with this in them."),
        click.option("--cwd", help="Only folders with this in them."),
        click.option("--model", help="Only this model."),
        click.option("--provider", help="Only this provider."),
        click.option("--min-messages", type=int, help="At least so many messages."),
        click.option("--max-messages", type=int, help="At most so many messages."),
    ):
        function = option(function)
    return function


@command.command("list", help="Past sessions, those last used first.")
@filters
@click.option("--limit", default=20, show_default=True, help="How many.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, /, limit: int, as_json: bool, **wanted: Any) -> None:
    async def work(app: App) -> tuple[tuple[SessionInfo, ...], float]:
        found = await app.library.recent(SessionFilter(**wanted), limit=limit)
        return found, app.world.clock.now()

    found, now = with_app(ctx, work)
    if as_json:
        print_json([plain(info) for info in found])
    elif not found:
        print("No sessions yet; start one with `hermes`.")
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
        messages = fold(await app.library.records(session_id)).messages
        if as_json:
            facts = {**plain(info), "lineage": plain(lineage)}
            print_json({**facts, "messages": [plain(message) for message in messages]})
            return
        print(f"{styled(info.title or info.id, 'bold')}\n{info.id}  {moment(info.started_at)}")
        print(f"{info.model} ({info.provider}) in {info.cwd}")
        if lineage.ancestors:
            print(f"forked from {lineage.ancestors[-1]} at {info.parent_n}")
        for message in messages:
            _print_message(message)

    with_app(ctx, work)


def _print_message(message: Message) -> None:
    match message:
        case UserMessage():
            print(f"\n{styled('❯', 'bold')} {message.text}")
        case AssistantMessage():
            for call in message.calls:
                print(styled(f"  ┊ {call.name} {call.arguments}"[:160], "dim"))
            if message.text:
                print(f"\n{message.text}")
        case ToolMessage():
            for result in message.results:
                first = result.text.strip().partition("\n")[0]
                print(styled(f"  ┊   {'✗ ' if result.failed else ''}{first}"[:160], "dim"))


@command.command(help="Find words in all past sessions.")
@click.argument("query")
@click.option("--limit", default=10, show_default=True, help="How many.")
@click.option("--session", help="Only in this session.")
@as_json_option
@click.pass_context
def search(ctx: click.Context, query: str, limit: int, session: str | None, as_json: bool) -> None:
    async def work(app: App) -> None:
        inside = (await app.library.find(session),) if session else None
        hits = await app.library.search(query, limit=limit, inside=inside)
        if as_json:
            print_json([{**plain(hit), "message_id": f"{hit.session_id}:{hit.n}"} for hit in hits])
            return
        for hit in hits:
            place = f"{hit.session_id}:{hit.n}"
            print(f"{styled(place, 'bold')}  {hit.role}  {moment(hit.at)}")
            print(f"  {' '.join(hit.snippet.split())}")
        if not hits:
            print("Nothing found.")

    with_app(ctx, work)


@command.command(help="Write sessions as JSON lines (or one as Markdown). Secrets are masked.")
@click.argument("out", default="-")
@click.option("--session-id", "session", multiple=True, help="Only this one (repeatable).")
@click.option("--format", "form", type=click.Choice(["jsonl", "md"]), default="jsonl")
@click.option("--no-redact", is_flag=True, help="Leave secrets as they are.")
@click.pass_context
def export(
    ctx: click.Context, out: str, session: tuple[str, ...], form: str, no_redact: bool
) -> None:
    async def work(app: App) -> int:
        redact = None if no_redact else masking(app.config.secret_values())
        ids = [await app.library.find(each) for each in session] or None
        with click.open_file(out, "wb") as file:
            if form == "md":
                if ids is None or len(ids) != 1:
                    raise UsageError("Markdown is for one session; name it with --session-id.")
                file.write((await app.library.markdown(ids[0], redact=redact)).encode())
                return 1
            count = 0
            async for line in await app.library.export(ids, redact=redact):
                file.write(line)
                count += 1
            return count

    count = with_app(ctx, work)
    if out != "-":
        print(f"{count} session(s) written to {out}.", file=sys.stderr)


@command.command("import", help="Take in exported sessions, or lines of {session, at, role, text}.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@as_json_option
@click.pass_context
def import_(ctx: click.Context, file: Path, as_json: bool) -> None:
    done = with_app(ctx, lambda app: app.library.take_in(file))
    if as_json:
        print_json(done)
    else:
        print(
            f"{done.sessions} session(s), {done.messages} message(s) added; {done.skipped} known."
        )


@command.command(help="Check that no record was damaged or changed.")
@click.argument("session", required=False)
@as_json_option
@click.pass_context
def verify(ctx: click.Context, session: str | None, as_json: bool) -> None:
    async def work(app: App) -> tuple[Any, ...]:
        session_id = await app.library.find(session) if session else None
        return await app.library.verify(session_id)

    problems = with_app(ctx, work)
    if as_json:
        print_json({"ok": not problems, "problems": [plain(each) for each in problems]})
    else:
        for each in problems:
            print(f"✗ {each.session_id or 'file'} record {each.n}: {each.why}")
        print("All records are as they were written." if not problems else "", end="\n")
    if problems:
        ctx.exit(1)


@command.command(help="Remove sessions that were not used for long.")
@click.option("--older-than", default="90", show_default=True, help="Age: 90, 30d, 12h, 2w.")
@filters
@click.option("--archive", is_flag=True, help="Move them to compressed files instead.")
@click.option("--dry-run", is_flag=True, help="Only say which.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json_option
@click.pass_context
def prune(
    ctx: click.Context,
    /,
    older_than: str,
    archive: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **wanted: Any,
) -> None:
    chosen = SessionFilter(**wanted)

    async def rehearse(app: App) -> Any:
        return await app.library.prune(older_than, chosen, dry_run=True, archive=archive)

    async def work(app: App) -> Any:
        return await app.library.prune(older_than, chosen, dry_run=False, archive=archive)

    planned = with_app(ctx, rehearse)
    verb = "archived" if archive else "removed"
    if dry_run or not planned.removed:
        _report(planned, f"would be {verb}", as_json)
        return
    if not yes and not _confirmed(f"{len(planned.removed)} session(s) will be {verb}. Go on?"):
        return
    _report(with_app(ctx, work), verb, as_json)


def _confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Nobody can answer here; add --yes.")
    return click.confirm(question)


def _report(pruned: Any, verb: str, as_json: bool) -> None:
    if as_json:
        print_json(pruned)
        return
    for session_id in pruned.removed:
        print(session_id)
    kept = f"; {len(pruned.kept)} kept, they are in use" if pruned.kept else ""
    print(f"{len(pruned.removed)} session(s) {verb}{kept}.")


@command.command(help="A new session that shares the beginning of another.")
@click.argument("session")
@click.option("--at", type=click.IntRange(min=1), help="Last record to share (default: all).")
@click.option("--title", default="", help="Its title.")
@as_json_option
@click.pass_context
def fork(ctx: click.Context, session: str, at: int | None, title: str, as_json: bool) -> None:
    async def work(app: App) -> str:
        session_id = await app.library.find(session)
        return await app.library.fork(session_id, at=at, title=title)

    made = with_app(ctx, work)
    print_json({"session_id": made}) if as_json else print(made)


@command.command(help="Give a session a title; an empty one takes it away.")
@click.argument("session")
@click.argument("title")
@click.pass_context
def rename(ctx: click.Context, session: str, title: str) -> None:
    async def work(app: App) -> str:
        return await app.library.rename(await app.library.find(session), title)

    print(with_app(ctx, work))


@command.command(help="Remove one session for ever.")
@click.argument("session")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def delete(ctx: click.Context, session: str, yes: bool) -> None:
    session_id = with_app(ctx, lambda app: app.library.find(session))
    if yes or _confirmed(f"Remove {session_id} for ever?"):
        with_app(ctx, lambda app: app.library.delete(session_id))
        print(f"{session_id} is removed.")


@command.command(help="How much there is.")
@as_json_option
@click.pass_context
def stats(ctx: click.Context, as_json: bool) -> None:
    found = with_app(ctx, lambda app: app.library.stats())
    if as_json:
        print_json(found)
        return
    print(f"{found.sessions} sessions, {found.messages} messages, {found.events} records")
    print(f"{found.bytes / 1_000_000:.1f} MB, {found.quarantined} record(s) in quarantine")
