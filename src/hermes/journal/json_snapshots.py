"""Writes each session to a JSON file after every turn (`sessions.write_json_snapshots`)."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.config.home import Home, replace_file
from hermes.core.errors import HermesError
from hermes.core.events import TurnEnded
from hermes.core.message_dicts import dicts_from_messages
from hermes.core.session import Session
from hermes.journal.export import redact_texts

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.journal.archive import SessionArchive

log = logging.getLogger(__name__)

# Limits the wait for the last file when a session closes.
CLOSE_SECONDS = 10.0


class SnapshotLength(Value):
    """The fields that are read from an existing file."""

    message_count: int = 0


def snapshot_file(home: Home, session_id: str) -> Path:
    """Return the file of a session; an imported id is untrusted and is sanitized."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", session_id)[:100]
    if plain != session_id:
        plain += "-" + blake2b(session_id.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return home.sessions / f"session_{plain}.json"


def forget_snapshot(home: Home, session_id: str) -> None:
    snapshot_file(home, session_id).unlink(missing_ok=True)


class JsonSnapshots:
    """Follows open sessions and writes their files."""

    def __init__(
        self, run: RunContext, archive: SessionArchive, endpoint_url: Callable[[str, str], str]
    ) -> None:
        self._run = run
        self._archive = archive
        self._endpoint_url = endpoint_url
        self._open: dict[str, asyncio.Task[None]] = {}

    def follow(self, session: Session) -> None:
        self._open[session.id] = asyncio.ensure_future(self._follow(session))

    async def on_session_closed(self, session_id: str) -> None:
        """Wait until the last turn of a closed session is written."""
        task = self._open.pop(session_id, None)
        if task is not None:
            await asyncio.wait((task,), timeout=CLOSE_SECONDS)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _follow(self, session: Session) -> None:
        redact = self._run.redactor.text
        async for record in session.subscribe():
            if not isinstance(record.event, TurnEnded):
                continue
            try:
                started_at = (await self._archive.info(session.id)).started_at
                transcript = session.transcript
                url = self._endpoint_url(transcript.model, transcript.provider)
                data = snapshot(session, started_at, record.at, url=url, redact=redact)
                await asyncio.to_thread(write, self._run.home, data)
            except (HermesError, OSError) as error:
                log.warning("cannot write session snapshot", extra={"error": str(error)})


def snapshot(
    session: Session, started_at: float, now: float, *, url: str, redact: Callable[[str], str]
) -> JsonObject:
    transcript = session.transcript
    opened = transcript.opened
    messages = dicts_from_messages(transcript.messages)
    return {
        "session_id": session.id,
        "model": transcript.model,
        "provider": transcript.provider,
        "base_url": url,
        "platform": opened.source if opened else "",
        "session_start": _iso(started_at),
        "last_updated": _iso(now),
        "system_prompt": redact(opened.system) if opened else "",
        "tools": list(opened.tools) if opened else [],
        "message_count": len(messages),
        "messages": redact_texts(messages, redact),
    }


def write(home: Home, data: JsonObject) -> None:
    """Replace the file atomically, unless the existing file has more messages."""
    path = snapshot_file(home, str(data["session_id"]))
    length = 0
    with suppress(DecodeError, FileNotFoundError):
        length = decode(SnapshotLength, path.read_bytes()).message_count
    if length <= int(data["message_count"]):
        replace_file(home, path, encode(data) + b"\n", durable=False)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
