"""Reports changed files to the model and the screen."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import JsonObject
from hermes.core.tools import ToolContext
from hermes.tools.edits.diff import Diff, shorten, unified_diff
from hermes.tools.edits.text import rows_of
from hermes.tools.files.changes import FileEdit, text_of
from hermes.tools.files.readlog import ReadLog, digest
from hermes.tools.files.syntax import SyntaxVerdict


def diff_of(change: FileEdit) -> Diff:
    """Return the diff of two texts. For a deleted file only the number of lines matters, for a
    binary one nothing."""
    if change.unseen:
        return Diff(text="", added=0, removed=0)
    basis = change.basis
    old, new = text_of(basis), text_of(change.after)
    if change.after is None:
        return Diff(text="", added=0, removed=len(rows_of(old or "")))
    if new is None or (basis is not None and old is None):
        return Diff(text="", added=0, removed=0)
    old_name = f"a/{change.moved_from or change.name}" if basis is not None else "/dev/null"
    return unified_diff(old or "", new, old_name=old_name, new_name=f"b/{change.name}")


def file_details(changes: Sequence[FileEdit], diffs: Sequence[Diff]) -> JsonObject:
    kept = [each for each in changes if each.after is not None]
    return {
        "files_modified": [each.path for each in kept if each.before is not None or each.unseen],
        "files_created": [each.path for each in kept if each.before is None and not each.unseen],
        "files_deleted": [each.path for each in changes if each.after is None],
        "bytes_written": sum(len(each.after) for each in changes if each.after is not None),
        "added": sum(diff.added for diff in diffs),
        "removed": sum(diff.removed for diff in diffs),
        "diff": shorten("".join(diff.text for diff in diffs)),
    }


def syntax_news(changes: Sequence[FileEdit], verdicts: Sequence[SyntaxVerdict]) -> list[str]:
    return [
        f"{change.name} now has a syntax error, {verdict.fault}"
        for change, verdict in zip(changes, verdicts, strict=True)
        if verdict.fault
    ]


def syntax_details(verdicts: Sequence[SyntaxVerdict], news: Sequence[str]) -> JsonObject:
    statuses = {verdict.status for verdict in verdicts}
    worst = next((each for each in ("error", "known", "ok") if each in statuses), "skipped")
    return {"lint": {"status": worst, "output": "\n".join(news)}}


def warnings_before(ctx: ToolContext, change: FileEdit, *, whole: bool) -> list[str]:
    """Return warnings about a file that the model is about to change; `whole` when all of it is
    replaced."""
    if change.before is None:
        return []
    match ctx.kept(ReadLog).knowledge(change.path, digest(change.before)):
        case "outdated":
            what = "is replaced too" if whole else "was kept"
            return [f"{change.name} changed on disk since you read it; the new content {what}."]
        case "part" if whole:
            return [f"You had read only a part of {change.name}; the rest is replaced too."]
        case _:
            return []
