"""Changes several files, all or none, with syntax checks and reports."""

from __future__ import annotations

import ast
import asyncio
import json
import tomllib
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ToolError
from hermes.core.ports import Workspace
from hermes.core.secrets import LABEL
from hermes.core.tools import ToolContext
from hermes.tools.edits.text import Diff, rows_of, shorten, unified_diff
from hermes.tools.files.access import ReadLog, digest, suffix
from hermes.tools.files.textfile import decode_text

# JSON by name, and JSON with comments by convention.
_COMMENTED_JSON = ("tsconfig", "jsconfig", "devcontainer", ".eslintrc", "/.vscode/", ".code-")
# Templates are not YAML or JSON before they are filled in.
_TEMPLATE_SIGNS = ("{{", "{%", "<%")


class SyntaxFault(Value):
    """The first line where a text does not parse; `near` is its text."""

    message: str
    line: int
    near: str = ""

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class SyntaxVerdict(Value):
    """The result of a syntax check."""

    status: str
    # Why the text must not be written.
    refused: str = ""
    # A new error.
    fault: str = ""


class SyntaxCheck(NamedTuple):
    """How to parse one kind of file. Texts beyond `max_chars` would take too long. Errors in code
    are only reported."""

    fault: Callable[[str], SyntaxFault | None]
    max_chars: int
    is_data: bool = True


async def check_syntax(change: FileEdit) -> SyntaxVerdict:
    """Judge the syntax of a change. A file that did not parse before may stay so, so that it can be
    repaired step by step."""
    before, after = text_of(change.basis), text_of(change.after)
    kind = suffix(change.path)
    check = _CHECKS.get(kind)
    if after is None or change.after == change.basis:
        return SyntaxVerdict(status="skipped")
    if check is None or len(after) > check.max_chars:
        return SyntaxVerdict(status="skipped")

    async def first_fault(text: str) -> SyntaxFault | None:
        if check.is_data:
            return await asyncio.to_thread(check.fault, text)
        # Python's parser warns through filters that all threads share, so it stays in this one.
        return check.fault(text)

    fault = await first_fault(after)
    if fault is None:
        return SyntaxVerdict(status="ok")
    known = before is not None and len(before) <= check.max_chars
    old = await first_fault(before or "") if known else None
    commented = kind == ".json" and any(part in change.path for part in _COMMENTED_JSON)
    loose = commented or any(sign in after for sign in _TEMPLATE_SIGNS)
    if check.is_data and old is None and (kind == ".toml" or not loose):
        return SyntaxVerdict(status="error", refused=str(fault))
    if old is not None and (old.message, old.near) == (fault.message, fault.near):
        return SyntaxVerdict(status="known")
    return SyntaxVerdict(status="error", fault=str(fault))


def _python_fault(text: str) -> SyntaxFault | None:
    with warnings.catch_warnings():
        # Odd escapes in strings are warnings of the parser, not errors of the file.
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError as error:
            line = error.lineno or 0
            return SyntaxFault(message=error.msg, line=line, near=(error.text or "").strip())
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxFault(message=str(error) or "too deeply nested to parse", line=1)
    return None


def _json_fault(text: str) -> SyntaxFault | None:
    try:
        json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        return SyntaxFault(message=f"{error.msg} (column {error.colno})", line=error.lineno)
    except RecursionError:
        return SyntaxFault(message="too deeply nested to parse", line=1)
    return None


def _toml_fault(text: str) -> SyntaxFault | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, position = str(error).partition(" (at line ")
        line = position.partition(",")[0]
        return SyntaxFault(
            message=message, line=int(line) if line.isdigit() else text.count("\n") + 1
        )
    except RecursionError:
        return SyntaxFault(message="too deeply nested to parse", line=1)
    return None


def _yaml_fault(text: str) -> SyntaxFault | None:
    # Imported here: the YAML reader is slow to import and few sessions write YAML.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        for _event in YAML(typ="safe", pure=True).parse(text):
            pass
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        return SyntaxFault(message=error.problem or "not YAML", line=line)
    except (YAMLError, RecursionError) as error:
        return SyntaxFault(message=str(error).partition("\n")[0] or "not YAML", line=1)
    return None


_CHECKS = {
    ".py": SyntaxCheck(_python_fault, 150_000, is_data=False),
    ".pyi": SyntaxCheck(_python_fault, 150_000, is_data=False),
    ".json": SyntaxCheck(_json_fault, 8_000_000),
    ".ipynb": SyntaxCheck(_json_fault, 8_000_000),
    ".toml": SyntaxCheck(_toml_fault, 1_000_000),
    ".yaml": SyntaxCheck(_yaml_fault, 300_000),
    ".yml": SyntaxCheck(_yaml_fault, 300_000),
}


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


class EditReport(NamedTuple):
    """The report about applied edits: new syntax errors, and warnings about content that the model
    did not know."""

    diffs: list[Diff]
    notes: list[str]
    details: JsonObject


async def apply_edits(
    ctx: ToolContext, changes: Sequence[FileEdit], *, whole: bool, warnings: Sequence[str] = ()
) -> EditReport:
    """Check every change, then make all of them; raise ToolError when nothing was changed. `whole`
    means that the model replaces the whole file."""
    log = ctx.service(ReadLog)
    remarks: list[str] = []
    for change in changes:
        before = change.before
        known = "none" if before is None else log.knowledge(change.path, digest(before))
        if known == "outdated":
            what = "is replaced too" if whole else "was kept"
            remarks.append(
                f"{change.name} changed on disk since you read it; the new content {what}."
            )
        elif known == "part" and whole:
            remarks.append(f"You had read only a part of {change.name}; the rest is replaced too.")
        # A label stands for a secret that the model was not shown. Written to a file, it would
        # silently replace the secret.
        old, new = text_of(change.basis) or "", text_of(change.after) or ""
        labels = [label for label in LABEL.findall(new) if label not in old]
        if labels:
            raise ToolError(
                f"{change.name} was not written: {labels[0]} in the new text is a placeholder for "
                "a hidden secret and would overwrite it. Use patch to change only lines without "
                "secrets, or read the secret from the environment in code."
            )
    verdicts = [(change.name, await check_syntax(change)) for change in changes]
    refused = [
        f"{name} would not parse: {each.refused}." for name, each in verdicts if each.refused
    ]
    if refused:
        raise ToolError("\n".join((*refused, "Nothing was written.")))
    await _apply(ctx.workspace, changes)
    for change in changes:
        if change.after is None:
            log.record_delete(change.path)
        elif change.before is not None:
            log.record_edit(change.path, digest(change.before), digest(change.after))
        elif not change.moved_from:
            log.record_write(change.path, digest(change.after))
    errors = [
        f"{name} now has a syntax error, {each.fault}" for name, each in verdicts if each.fault
    ]
    statuses = {verdict.status for _, verdict in verdicts}
    worst = next((each for each in ("error", "known", "ok") if each in statuses), "skipped")
    diffs = [diff_of(each) for each in changes]
    details = file_details(changes, diffs)
    details["lint"] = {"status": worst, "output": "\n".join(errors)}
    remarks += warnings
    if remarks:
        details["warnings"] = remarks
    return EditReport(diffs, [*errors, *remarks], details)


class FileEdit(Value):
    """One file before and after a change; None means no file."""

    path: str
    # The path as the model wrote it.
    name: str
    before: bytes | None
    after: bytes | None
    # The source and its content, when content was moved here.
    moved_from: str = ""
    moved: bytes | None = None
    # There may be a file that must not be read.
    unseen: bool = False

    @property
    def basis(self) -> bytes | None:
        """Return the content that the new content is a version of."""
        return self.moved if self.moved_from else self.before


def text_of(data: bytes | None) -> str | None:
    found = decode_text(data) if data is not None else None
    return found.text if found else None


async def _apply(workspace: Workspace, changes: Sequence[FileEdit]) -> None:
    """Write the changes. Files are deleted last, when everything else has worked."""
    done: list[FileEdit] = []
    try:
        for change in sorted(changes, key=lambda each: each.after is None):
            if change.after is not None:
                await workspace.write_bytes(change.path, change.after)
            else:
                await workspace.delete(change.path)
            done.append(change)
    except ToolError as error:
        stuck = await _revert(workspace, done)
        left = f"These could not be restored: {', '.join(stuck)}" if stuck else "Nothing is changed"
        raise ToolError(f"{error} {left}.") from error
    except BaseException:
        # Cancelled in the middle: it may have happened, so it is reverted as well.
        await _revert(workspace, (*done, change))
        raise


async def _revert(workspace: Workspace, done: Sequence[FileEdit]) -> list[str]:
    """Revert, newest first; return the names of files that could not be restored."""
    stuck: list[str] = []
    for change in reversed(done):
        try:
            if change.unseen:
                stuck.append(change.name)
            elif change.before is not None:
                await workspace.write_bytes(change.path, change.before)
            elif await workspace.stat(change.path) is not None:
                await workspace.delete(change.path)
        except ToolError:
            stuck.append(change.name)
    return stuck
