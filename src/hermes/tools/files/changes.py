"""Changes several files, all or none."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.core.ports import Workspace
from hermes.core.tools import ToolContext
from hermes.core.veil import LABEL
from hermes.tools.files.readlog import ReadLog, digest
from hermes.tools.files.syntax import SyntaxVerdict, check_syntax
from hermes.tools.files.textfile import decode_text


class FileEdit(Value):
    """One file before and after; None means no file. `name` is the path as the model wrote it. When
    content was moved here, `moved_from` names the source and `moved` its content. `unseen`: there
    may be a file that must not be read."""

    path: str
    name: str
    before: bytes | None
    after: bytes | None
    moved_from: str = ""
    moved: bytes | None = None
    unseen: bool = False

    @property
    def basis(self) -> bytes | None:
        """Return the content that the new content is a version of."""
        return self.moved if self.moved_from else self.before


async def apply_edits(ctx: ToolContext, changes: Sequence[FileEdit]) -> list[SyntaxVerdict]:
    """Check every change, then make all of them; ToolError when nothing was changed."""
    for change in changes:
        _refuse_labels(change)
    verdicts = [await _check_syntax(change) for change in changes]
    refused = [
        f"{change.name} would not parse: {verdict.refused}."
        for change, verdict in zip(changes, verdicts, strict=True)
        if verdict.refused
    ]
    if refused:
        raise ToolError("\n".join((*refused, "Nothing was written.")))
    await _apply(ctx.workspace, changes)
    _remember(ctx.kept(ReadLog), changes)
    return verdicts


def _refuse_labels(change: FileEdit) -> None:
    """A label stands for a secret that the model was not shown. Written to a file, it would
    silently replace the secret."""
    after, before = text_of(change.after) or "", text_of(change.basis) or ""
    fresh = [label for label in LABEL.findall(after) if label not in before]
    if fresh:
        raise ToolError(
            f"{change.name} was not written: {fresh[0]} in the new text stands for a secret "
            "that is not shown to you, and would take its place. Change other lines with patch and "
            "leave those with secrets out, or read the secret from the environment in code."
        )


def text_of(data: bytes | None) -> str | None:
    found = decode_text(data) if data is not None else None
    return found.text if found else None


async def _check_syntax(change: FileEdit) -> SyntaxVerdict:
    after = text_of(change.after)
    if after is None or change.after == change.basis:
        return SyntaxVerdict(status="skipped")
    return await check_syntax(change.path, text_of(change.basis), after)


def _remember(log: ReadLog, changes: Sequence[FileEdit]) -> None:
    for change in changes:
        if change.after is None:
            log.record_delete(change.path)
        elif change.before is not None:
            log.record_edit(change.path, digest(change.before), digest(change.after))
        elif not change.moved_from:
            log.record_write(change.path, digest(change.after))


async def _apply(workspace: Workspace, changes: Sequence[FileEdit]) -> None:
    """Files are deleted last, when everything else has worked."""
    done: list[FileEdit] = []
    try:
        for change in sorted(changes, key=lambda each: each.after is None):
            await _make_one(workspace, change)
            done.append(change)
    except ToolError as error:
        stuck = await _revert(workspace, done)
        left = f"these could not be restored: {', '.join(stuck)}" if stuck else "nothing is changed"
        raise ToolError(f"{error} Given up; {left}.") from error
    except BaseException:
        # Cancelled in the middle: it may have happened, so it is reverted as well.
        await _revert(workspace, (*done, change))
        raise


async def _make_one(workspace: Workspace, change: FileEdit) -> None:
    if change.after is not None:
        await workspace.write_bytes(change.path, change.after)
    else:
        await workspace.delete(change.path)


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
