"""Values of memory: entries, changes, sources, outcomes."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value

Target = Literal["memory", "user"]
Action = Literal["add", "replace", "remove"]
TARGETS: tuple[Target, ...] = ("memory", "user")

OWNER = "owner"


class ChangeSource(Value):
    """Where a change comes from. `kind`: "session" for the memory tool, "review" for a review after
    a turn, "person" for a command, "file" for a manual edit of the file. `n` is the session record
    that led to the change; `origins` are the untrusted sources in view; `approved_by` is the person
    who approved it."""

    kind: Literal["session", "review", "person", "file"]
    session_id: str = ""
    turn_id: str = ""
    n: int = 0
    call_id: str = ""
    person: str = ""
    surface: str = ""
    origins: tuple[str, ...] = ()
    approved_by: str = ""


# `old_text` is a part of exactly one entry. A comment, because a docstring would be sent to the
# model with every request.
class Operation(Value):
    action: Action
    content: str = ""
    old_text: str = ""


class MemoryEntry(Value):
    """A current entry. `change` is the change that set its text; `finding` names the threat pattern
    that hides it from the model."""

    id: int
    target: Target
    text: str
    change: int
    since: float
    finding: str = ""


class MemoryChange(Value):
    """One change of an entry; `text` is the text after it, "" for none. A change with `held` waits
    for a person for that reason and is `open` until it is answered. `settles` names the held change
    that this one answers, `reverts` the change that it undoes. The text of a `forgotten` change is
    deleted for good."""

    id: int
    entry: int
    target: Target
    action: Literal["add", "replace", "remove", "reject"]
    text: str
    at: float
    source: ChangeSource
    held: str = ""
    open: bool = False
    settles: int = 0
    reverts: int = 0
    finding: str = ""
    forgotten: bool = False


class MemoryApplied(Value):
    """The change was made. `held` says why it waits for a person instead; `repeated` means that the
    same call was applied before."""

    message: str
    changes: tuple[int, ...] = ()
    held: str = ""
    repeated: bool = False


RefusedKind = Literal["limit", "match", "conflict", "threat", "drift", "usage"]


class MemoryRefusal(Value):
    """Nothing was changed. `matches` are previews of candidate entries, `number` is the position of
    the failing operation in a batch, from 1."""

    kind: RefusedKind
    error: str
    matches: tuple[str, ...] = ()
    number: int = 0


ChangeOutcome = MemoryApplied | MemoryRefusal


class MemoryLimits(Value):
    """Maximum file sizes in characters."""

    memory: int = 2_200
    user: int = 1_375

    def of(self, target: Target) -> int:
        return self.memory if target == "memory" else self.user


class MemorySnapshot(Value):
    """The memory block of a new session and the entries in it. `forgets` counts the forget
    operations up to then."""

    text: str = ""
    ids: tuple[int, ...] = ()
    forgets: int = 0
