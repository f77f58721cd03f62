"""Values of memory and their text format in files and prompts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

from hermes.codec.values import Value

Target = Literal["memory", "user"]
Action = Literal["add", "replace", "remove"]
TARGETS: tuple[Target, ...] = ("memory", "user")

OWNER = "owner"


class ChangeSource(Value):
    """Where a change of memory comes from."""

    # "session": the memory tool; "review": a review after a turn; "person": a command; "file": a
    # manual edit.
    kind: Literal["session", "review", "person", "file"]
    session_id: str = ""
    turn_id: str = ""
    # The session record that led to the change.
    n: int = 0
    call_id: str = ""
    person: str = ""
    surface: str = ""
    # The untrusted sources in view.
    origins: tuple[str, ...] = ()
    # The person who approved the change.
    approved_by: str = ""


# `old_text` is a part of exactly one entry. A comment, because a docstring would be sent to the
# model with every request.
class Operation(Value):
    action: Action
    content: str = ""
    old_text: str = ""


class MemoryEntry(Value):
    """A current entry."""

    id: int
    target: Target
    text: str
    # The change that set its text.
    change: int
    since: float
    # The threat pattern that hides it from the model.
    finding: str = ""


class MemoryChange(Value):
    """One change of an entry."""

    id: int
    entry: int
    target: Target
    action: Literal["add", "replace", "remove", "reject"]
    # The text after the change, "" for none.
    text: str
    at: float
    source: ChangeSource
    # Why the change waits for a person.
    held: str = ""
    # A held change that is not answered yet.
    open: bool = False
    # The held change that this one answers.
    settles: int = 0
    # The change that this one undoes.
    reverts: int = 0
    finding: str = ""
    # The text is deleted for good.
    forgotten: bool = False


class MemoryApplied(Value):
    """The outcome of a change that was made."""

    message: str
    changes: tuple[int, ...] = ()
    # Why it waits for a person instead.
    held: str = ""
    # The same call was applied before.
    repeated: bool = False


RefusedKind = Literal["limit", "match", "conflict", "threat", "drift", "usage"]


class MemoryRefusal(Value):
    """The outcome of a call that changed nothing."""

    kind: RefusedKind
    error: str
    # Previews of candidate entries.
    matches: tuple[str, ...] = ()
    # Position of the failing operation in a batch, from 1.
    number: int = 0


ChangeOutcome = MemoryApplied | MemoryRefusal


class MemoryLimits(Value):
    """Maximum file sizes in characters."""

    memory: int = 2_200
    user: int = 1_375

    def of(self, target: Target) -> int:
        return self.memory if target == "memory" else self.user


class MemorySnapshot(Value):
    """The memory block of a new session."""

    text: str = ""
    # The entries in the block.
    ids: tuple[int, ...] = ()
    # Number of forget operations up to then.
    forgets: int = 0
    # The sources that were in view when these entries were saved.
    origins: tuple[str, ...] = ()


SIGN = "§"
DELIMITER = f"\n{SIGN}\n"
RULE = "═" * 46
HEADINGS: dict[Target, str] = {
    "memory": "MEMORY (your personal notes)",
    "user": "USER PROFILE (who the user is)",
}
FILE_NAMES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}
PREVIEW_CHARS = 80
_CUT = re.compile(rf"^[ \t]*{SIGN}[ \t]*$", re.M)
# All control characters except tab and newline.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def normalise_entry(text: str) -> str:
    """Normalise an entry: NFC, no control characters, no surrounding white space."""
    plain = text.encode("utf-8", "replace").decode()
    plain = unicodedata.normalize("NFC", plain.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROL.sub("", plain).strip()


def has_delimiter(text: str) -> bool:
    return _CUT.search(text) is not None


def split_entries(text: str) -> tuple[str, ...]:
    """Return the entries of a file without duplicates."""
    parts = (normalise_entry(part) for part in _CUT.split(text.removeprefix("\ufeff")))
    return tuple(dict.fromkeys(part for part in parts if part))


def join_entries(texts: Iterable[str]) -> str:
    return DELIMITER.join(texts)


def entries_size(texts: Iterable[str]) -> int:
    return len(join_entries(texts))


def usage_text(texts: Sequence[str], limit: int) -> str:
    used = entries_size(texts)
    return f"{used * 100 // limit if limit else 100}% — {used:,}/{limit:,} chars"


def preview(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"


def hidden_marker(entry: MemoryEntry) -> str:
    """Return the placeholder for an entry that looks like a prompt injection."""
    return f"[entry m{entry.id} is not shown: it looks like an injected order ({entry.finding})]"


def entry_text(entry: MemoryEntry) -> str:
    return hidden_marker(entry) if entry.finding else entry.text


def build_snapshot(
    entries: Sequence[MemoryEntry], wanted: Sequence[Target], limits: MemoryLimits
) -> MemorySnapshot:
    """Build the prompt blocks and list the entries in them."""
    blocks: list[str] = []
    ids: list[int] = []
    for target in wanted:
        mine, limit = [entry for entry in entries if entry.target == target], limits.of(target)
        lines: list[str] = []
        for entry in mine:
            # A manually edited file may exceed the limit.
            if entries_size((*lines, entry_text(entry))) > limit and lines:
                lines.append(f"[{len(mine) - len(lines)} more do not fit; shorten or remove some]")
                break
            lines.append(entry_text(entry)[:limit])
            if not entry.finding:
                ids.append(entry.id)
        if mine:
            used = usage_text([entry.text for entry in mine], limit)
            head = f"{RULE}\n{HEADINGS[target]} [{used}]\n{RULE}"
            blocks.append(f"{head}\n{join_entries(lines)}")
    return MemorySnapshot(text="\n\n".join(blocks), ids=tuple(ids))
