"""`hermes sessions export`, `import`, `verify`, `repair`, `prune`, `delete` and `optimize`."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import click

from hermes.app.app import App
from hermes.commands.formatting import format_bytes, plural
from hermes.core.errors import UsageError
from hermes.journal.archive import SessionArchive
from hermes.journal.html_export import html_page, prompts
from hermes.journal.listing import SessionFilter, parse_age, parse_date
from hermes.journal.upkeep import PruneResult
from hermes.journal.verify import VerifyProblem
from hermes.replay.collection import collect_recording
from hermes.replay.recording import pack_recording
from hermes.surfaces.cli.command_context import with_app, with_archive
from hermes.surfaces.cli.output import CommandGroup, F, Output, confirm, dry_run_option, yes_option

COUNT = click.IntRange(min=0)

_OPTIONS = (
    click.option("--source", help="Select only sessions from this surface."),
    click.option("--title", help="Select only sessions whose title contains this text."),
    click.option("--cwd", help="Select only sessions whose folder contains this text."),
    click.option(
        "--workspace", metavar="PATH", help="Select only sessions in this folder or below."
    ),
    click.option("--model", help="Select only sessions with this model."),
    click.option("--provider", help="Select only sessions with this provider."),
    click.option("--end-reason", help="Select only sessions that ended for this reason."),
    click.option(
        "--before", metavar="DATE", help="Select only sessions last used before this date."
    ),
    click.option(
        "--after", metavar="DATE", help="Select only sessions last used on this date or later."
    ),
    click.option(
        "--newer-than",
        metavar="AGE",
        help="Select only sessions used in the last 90 (days), 12h, 2w …",
    ),
    click.option(
        "--min-messages",
        metavar="N",
        type=COUNT,
        help="Select only sessions with at least N messages.",
    ),
    click.option(
        "--max-messages",
        metavar="N",
        type=COUNT,
        help="Select only sessions with at most N messages.",
    ),
)


def filter_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def parse_filter(options: Mapping[str, Any]) -> SessionFilter:
    """Includes archived sessions unless `archived` is given. Raises UsageError for an invalid date
    or age."""
    values = {"archived": None, **options}
    newer_than, workspace = values.pop("newer_than"), values.pop("workspace")
    if workspace is not None:
        values["within"] = str(Path(workspace).expanduser().resolve())
    for name in ("before", "after"):
        if values[name] is not None:
            values[name] = parse_date(values[name])
    if newer_than is not None:
        values["after"] = max(values["after"] or 0.0, time.time() - parse_age(newer_than))
    return SessionFilter(**values)


def is_narrowed(options: Mapping[str, Any]) -> bool:
    return any(value is not None for value in options.values())


FORMATS = ("jsonl", "md", "html", "replay")
UNCHANGED = "Nothing was deleted."

files = CommandGroup()


@files.json("Export sessions as JSON lines, or one session as Markdown, HTML or a replay file.")
@click.option(
    "--session-id", "session", multiple=True, metavar="ID", help="Export this session (repeatable)."
)
@filter_options
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="jsonl", help="Set the file format."
)
@click.option("--only", type=click.Choice(["user-prompts"]), help="Export only your own messages.")
@click.option("--no-redact", is_flag=True, help="Do not mask secrets.")
def export(
    ctx: click.Context,
    /,
    *,
    out: str = "-",
    session: tuple[str, ...],
    form: str,
    only: str | None,
    no_redact: bool,
    as_json: bool,
    **filters: Any,
) -> Output | None:
    if form != "jsonl" and len(session) != 1:
        raise UsageError(f"The format {form} needs one session; name it with --session-id.")
    if only and form != "jsonl":
        raise UsageError("--only writes JSON lines; leave out --format.")
    if form == "replay" and no_redact:
        raise UsageError("A replay file is always redacted; leave out --no-redact.")
    if session and is_narrowed(filters):
        raise UsageError("Give --session-id or filters, not both.")

    async def work(app: App) -> int:
        ids = [await app.archive.find(each) for each in session] if session else None
        if is_narrowed(filters):
            # Oldest first: parents come before their forks.
            sessions = await app.archive.recent(parse_filter(filters), limit=None)
            ids = [info.id for info in sorted(sessions, key=lambda info: info.started_at)]
        lines = await _lines(app, ids, only or form, masked=not no_redact)
        count = 0
        with click.open_file(out, "wb") as file:
            async for line in lines:
                file.write(line)
                count += 1
        return count

    count = with_app(ctx, work)
    if out == "-":
        return None
    what = "message" if only else "session"
    if not as_json:
        print(f"{plural(count, what)} written to {out}.", file=sys.stderr)
    return Output({f"{what}s": count, "file": out})


async def _lines(
    app: App, ids: list[str] | None, form: str, *, masked: bool
) -> AsyncIterator[bytes]:
    redact = app.context.redactor.line if masked else None
    if form == "user-prompts":
        return prompts(app.archive, app.journal, ids, redact)
    if form == "jsonl" or ids is None:
        return await app.archive.export(ids, redact=redact)
    if form == "replay":
        return _one(pack_recording(await collect_recording(app.context, app.journal, ids[0])))
    if form == "html":
        return _one((await html_page(app.archive, app.journal, ids[0], redact)).encode())
    return _one((await app.archive.markdown(ids[0], redact=redact)).encode())


async def _one(data: bytes) -> AsyncIterator[bytes]:
    yield data


@files.json(
    "Import exported sessions, or lines of {session, at, role, text}; - is stdin.", with_archive
)
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
)
async def import_(archive: SessionArchive, file: Path) -> Output:
    if str(file) == "-":
        done = await archive.import_lines(sys.stdin.buffer)
    else:
        done = await archive.import_file(file)
    counts = f"{plural(done.sessions, 'session')} and {plural(done.messages, 'message')} added"
    return Output(done, f"{counts}; {done.skipped} already existed.")


@files.json("Check that no record is damaged or was changed.", with_archive)
async def verify(archive: SessionArchive, session: str | None = None) -> Output:
    session_id = await archive.find(session) if session else None
    return _integrity_output(await archive.verify(session_id))


@files.json("Repair the journal file and rebuild the search index.", with_archive)
@click.option("--check-only", is_flag=True, help="Report problems, without repairing them.")
async def repair(archive: SessionArchive, check_only: bool) -> Output:
    if check_only:
        return _integrity_output(await archive.verify())
    return _integrity_output(await archive.repair(), " The search index was rebuilt.")


def _integrity_output(problems: tuple[VerifyProblem, ...], more: str = "") -> Output:
    lines = [
        f"✗ {f'session {each.session_id} record {each.n}' if each.session_id else 'the file'}: "
        f"{each.why}"
        for each in problems
    ]
    if problems:
        advice = "all other records are intact; restore a backup to recover these"
        lines.append(f"{plural(len(problems), 'problem')}; {advice}.")
    data = {"ok": not problems, "problems": problems}
    return Output(data, lines or f"All records are intact.{more}", code=bool(problems))


@files.json("Delete sessions that were not used for some time.")
@click.option(
    "--older-than",
    metavar="AGE",
    default="90",
    show_default=True,
    help="Delete sessions not used for 90 (days), 12h, 2w …",
)
@filter_options
@click.option("--archive", is_flag=True, help="Move the sessions to compressed files instead.")
@dry_run_option
@yes_option
def prune(
    ctx: click.Context, /, older_than: str, archive: bool, dry_run: bool, yes: bool, **filters: Any
) -> Output:
    age, wanted = parse_age(older_than), parse_filter(filters)
    verb = "archived" if archive else "deleted"

    def run(*, dry_run: bool) -> PruneResult:
        return with_archive(
            ctx, lambda sessions: sessions.prune(age, wanted, dry_run=dry_run, archive=archive)
        )

    planned = run(dry_run=True)
    if dry_run or not planned.removed:
        return _prune_output(planned, f"would be {verb}")
    question = f"{plural(len(planned.removed), 'session')} will be {verb}. Continue?"
    confirm(question, yes=yes, otherwise=UNCHANGED)
    return _prune_output(run(dry_run=False), verb)


def _prune_output(pruned: PruneResult, verb: str) -> Output:
    kept = f"; {len(pruned.kept)} kept, because they are open or have forks" if pruned.kept else ""
    total = f"{plural(len(pruned.removed), 'session')} {verb}{kept}."
    return Output(pruned, [*pruned.removed, total])


@files.json("Delete a session permanently.")
@yes_option
def delete(ctx: click.Context, session: str, yes: bool) -> Output:
    session_id = with_archive(ctx, lambda archive: archive.find(session))
    confirm(f"Delete {session_id} permanently?", yes=yes, otherwise=UNCHANGED)
    with_archive(ctx, lambda archive: archive.delete(session_id))
    return Output({"session_id": session_id}, f"{session_id} is deleted.")


@files.json("Free the space of deleted sessions and rebuild the search index.", with_archive)
async def optimize(archive: SessionArchive) -> Output:
    before, after = await archive.optimize()
    data = {"bytes_before": before, "bytes_after": after}
    sizes = f"{format_bytes(before)} became {format_bytes(after)}"
    return Output(data, f"{sizes}; the search index was rebuilt.")
