"""From a session of this home to a recording: records, tapes and kept texts, secrets masked."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hermes.codec.json import decode, encode
from hermes.codec.values import Value, replace
from hermes.config.home import TAPES
from hermes.config.run_context import RunContext
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import ToolFinished
from hermes.journal.body_templates import is_newer
from hermes.journal.journal import SqliteJournal
from hermes.journal.reading import history_segments
from hermes.journal.rows import LogRow, read_rows
from hermes.providers.recorded.frames import RecordedExchange
from hermes.providers.recorded.masks import SecretMask
from hermes.providers.recorded.tape import TapedRun, read_tapes, split_like
from hermes.replay.facts import run_of
from hermes.replay.recording import RecordedLine, Recording
from hermes.version import __version__


class RecordedRows(Value):
    rows: tuple[tuple[str, LogRow], ...]
    shared: int


async def collect_recording(run: RunContext, journal: SqliteJournal, session_id: str) -> Recording:
    """NotFound; UsageError when a record is damaged, since nothing after it could be trusted."""
    mask = SecretMask(run.redactor.values())
    found = await journal.reading(lambda db: _rows(db, session_id))
    lines, masked = _lines(found, mask)
    folder = run.home.sessions / session_id
    tapes = await asyncio.to_thread(read_tapes, folder / TAPES)
    kept, more = await asyncio.to_thread(_saved_files, lines, mask, run.home.sessions)
    cleaned = [_clean_tape(tape, mask) for tape in tapes]
    return Recording(
        session_id=session_id,
        version=__version__,
        lines=lines,
        now=run_of(
            run.config,
            mask=mask,
            after=0,
            at=run.world.clock.now(),
            attended=any(line.kind in ("approval_asked", "question_asked") for line in lines),
            root="",
            cwd="",
        ),
        shared=found.shared,
        tapes=tuple(cleaned),
        kept=kept,
        masked=masked + more + sum(e.masked for tape in cleaned for e in tape.exchanges),
    )


def _rows(db: sqlite3.Connection, session_id: str) -> RecordedRows:
    rows: list[tuple[str, LogRow]] = []
    shared = 0
    for segment in history_segments(db, session_id):
        shared = len(rows)
        found = read_rows(db, segment.session, upto=segment.upto)
        rows += [(segment.session_id, row) for row in found.whole]
    if not rows:
        raise NotFound(f"Session {session_id} has no records.")
    for number, (_, row) in enumerate(rows, start=1):
        if row.n != number:
            raise UsageError(
                f"Record {number} of {session_id} is damaged, so it cannot be played; "
                "`hermes sessions verify` tells more."
            )
        if is_newer(row.kind, row.version):
            raise UsageError(f"Record {number} was written by a newer Hermes; update to play it.")
    return RecordedRows(rows=tuple(rows), shared=shared)


def _lines(found: RecordedRows, mask: SecretMask) -> tuple[tuple[RecordedLine, ...], int]:
    """A masked record breaks the chain of hashes from there on."""
    lines, masked = [], 0
    for number, (_, row) in enumerate(found.rows):
        body, count = row.body, 0
        if mask.occurs_in(row.body):
            body, count = encode(mask.json(decode(dict, row.body))), 1
        masked += count
        whole = not masked and number >= found.shared
        lines.append(
            RecordedLine(
                n=row.n,
                at=row.at,
                kind=row.kind,
                version=row.version,
                body=msgspec.Raw(body),
                turn_id=row.turn_id,
                hash=row.hash.hex() if whole else "",
            )
        )
    return tuple(lines), masked


def _saved_files(
    lines: Iterable[RecordedLine], mask: SecretMask, sessions: Path
) -> tuple[dict[str, str], int]:
    """The whole texts of results that were put aside, as far as they are still there."""
    kept: dict[str, str] = {}
    masked = 0
    for line in lines:
        if line.kind != "tool_finished" or b'"persisted"' not in bytes(line.body):
            continue
        event = line.event
        assert isinstance(event, ToolFinished)
        path = event.result.details.get("persisted")
        if isinstance(path, str) and Path(path).is_relative_to(sessions.resolve()):
            try:
                text = Path(path).read_text("utf-8")
            except (OSError, UnicodeError):
                continue
            kept[path] = mask.text(text)
            masked += kept[path] != text
    return kept, masked


def _clean_tape(tape: TapedRun, mask: SecretMask) -> TapedRun:
    """What became a secret after the tape was made is masked too."""
    run = replace(tape.run, facts=mask.json(tape.run.facts))
    ways = tuple(replace(way, facts=mask.json(way.facts)) for way in tape.ways)
    return TapedRun(run=run, ways=ways, exchanges=tuple(_clean(e, mask) for e in tape.exchanges))


def _clean(exchange: RecordedExchange, mask: SecretMask) -> RecordedExchange:
    body, hidden = mask.data(exchange.body)
    answer, found = mask.data(exchange.answer)
    answer, more = mask.stream(answer)
    if not hidden and not found and not more:
        return exchange
    pieces = split_like(answer, list(exchange.pieces()))
    return replace(
        exchange,
        body=body,
        answer=answer,
        sizes=tuple(map(len, pieces)),
        masked=exchange.masked + hidden + found + more,
    )
