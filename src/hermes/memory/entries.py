"""What memory is made of: entries, the changes that made them what they are, and their sources."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value

Target = Literal["memory", "user"]
Action = Literal["add", "replace", "remove"]
TARGETS: tuple[Target, ...] = ("memory", "user")

OWNER = "owner"


class Source(Value):
    """Where a change comes from. `kind` is "session" for a call of the memory tool, "review" for
    one made after a turn, "person" for a command, "file" for an edit of the file by hand. `n` is
    the record of the session that holds the words which led to it; `origins` are the untrusted
    places whose text was in view; `approved_by` is who was asked and said yes."""

    kind: Literal["session", "review", "person", "file"]
    session_id: str = ""
    turn_id: str = ""
    n: int = 0
    call_id: str = ""
    person: str = ""
    surface: str = ""
    origins: tuple[str, ...] = ()
    approved_by: str = ""


# One wish; `old_text` is a part of the entry that is meant, which no other entry has. Not in a
# docstring, which every request would carry to the model.
class Operation(Value):
    action: Action
    content: str = ""
    old_text: str = ""


class Entry(Value):
    """Something that is remembered now. `change` is the change that gave it this text, `finding`
    the pattern for which it is not shown to a model."""

    id: int
    target: Target
    text: str
    change: int
    since: float
    finding: str = ""


class Change(Value):
    """One step in the life of an entry; `text` is what it says afterwards, "" for nothing. A
    change that is `held` waits for a person for that reason, and is `open` until one has spoken.
    `settles` names the held change that this one answers, `reverts` the one that it takes back.
    The text of a `forgotten` one is gone for ever."""

    id: int
    entry: int
    target: Target
    action: Literal["add", "replace", "remove", "reject"]
    text: str
    at: float
    source: Source
    held: str = ""
    open: bool = False
    settles: int = 0
    reverts: int = 0
    finding: str = ""
    forgotten: bool = False


class Applied(Value):
    """What was asked for is so now. `held` says why it waits for a person instead; `repeated`
    means that the same call had done it already."""

    message: str
    changes: tuple[int, ...] = ()
    held: str = ""
    repeated: bool = False


RefusedKind = Literal["limit", "match", "conflict", "threat", "drift", "usage"]


class Refused(Value):
    """Nothing has changed. `kind` is for those who count; `matches` are previews of the entries
    that could be meant, `number` the place of the bad operation in a batch, from 1."""

    kind: RefusedKind
    error: str
    matches: tuple[str, ...] = ()
    number: int = 0


Outcome = Applied | Refused


class Limits(Value):
    """Characters that a file may have."""

    memory: int = 2_200
    user: int = 1_375

    def of(self, target: Target) -> int:
        return self.memory if target == "memory" else self.user


class Snapshot(Value):
    """What a session is told of memory when it opens, and which entries that is. `forgets` counts
    how often something was forgotten for good until then."""

    text: str = ""
    ids: tuple[int, ...] = ()
    forgets: int = 0
