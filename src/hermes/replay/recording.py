"""A recorded session: its lines, its processes and its file format."""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hermes.codec.json import DecodeError, decode, encode, plain
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import UsageError
from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    ReplyAdded,
    SessionOpened,
    ToolFinished,
    TurnEnded,
)
from hermes.journal.body_templates import event_of
from hermes.journal.reading import chain_hash, chain_seed
from hermes.providers.recorded.frames import (
    RecordedError,
    RecordedExchange,
    TapeModel,
    TapeRun,
    diff_body,
    restore_body,
)
from hermes.providers.recorded.tape import TapedRun


class RecordedLine(Value):
    """A journal record."""

    n: int
    at: float
    kind: str
    version: int
    # The event's exact JSON.
    body: msgspec.Raw
    turn_id: str = ""
    # Empty when a secret was masked in this record or an earlier one.
    hash: str = ""

    @property
    def event(self) -> DurableEvent:
        return event_of(self.kind, self.version, bytes(self.body))


class Recording(Value):
    """A session with everything that its replay needs."""

    session_id: str
    version: str
    lines: tuple[RecordedLine, ...]
    # The current settings, used where no tape exists.
    now: TapeRun
    # Number of records that a fork inherits.
    shared: int = 0
    tapes: tuple[TapedRun, ...] = ()
    # Full texts of truncated results by path.
    saved_results: dict[str, str] = {}
    # Number of removed secret values.
    masked: int = 0


class ProcessPart(NamedTuple):
    """The lines from `start` up to `end`, written by one process."""

    start: int
    end: int
    tape: TapedRun | None


def first_position(recording: Recording) -> int:
    """Return the first line to replay: after inherited records, the opening event and imported
    messages."""
    lines, position = recording.lines, recording.shared
    if position >= len(lines) or not isinstance(lines[position].event, SessionOpened):
        raise UsageError(
            "The recording does not start with the first event of a session; export it again."
        )
    position += 1
    taken_over = False
    while position < len(lines):
        event = lines[position].event
        is_past = isinstance(event, ReplyAdded | ToolFinished)
        if isinstance(event, MessageReceived):
            is_past = event.past
            taken_over |= is_past
        if not taken_over or not is_past:
            break
        position += 1
    return position


def parts_of(recording: Recording, first: int) -> list[ProcessPart]:
    """Split the lines by process, in order and without gaps; empty parts are omitted."""
    end = len(recording.lines)
    starts = [max(first, min(tape.run.after, end)) for tape in recording.tapes]
    parts = [ProcessPart(first, starts[0] if starts else end, None)]
    for number, tape in enumerate(recording.tapes):
        until = starts[number + 1] if number + 1 < len(starts) else end
        parts.append(ProcessPart(starts[number], until, tape))
    return [part for part in parts if part.start < part.end]


def idle_before(events: Sequence[DurableEvent], position: int) -> int:
    """Return the last position up to this one at which no turn was running."""
    while position > 0 and not isinstance(events[position - 1], TurnEnded):
        position -= 1
    return position


def shell_before(lines: Sequence[RecordedLine]) -> str:
    """Return the shell's working directory after these lines, or "" if unknown."""
    for line in reversed(lines):
        if line.kind != "tool_finished" or b'"cwd"' not in bytes(line.body):
            continue
        event = line.event
        details = event.result.details if isinstance(event, ToolFinished) else {}
        if isinstance(cwd := details.get("cwd"), str) and "session_id" not in details:
            return cwd
    return ""


FORMAT = "hermes-replay-1"
_DIGEST_BYTES = 16
# Limits decompression of untrusted files.
MAX_BYTES = 2_000_000_000
_MAGIC = b"\x1f\x8b"


class Header(Value):
    format: str
    session_id: str
    version: str
    now: TapeRun
    shared: int = 0
    masked: int = 0


class SavedFile(Value):
    path: str
    text: str


class Data(Value):
    """Bytes in JSON: text if they are valid UTF-8, otherwise Base64."""

    text: str = ""
    base64: str = ""

    @staticmethod
    def of(data: bytes) -> Data:
        try:
            return Data(text=data.decode())
        except UnicodeDecodeError:
            return Data(base64=base64.b64encode(data).decode())

    @property
    def bytes(self) -> bytes:
        return base64.b64decode(self.base64) if self.base64 else self.text.encode()


class SavedExchange(Value):
    """An exchange in readable form; the request is stored as a difference from the previous one."""

    url: str
    request: Data
    digest: str
    head: int = 0
    tail: int = 0
    status: int = 0
    headers: dict[str, str] = {}
    answer: Data = Data()
    sizes: tuple[int, ...] = ()
    times: tuple[int, ...] = ()
    ending: str = "left"
    fault: RecordedError | None = None
    masked: int = 0


class FileEntry(Value):
    """One line of the file; exactly one field is set. The last line also has the digest of all
    others."""

    header: Header | None = None
    record: RecordedLine | None = None
    run: TapeRun | None = None
    way: TapeModel | None = None
    exchange: SavedExchange | None = None
    kept: SavedFile | None = None
    end: int | None = None
    digest: str = ""


def lines_of(recording: Recording) -> Iterator[bytes]:
    count, whole = 0, blake2b(digest_size=_DIGEST_BYTES)
    for entry in _entries(recording):
        line = encode(entry) + b"\n"
        whole.update(line)
        count += 1
        yield line
    yield encode(FileEntry(end=count, digest=whole.hexdigest())) + b"\n"


def pack_recording(recording: Recording) -> bytes:
    # No timestamp in the gzip header: the same recording gives the same file.
    return gzip.compress(b"".join(lines_of(recording)), mtime=0)


def load(path: Path) -> Recording:
    """Load a recording. Raises UsageError when the file is not a recording or is incomplete."""
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == _MAGIC
        with gzip.open(path) if is_packed else path.open("rb") as file:
            data = file.read(MAX_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read ({error}); copy or export it again.") from error
    return parse(data, str(path))


def parse(data: bytes, name: str) -> Recording:
    try:
        entries = [decode(FileEntry, line) for line in data.split(b"\n") if line.strip()]
    except DecodeError as error:
        raise UsageError(
            f"{name} is not a recorded session ({error}); choose another file."
        ) from error
    header = entries[0].header if entries else None
    if header is None or header.format != FORMAT:
        raise UsageError(
            f"{name} is not a recorded session; create one with `hermes sessions export`."
        )
    if entries[-1].end != len(entries) - 1:
        raise UsageError(f"{name} is incomplete; copy it again.")
    wanted = entries[-1].digest
    if wanted and wanted != blake2b(_without_last(data), digest_size=_DIGEST_BYTES).hexdigest():
        raise UsageError(f"{name} is damaged: it was changed after the export; export it again.")
    records = tuple(entry.record for entry in entries if entry.record is not None)
    if why := find_chain_damage(header.session_id, records, header.shared, header.masked):
        raise UsageError(f"{name} is damaged: {why}; export it again.")
    try:
        tapes = tuple(_tapes(entries))
    except ValueError as error:
        raise UsageError(
            f"{name} is damaged: a request cannot be read; export it again."
        ) from error
    return Recording(
        session_id=header.session_id,
        version=header.version,
        lines=records,
        now=header.now,
        shared=header.shared,
        tapes=tapes,
        saved_results={entry.kept.path: entry.kept.text for entry in entries if entry.kept},
        masked=header.masked,
    )


def _without_last(data: bytes) -> bytes:
    """Return the data without its last line."""
    return data[: data.rstrip(b"\n").rfind(b"\n") + 1]


def find_chain_damage(
    session_id: str, records: Sequence[RecordedLine], shared: int, masked: int
) -> str:
    """Describe the first record that is out of order or does not match its hash; "" if all do.
    Inherited records, and those from the first masked one on, have no hash."""
    previous, is_masked = chain_seed(session_id), False
    for position, line in enumerate(records):
        if line.n != position + 1:
            return f"record {position + 1} is missing or out of order"
        if position < shared:
            continue
        if is_masked or not line.hash:
            if line.hash or not masked:
                return f"the hash of record {line.n} is missing or out of place"
            is_masked = True
            continue
        body = bytes(line.body)
        fields = (line.n, line.turn_id, line.kind, line.version, line.at)
        previous = chain_hash(previous, *fields, body)
        if previous.hex() != line.hash:
            return f"record {line.n} does not match its hash"
    return ""


def _entries(recording: Recording) -> Iterator[FileEntry]:
    yield FileEntry(
        header=Header(
            format=FORMAT,
            session_id=recording.session_id,
            version=recording.version,
            now=recording.now,
            shared=recording.shared,
            masked=recording.masked,
        )
    )
    for line in recording.lines:
        yield FileEntry(record=line)
    for tape in recording.tapes:
        yield FileEntry(run=tape.run)
        for model in tape.models:
            yield FileEntry(way=model)
        before = b""
        for exchange in tape.exchanges:
            yield FileEntry(exchange=_save_exchange(exchange, before))
            before = exchange.body
    for path, text in recording.saved_results.items():
        yield FileEntry(kept=SavedFile(path=path, text=text))


def _save_exchange(exchange: RecordedExchange, before: bytes) -> SavedExchange:
    shared = diff_body(before, exchange.body)
    # A difference that splits a UTF-8 sequence is not text; store the whole request.
    if not Data.of(shared.body).text and shared.body:
        shared = diff_body(b"", exchange.body)
    fields: JsonObject = {
        name: getattr(exchange, name)
        for name in ("url", "status", "headers", "sizes", "times", "ending", "fault", "masked")
    }
    return SavedExchange(
        **fields,
        request=Data.of(shared.body),
        digest=exchange.digest.hex(),
        head=shared.head,
        tail=shared.tail,
        answer=Data.of(exchange.answer),
    )


def _tapes(entries: Iterable[FileEntry]) -> Iterator[TapedRun]:
    tape: TapedRun | None = None
    before = b""
    for entry in entries:
        if entry.run is not None:
            if tape is not None:
                yield tape
            tape, before = TapedRun(run=entry.run), b""
        elif entry.way is not None and tape is not None:
            tape = replace(tape, models=(*tape.models, entry.way))
        elif entry.exchange is not None and tape is not None:
            before = restore_body(
                before, entry.exchange.head, entry.exchange.tail, entry.exchange.request.bytes
            )
            tape = replace(tape, exchanges=(*tape.exchanges, _exchange(entry.exchange, before)))
    if tape is not None:
        yield tape


def _exchange(saved: SavedExchange, body: bytes) -> RecordedExchange:
    fields: dict[str, Any] = plain(saved)
    for name in ("request", "head", "tail"):
        fields.pop(name, None)
    fields |= {
        "body": body,
        "digest": bytes.fromhex(saved.digest),
        "answer": saved.answer.bytes,
        "fault": saved.fault,
        "sizes": saved.sizes,
        "times": saved.times,
    }
    return RecordedExchange(**fields)
