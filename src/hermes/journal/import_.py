"""Imports sessions: our own exports, and plain lines of {session, at, role, text}."""

from __future__ import annotations

import asyncio
import gzip
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import UsageError
from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    ReplyAdded,
    SessionEnded,
    SessionOpened,
    TitleChanged,
)
from hermes.core.messages import AssistantMessage, Text, Usage, user_says
from hermes.journal import leases, ledger, titles
from hermes.journal.body_templates import StoredEvent, encode_event, event_of, is_newer, pack_body
from hermes.journal.export import FORMAT, EventLine, SessionLine
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import parse_date
from hermes.journal.reading import read_rows
from hermes.journal.transaction import Transaction

SOURCE = "import"
SESSIONS = 200

# A session id is also a folder name, so it must not contain a path.
SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}")


class ChatLine(Value):
    """One message of a file to import."""

    session: str
    at: float | str  # seconds since 1970, or an ISO time
    role: Literal["user", "assistant", "system", "tool"]
    text: str


class Progress(NamedTuple):
    """How far the lines of a session have been read. `known` are the marks of lines that earlier
    imports added."""

    id: str
    lines: int = 0
    added: int = 0
    known: frozenset[str] = frozenset()
    at: float = 0.0


class ChatLog:
    """One import. The turn id of a line is a mark of its position and content; a mark that the
    session already has is skipped."""

    def __init__(self, journal: SqliteJournal) -> None:
        self._journal = journal
        self._progress: dict[str, Progress] = {}

    async def add(self, lines: Sequence[ChatLine]) -> tuple[int, int]:
        """Add lines; return the number of new sessions and messages."""
        if not lines:
            return 0, 0
        before = self._progress
        now = self._journal.world.clock.now()

        def work(tx: Transaction) -> tuple[int, int, dict[str, Progress]]:
            after = dict(before)
            created = added = 0
            for line in lines:
                progress = after.get(line.session)
                if progress is None:
                    progress, is_new = self._begin(tx, line, now)
                    created += is_new
                after[line.session] = _add_line(tx, line, progress)
                added += after[line.session].added - progress.added
            return created, added, after

        created, added, self._progress = await self._journal.writing(work)
        return created, added

    async def finish(self) -> None:
        """End the imported sessions."""
        touched = [progress for progress in self._progress.values() if progress.added]
        ended = encode_event(SessionEnded(reason="imported"))

        def end(some: Sequence[Progress], tx: Transaction) -> None:
            for progress in some:
                tx.put(tx.session(progress.id), ended, turn_id="", at=progress.at)

        for start in range(0, len(touched), SESSIONS):
            await self._journal.writing(partial(end, touched[start : start + SESSIONS]))

    def _begin(self, tx: Transaction, line: ChatLine, now: float) -> tuple[Progress, bool]:
        """Begin the import of a session. One of the same name that is not an import stays
        unchanged."""
        name = line.session if SAFE_ID.fullmatch(line.session) else _derived_id(line.session)
        for id in (name, _derived_id(line.session)):
            session = tx.find_session(id)
            if session is None:
                at = _seconds(line.at)
                opened = SessionOpened(source=SOURCE, cwd="", model="", provider="", system="")
                tx.put(tx.create(id), encode_event(opened), turn_id="", at=at)
                return Progress(id=id, at=at), True
            tx.settle()
            summary = ledger.load(tx.db, session)
            if summary and summary.source == SOURCE:
                leases.check_available(tx, session, id, self._journal.writer.owner, now)
                tx.refresh(session)
                marks = tx.db.execute("SELECT turn_id FROM log WHERE session = ?", (session,))
                return Progress(id=id, known=frozenset(mark for (mark,) in marks)), False
        raise AssertionError("a derived id is only used by imports")


def _add_line(tx: Transaction, line: ChatLine, progress: Progress) -> Progress:
    mark = _mark(line, progress.lines)
    progress = progress._replace(lines=progress.lines + 1)
    if mark in progress.known:
        return progress
    session, at = tx.session(progress.id), _seconds(line.at)
    progress = progress._replace(added=progress.added + 1, at=at)
    if line.role == "assistant":
        storable = line.text.encode("utf-8", "replace").decode()
        message = AssistantMessage(parts=(Text(text=storable),))
        event: DurableEvent = ReplyAdded(message=message, usage=Usage(), model="", provider="")
    else:
        event = MessageReceived(message=user_says(line.text, origin=line.role), past=True)
    tx.put(session, encode_event(event), turn_id=mark, at=at)
    return progress


def _mark(line: ChatLine, number: int) -> str:
    """Return a mark of 36 bits. It is short, because every record stores it, and long enough to be
    unique within one session."""
    digest = blake2b(digest_size=5)
    for part in (str(number), str(line.at), line.role, line.text):
        digest.update(part.encode("utf-8", "replace") + b"\0")
    return f"i{b64encode(digest.digest())[:6].decode()}"


def _derived_id(name: str) -> str:
    return f"import_{blake2b(name.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def _seconds(at: float | str) -> float:
    return parse_date(at) if isinstance(at, str) else float(at)


# Lines per commit: enough to be fast, few enough that no append waits long.
LINES = 500


class Imported(Value):
    """What was added. `skipped` sessions and messages existed already."""

    sessions: int = 0
    messages: int = 0
    skipped: int = 0


async def import_file(journal: SqliteJournal, path: Path) -> Imported:
    """Import a file of JSON lines, optionally compressed with gzip."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        return await import_lines(journal, lines)


async def import_lines(journal: SqliteJournal, lines: Iterable[bytes]) -> Imported:
    """Import lines of either format. Known lines are skipped, so an import that was interrupted or
    refused (UsageError names the line) can simply be repeated."""
    sessions = messages = skipped = number = 0
    chats, source = ChatLog(journal), iter(lines)
    while batch := await asyncio.to_thread(lambda: list(islice(source, LINES))):
        waiting: list[ChatLine] = []
        for line in batch:
            number += 1
            found = _parse_line(line, number)
            if isinstance(found, ChatLine):
                waiting.append(found)
            elif found is not None:
                is_new = await _import_session(journal, found, number)
                sessions += is_new
                messages += len(found.messages) if is_new else 0
                skipped += not is_new
        created, added = await chats.add(waiting)
        sessions += created
        messages += added
        skipped += len(waiting) - added
    await chats.finish()
    return Imported(sessions=sessions, messages=messages, skipped=skipped)


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


async def _import_session(journal: SqliteJournal, line: SessionLine, number: int) -> bool:
    """Whether the session was new."""
    if not SAFE_ID.fullmatch(line.id):
        raise UsageError(f"Line {number}: {line.id!r} cannot be the id of a session.")
    events = [(item, _encode_line(item, number)) for item in line.events]
    now = journal.world.clock.now()

    def work(tx: Transaction) -> bool:
        if tx.find_session(line.id) is not None:
            return False
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
        if title and titles.holder_of(tx.db, title, session):
            renamed = TitleChanged(title=titles.next_title(tx.db, title))
            tx.put(session, encode_event(renamed), turn_id="", at=now)
        return True

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
    parent = tx.find_session(line.parent) if line.parent_n else None
    if parent is None:
        return False
    tx.settle()
    here = read_rows(tx.db, parent, line.parent_n - 1, line.parent_n).whole
    there = [item for item in line.events if item.n == line.parent_n]
    return [(row.at, row.body) for row in here] == [(i.at, encode(i.body)) for i in there]
