"""`hermes sessions export`, `import`, `verify`, `repair`, `prune`, `delete` and `optimize`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from hermes.app.app import App
from hermes.core.errors import UsageError
from hermes.journal.archive import PruneResult, SessionFilter, VerifyProblem, parse_age, parse_date
from hermes.journal.html_export import html_page, prompts
from hermes.replay.collection import collect_recording
from hermes.replay.recording import pack_recording
from hermes.surfaces.cli.output import (
    Output,
    as_json_option,
    confirm,
    json_output,
    print_json,
    with_app,
    yes_option,
)

F = TypeVar("F", bound=Callable[..., Any])

COUNT = click.IntRange(min=0)

_OPTIONS = (
    click.option("--source", help="Only sessions from this surface."),
    click.option("--title", help="Only titles that contain this."),
    click.option("--cwd", help="Only folders that contain this."),
    click.option("--workspace", metavar="PATH", help="Only sessions in this folder or below."),
    click.option("--model", help="Only this model."),
    click.option("--provider", help="Only this provider."),
    click.option("--end-reason", help="Only sessions that ended for this reason."),
    click.option("--before", metavar="DATE", help="Last used before this date: 2026-05-01."),
    click.option("--after", metavar="DATE", help="Last used on this date or later."),
    click.option("--newer-than", metavar="AGE", help="Last used within: 90 (days), 12h, 2w."),
    click.option("--min-messages", metavar="N", type=COUNT, help="At least N messages."),
    click.option("--max-messages", metavar="N", type=COUNT, help="At most N messages."),
)


def filter_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def parse_filter(given: Mapping[str, Any], now: float) -> SessionFilter:
    """Includes archived sessions unless `archived` is given. Raises UsageError for an invalid date
    or age."""
    values = {"archived": None, **given}
    newer_than, workspace = values.pop("newer_than"), values.pop("workspace")
    if workspace is not None:
        values["within"] = str(Path(workspace).expanduser().resolve())
    for name in ("before", "after"):
        if values[name] is not None:
            values[name] = parse_date(values[name])
    if newer_than is not None:
        values["after"] = max(values["after"] or 0.0, now - parse_age(newer_than))
    return SessionFilter(**values)


def is_narrowed(given: Mapping[str, Any]) -> bool:
    return any(value is not None for value in given.values())


FORMS = ("jsonl", "md", "html", "replay")


@click.command(help="Export sessions as JSON lines, or one as Markdown, HTML or a replay file.")
@click.argument("out", default="-")
@click.option("--session-id", "session", multiple=True, help="Only this session (repeatable).")
@filter_options
@click.option("--format", "form", type=click.Choice(FORMS), default="jsonl", help="File format.")
@click.option("--only", type=click.Choice(["user-prompts"]), help="Only your own messages.")
@click.option("--no-redact", is_flag=True, help="Do not mask secrets.")
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
        raise UsageError("A replay file is always redacted; leave out --no-redact.")
    if session and is_narrowed(given):
        raise UsageError("--session-id names the sessions; leave out the filters.")

    async def work(app: App) -> int:
        ids = [await app.archive.find(each) for each in session]
        if is_narrowed(given):
            wanted = parse_filter(given, app.run.world.clock.now())
            # Oldest first: parents come before their forks.
            found = await app.archive.recent(wanted, limit=None)
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
    redact = app.run.redactor.line if masked else None
    if form == "user-prompts":
        return prompts(app.archive, app.journal, ids, redact)
    if form == "jsonl" or ids is None:
        return await app.archive.export(ids, redact=redact)
    if form == "replay":
        return _one(pack_recording(await collect_recording(app.run, app.journal, ids[0])))
    if form == "html":
        return _one((await html_page(app.archive, app.journal, ids[0], redact)).encode())
    return _one((await app.archive.markdown(ids[0], redact=redact)).encode())


async def _one(data: bytes) -> AsyncIterator[bytes]:
    yield data


@click.command(
    "import", help="Import exported sessions, or lines of {session, at, role, text}; - is stdin."
)
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
)
@json_output(with_app)
async def import_(app: App, file: Path) -> Output:
    if str(file) == "-":
        done = await app.archive.import_lines(sys.stdin.buffer)
    else:
        done = await app.archive.import_file(file)
    words = f"{done.sessions} session(s), {done.messages} message(s) added"
    return Output(done, f"{words}; {done.skipped} were there already.")


@click.command(help="Check that no record was damaged or changed.")
@click.argument("session", required=False)
@json_output(with_app)
async def verify(app: App, session: str | None) -> Output:
    session_id = await app.archive.find(session) if session else None
    return _integrity_output(await app.archive.verify(session_id))


@click.command(help="Repair the journal file and rebuild the search index.")
@click.option("--check-only", is_flag=True, help="Only report problems.")
@json_output(with_app)
async def repair(app: App, check_only: bool) -> Output:
    if check_only:
        return _integrity_output(await app.archive.verify())
    return _integrity_output(await app.archive.repair(), " The search index was rebuilt.")


def _integrity_output(problems: tuple[VerifyProblem, ...], more: str = "") -> Output:
    lines = [
        f"✗ {f'session {each.session_id} record {each.n}' if each.session_id else 'the file'}: "
        f"{each.why}"
        for each in problems
    ]
    if problems:
        advice = "all other records are usable; restore a backup to recover these"
        lines.append(f"{len(problems)} problem(s); {advice}.")
    data = {"ok": not problems, "problems": problems}
    return Output(data, lines or f"All records are intact.{more}", code=bool(problems))


UNCHANGED = "Nothing was removed."


@click.command(help="Remove sessions that were not used for some time.")
@click.option(
    "--older-than", metavar="AGE", default="90", show_default=True, help="90 (days), 12h, 2w."
)
@filter_options
@click.option("--archive", is_flag=True, help="Move them to compressed files instead.")
@click.option("--dry-run", is_flag=True, help="Only list them.")
@yes_option
@json_output()
def prune(
    ctx: click.Context, /, older_than: str, archive: bool, dry_run: bool, yes: bool, **given: Any
) -> Output:
    age = parse_age(older_than)
    verb = "archived" if archive else "removed"

    async def run(app: App, *, dry_run: bool) -> PruneResult:
        wanted = parse_filter(given, app.run.world.clock.now())
        return await app.archive.prune(age, wanted, dry_run=dry_run, archive=archive)

    planned = with_app(ctx, partial(run, dry_run=True))
    if dry_run or not planned.removed:
        return _prune_output(planned, f"would be {verb}")
    if not yes:
        question = f"{len(planned.removed)} session(s) will be {verb}. Go on?"
        confirm(question, otherwise=UNCHANGED)
    return _prune_output(with_app(ctx, partial(run, dry_run=False)), verb)


def _prune_output(pruned: PruneResult, verb: str) -> Output:
    kept = f"; {len(pruned.kept)} kept: in use, or a fork needs them" if pruned.kept else ""
    total = f"{len(pruned.removed)} session(s) {verb}{kept}."
    return Output(pruned, [*pruned.removed, total])


@click.command(help="Remove one session permanently.")
@click.argument("session")
@yes_option
@json_output()
def delete(ctx: click.Context, session: str, yes: bool) -> Output:
    session_id = with_app(ctx, lambda app: app.archive.find(session))
    if not yes:
        confirm(f"Remove {session_id} permanently?", otherwise=UNCHANGED)
    with_app(ctx, lambda app: app.archive.delete(session_id))
    return Output({"session_id": session_id}, f"{session_id} is removed.")


@click.command(help="Free the space of deleted sessions and rebuild the search index.")
@json_output(with_app)
async def optimize(app: App) -> Output:
    before, after = await app.archive.optimize()
    sizes = f"{before / 1e6:.1f} MB became {after / 1e6:.1f} MB"
    data = {"bytes_before": before, "bytes_after": after}
    return Output(data, f"{sizes}; the search index was rebuilt.")
