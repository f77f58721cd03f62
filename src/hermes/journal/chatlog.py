"""Imports plain chat lines (who said what, and when) as sessions."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Literal, NamedTuple

from hermes.codec.values import Value
from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    ReplyAdded,
    SessionEnded,
    SessionOpened,
)
from hermes.core.messages import AssistantMessage, Text, Usage, user_says
from hermes.journal import leases, ledger
from hermes.journal.ages import parse_date
from hermes.journal.journal import SqliteJournal
from hermes.journal.shapes import encode_event
from hermes.journal.transaction import Transaction

SOURCE = "import"
SESSIONS = 200

# A session id is also a folder name, so it must not contain a path.
SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}")


class ChatLine(Value):
    """`at` is in seconds since 1970, or an ISO time."""

    session: str
    at: float | str
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
        """The number of new sessions and messages."""
        if not lines:
            return 0, 0
        before = self._progress
        now = self._journal.world.clock.now()

        def work(tx: Transaction) -> tuple[int, dict[str, Progress]]:
            after: dict[str, Progress] = {}
            created = 0
            for line in lines:
                progress = after.get(line.session) or before.get(line.session)
                if progress is None:
                    progress, is_new = self._begin(tx, line, now)
                    created += is_new
                after[line.session] = _add_line(tx, line, progress)
            return created, after

        created, after = await self._journal.writing(work)
        earlier = sum(before[name].added for name in after if name in before)
        self._progress = before | after
        return created, sum(progress.added for progress in after.values()) - earlier

    async def finish(self) -> None:
        """End the imported sessions."""
        touched = [progress for progress in self._progress.values() if progress.added]
        for start in range(0, len(touched), SESSIONS):
            some = touched[start : start + SESSIONS]
            await self._journal.writing(partial(_end, some))

    def _begin(self, tx: Transaction, line: ChatLine, now: float) -> tuple[Progress, bool]:
        """A session of the same name that is not an import stays unchanged."""
        name = line.session if SAFE_ID.fullmatch(line.session) else _derived_id(line.session)
        for id in (name, _derived_id(line.session)):
            row = tx.db.execute("SELECT session FROM sessions WHERE id = ?", (id,)).fetchone()
            if row is None:
                return self._create(tx, id, line), True
            tx.settle()
            summary = ledger.load(tx.db, row[0])
            if summary and summary.source == SOURCE:
                leases.check_available(tx, row[0], id, self._journal.writer.owner, now)
                tx.refresh(row[0])
                marks = tx.db.execute("SELECT turn_id FROM log WHERE session = ?", row)
                return Progress(id=id, known=frozenset(mark for (mark,) in marks)), False
        raise AssertionError("a derived id is only used by imports")

    def _create(self, tx: Transaction, id: str, line: ChatLine) -> Progress:
        session, at = tx.create(id), _seconds(line.at)
        opened = SessionOpened(source=SOURCE, cwd="", model="", provider="", system="")
        tx.put(session, encode_event(opened), turn_id="", at=at)
        return Progress(id=id, at=at)


def _add_line(tx: Transaction, line: ChatLine, progress: Progress) -> Progress:
    mark = _mark(line, progress.lines)
    progress = progress._replace(lines=progress.lines + 1)
    if mark in progress.known:
        return progress
    session, at = tx.session(progress.id), _seconds(line.at)
    progress = progress._replace(added=progress.added + 1, at=at)
    if line.role == "assistant":
        message = AssistantMessage(parts=(Text(text=_storable(line.text)),))
        event: DurableEvent = ReplyAdded(message=message, usage=Usage(), model="", provider="")
    else:
        event = MessageReceived(message=user_says(line.text, origin=line.role), past=True)
    tx.put(session, encode_event(event), turn_id=mark, at=at)
    return progress


def _end(sessions: Sequence[Progress], tx: Transaction) -> None:
    for progress in sessions:
        session = tx.session(progress.id)
        tx.put(session, encode_event(SessionEnded(reason="imported")), turn_id="", at=progress.at)


def _mark(line: ChatLine, place: int) -> str:
    """36 bits: short, because it is stored with every record, and enough within one session."""
    digest = blake2b(digest_size=5)
    for part in (str(place), str(line.at), line.role, line.text):
        digest.update(part.encode("utf-8", "replace") + b"\0")
    return f"i{b64encode(digest.digest())[:6].decode()}"


def _derived_id(name: str) -> str:
    return f"import_{blake2b(name.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def _seconds(at: float | str) -> float:
    return parse_date(at) if isinstance(at, str) else float(at)


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
