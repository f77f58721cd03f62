"""Imports sessions: our own exports, and plain lines of {session, at, role, text}."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import UsageError
from hermes.core.events import Titled
from hermes.journal import ledger, titles
from hermes.journal.chatlog import SAFE_ID, ChatLine, ChatLog
from hermes.journal.journal import SqliteJournal
from hermes.journal.rows import read_rows
from hermes.journal.shapes import StoredEvent, encode_event, pack_body
from hermes.journal.transaction import Transaction
from hermes.journal.transfer import FORMAT, EventLine, SessionLine
from hermes.journal.versions import event_of, is_newer

# Lines per commit: enough to be fast, few enough that no append waits long.
LINES = 500


class Imported(Value):
    """What was added. `skipped` sessions and messages existed already."""

    sessions: int = 0
    messages: int = 0
    skipped: int = 0

    def __add__(self, other: Imported) -> Imported:
        return Imported(
            sessions=self.sessions + other.sessions,
            messages=self.messages + other.messages,
            skipped=self.skipped + other.skipped,
        )


async def import_file(journal: SqliteJournal, path: Path) -> Imported:
    """Import a file of JSON lines, optionally compressed with gzip."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        return await import_lines(journal, lines)


async def import_lines(journal: SqliteJournal, lines: Iterable[bytes]) -> Imported:
    """Import lines of either format. Known lines are skipped, so an import that was interrupted or
    refused (UsageError names the line) can simply be repeated."""
    total, number, chats, source = Imported(), 0, ChatLog(journal), iter(lines)
    while batch := await asyncio.to_thread(lambda: list(islice(source, LINES))):
        waiting: list[ChatLine] = []
        for line in batch:
            number += 1
            found = _parse_line(line, number)
            if isinstance(found, ChatLine):
                waiting.append(found)
            elif found is not None:
                total += await _import_session(journal, found, number)
        sessions, messages = await chats.add(waiting)
        skipped = len(waiting) - messages
        total += Imported(sessions=sessions, messages=messages, skipped=skipped)
    await chats.finish()
    return total


def _parse_line(raw: bytes, number: int) -> ChatLine | SessionLine | None:
    if not raw.strip():
        return None
    try:
        return decode(ChatLine, raw)
    except DecodeError as chat_error:
        why = str(chat_error)
    try:
        line = decode(SessionLine, raw)
    except DecodeError as session_error:
        why = str(session_error) if b'"events"' in raw else why
    else:
        if line.format == FORMAT:
            return line
    raise UsageError(f"Line {number} cannot be imported: {why}.")


async def _import_session(journal: SqliteJournal, line: SessionLine, number: int) -> Imported:
    if not SAFE_ID.fullmatch(line.id):
        raise UsageError(f"Line {number}: {line.id!r} cannot be the id of a session.")
    events = [(item, _encode_line(item, number)) for item in line.events]
    now = journal.world.clock.now()

    def work(tx: Transaction) -> Imported:
        if tx.db.execute("SELECT 1 FROM sessions WHERE id = ?", (line.id,)).fetchone():
            return Imported(skipped=1)
        shared = line.parent_n if _has_parent(tx, line) else 0
        # A fork without its parent becomes independent, with copies of the shared records.
        parent = line.parent if shared == line.parent_n else ""
        ledger.drop_kept_spending(tx.db, line.id)
        session = tx.create(line.id, parent=parent, parent_n=shared)
        for item, event in events:
            if item.n > shared:
                tx.put(session, event, turn_id=item.turn_id, at=item.at, n=item.n)
        tx.settle()
        title = tx.head(session).summary.title
        if title and not titles.is_free(tx.db, title, session):
            given = Titled(title=titles.next_title(tx.db, title))
            tx.put(session, encode_event(given), turn_id="", at=now)
        return Imported(sessions=1, messages=len(line.messages))

    return await journal.writing(work)


def _encode_line(item: EventLine, number: int) -> StoredEvent:
    if is_newer(item.kind, item.version):
        raise UsageError(
            f"Line {number} was written by a newer Hermes (“{item.kind}” version {item.version}); "
            "update Hermes to import it."
        )
    body = encode(item.body)
    try:
        return pack_body(event_of(item.kind, item.version, body), item.kind, item.version, body)
    except (DecodeError, ValueError) as error:
        raise UsageError(f"Line {number}, event {item.n}, cannot be imported: {error}.") from None


def _has_parent(tx: Transaction, line: SessionLine) -> bool:
    """Whether the parent exists here with the same record at the branch point."""
    if not line.parent_n:
        return False
    query = "SELECT session FROM sessions WHERE id = ?"
    row = tx.db.execute(query, (line.parent,)).fetchone()
    if row is None:
        return False
    tx.settle()
    here = read_rows(tx.db, row[0], line.parent_n - 1, line.parent_n).whole
    there = [item for item in line.events if item.n == line.parent_n]
    return [(row.at, row.body) for row in here] == [(i.at, encode(i.body)) for i in there]
