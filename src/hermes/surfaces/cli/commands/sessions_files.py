"""`hermes sessions export`, `import`, `verify`, `repair`: sessions as files, and are they whole."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click

from hermes.app.build import App
from hermes.core.errors import UsageError
from hermes.journal.archive import Imported, Problem
from hermes.journal.html_export import html_page, prompts
from hermes.replay.file import packed
from hermes.replay.gathering import gather
from hermes.surfaces.cli.commands.session_filters import chosen, filter_options, is_narrowed
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app

FORMS = ("jsonl", "md", "html", "replay")


@click.command(help="Write sessions as JSON lines, or one as a text, a page, or to be replayed.")
@click.argument("out", default="-")
@click.option("--session-id", "session", multiple=True, help="Only this one (repeatable).")
@filter_options
@click.option("--format", "form", type=click.Choice(FORMS), default="jsonl", help="How.")
@click.option("--only", type=click.Choice(["user-prompts"]), help="Only what you have said.")
@click.option("--no-redact", is_flag=True, help="Write what the journal holds, as it is.")
@as_json_option
@click.pass_context
def export(
    ctx: click.Context,
    /,
    out: str,
    session: tuple[str, ...],
    form: str,
    only: str | None,
    no_redact: bool,
    as_json: bool,
    **given: Any,
) -> None:
    if form != "jsonl" and len(session) != 1:
        raise UsageError(f"The format {form} is for one session; name it with --session-id.")
    if only and form != "jsonl":
        raise UsageError("--only writes JSON lines; leave out --format.")
    if form == "replay" and no_redact:
        raise UsageError("A session to be replayed is always masked; leave out --no-redact.")
    if session and is_narrowed(given):
        raise UsageError("--session-id names the sessions; leave out the filters.")

    async def work(app: App) -> int:
        ids = [await app.library.find(each) for each in session]
        if is_narrowed(given):
            wanted = chosen(given, app.world.clock.now())
            # The oldest first, so that parents come before their forks.
            found = await app.library.recent(wanted, limit=None)
            ids = [info.id for info in sorted(found, key=lambda info: info.started_at)]
        everything = not session and not is_narrowed(given)
        lines = await _lines(app, None if everything else ids, only or form, masked=not no_redact)
        count = 0
        with click.open_file(out, "wb") as file:
            async for line in lines:
                file.write(line)
                count += 1
        return count

    count = with_app(ctx, work)
    if out != "-" and as_json:
        print_json({"messages" if only else "sessions": count, "file": out})
    elif out != "-":
        what = "message(s)" if only else "session(s)"
        print(f"{count} {what} written to {out}.", file=sys.stderr)


async def _lines(
    app: App, ids: list[str] | None, form: str, *, masked: bool
) -> AsyncIterator[bytes]:
    redact = app.secrecy.line if masked else None
    if form == "user-prompts":
        return prompts(app.library, app.journal, ids, redact)
    if form == "jsonl" or ids is None:
        return await app.library.export(ids, redact=redact)
    if form == "replay":
        return _one(packed(await gather(app.run, app.journal, ids[0])))
    if form == "html":
        return _one((await html_page(app.library, app.journal, ids[0], redact)).encode())
    return _one((await app.library.markdown(ids[0], redact=redact)).encode())


async def _one(data: bytes) -> AsyncIterator[bytes]:
    yield data


@click.command(
    "import", help="Take in exported sessions, or lines of {session, at, role, text}; - is stdin."
)
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
)
@as_json_option
@click.pass_context
def import_(ctx: click.Context, file: Path, as_json: bool) -> None:
    async def work(app: App) -> Imported:
        if str(file) == "-":
            return await app.library.take_in_lines(sys.stdin.buffer)
        return await app.library.take_in(file)

    done = with_app(ctx, work)
    if as_json:
        print_json(columns(done))
    else:
        words = f"{done.sessions} session(s), {done.messages} message(s) added"
        print(f"{words}; {done.skipped} known already.")


@click.command(help="Check that no record was damaged or changed.")
@click.argument("session", required=False)
@as_json_option
@click.pass_context
def verify(ctx: click.Context, session: str | None, as_json: bool) -> None:
    async def work(app: App) -> tuple[Problem, ...]:
        session_id = await app.library.find(session) if session else None
        return await app.library.verify(session_id)

    _report(ctx, with_app(ctx, work), "All records are as they were written.", as_json)


@click.command(help="Mend the journal's file; the search index is made anew.")
@click.option("--check-only", is_flag=True, help="Only say what is wrong.")
@as_json_option
@click.pass_context
def repair(ctx: click.Context, check_only: bool, as_json: bool) -> None:
    async def work(app: App) -> tuple[Problem, ...]:
        return await (app.library.verify() if check_only else app.library.repair())

    done = "" if check_only else " The search index is new."
    _report(ctx, with_app(ctx, work), f"All records are as they were written.{done}", as_json)


def _report(ctx: click.Context, problems: tuple[Problem, ...], well: str, as_json: bool) -> None:
    """The exit code is 1 when there are any."""
    if as_json:
        print_json({"ok": not problems, "problems": columns(problems)})
    elif problems:
        for each in problems:
            place = f"session {each.session_id} record {each.n}" if each.session_id else "the file"
            print(f"✗ {place}: {each.why}")
        advice = "restore a backup to get them back"
        print(f"{len(problems)} problem(s); all other records stay usable; {advice}.")
    else:
        print(well)
    if problems:
        ctx.exit(1)
