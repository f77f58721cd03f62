"""Session titles: which are valid, and names like "plan #2" for forks."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Mapping

from hermes.core.errors import UsageError

MAX_CHARS = 100

_NUMBERED = re.compile(r"(?P<name>.*\S) #(?P<number>[0-9]{1,9})", re.DOTALL)


def clean_title(text: str) -> str:
    """Return the title without control, zero-width and direction characters, with single spaces.
    Raises UsageError when it is too long; empty means no title."""
    spaced = "".join(" " if char.isspace() else char for char in text)
    visible = (c for c in spaced if unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    title = " ".join("".join(visible).split())
    if len(title) > MAX_CHARS:
        raise UsageError(f"The title has {len(title)} characters; use at most {MAX_CHARS}.")
    return title


def check_free(
    db: sqlite3.Connection, title: str, session: int = 0, staged: Mapping[str, int] | None = None
) -> None:
    """Raise UsageError unless the title is valid and unused. `staged` holds titles of the same
    transaction that are not written yet."""
    if clean_title(title) != title:
        raise UsageError(
            "The title contains characters or spaces that are not allowed; remove them."
        )
    holder = holder_of(db, title, session)
    if holder or (staged or {}).get(title, session) != session:
        name = f"session {holder}" if holder else "another session"
        raise UsageError(f"The title “{title}” belongs to {name}; choose another.")


def holder_of(db: sqlite3.Connection, title: str, session: int = 0) -> str:
    """Return the id of another session with this title, or ""."""
    query = (
        "SELECT id FROM summaries JOIN sessions USING (session) WHERE title = ? AND title <> ''"
        " AND session <> ?"
    )
    row = db.execute(query, (title, session)).fetchone()
    return str(row[0]) if row else ""


def lineage_name(title: str) -> str:
    """Return the name without its number: "plan" for "plan #3"."""
    match = _NUMBERED.fullmatch(title)
    return match["name"] if match else title


def find_numbered(db: sqlite3.Connection, name: str) -> dict[int, str]:
    """Return the sessions named `name` (as number 1) and `name #N`, by number."""
    query = (
        "SELECT title, id FROM summaries JOIN sessions USING (session)"
        " WHERE title <> '' AND (title = ? OR (title > ? AND title < ?))"
    )
    found = {}
    for title, session_id in db.execute(query, (name, f"{name} #", f"{name} #:")):
        match = _NUMBERED.fullmatch(title)
        if title == name:
            found[1] = str(session_id)
        elif match and match["name"] == name:
            found[int(match["number"])] = str(session_id)
    return found


def next_title(db: sqlite3.Connection, title: str) -> str:
    """Return the title itself if it is free, else the next "name #N"."""
    if not holder_of(db, title):
        return title
    name = lineage_name(title)
    number = max(find_numbered(db, name), default=0) + 1
    suffix = f" #{max(number, 2)}"
    return name[: MAX_CHARS - len(suffix)].rstrip() + suffix
