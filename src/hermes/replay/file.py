"""One file per recording: lines of JSON, compressed, with an end that shows a file was cut."""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hermes.codec.json import DecodeError, decode, encode, plain
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import UsageError
from hermes.providers.recorded.frames import Exchange, Fault, Run, Way
from hermes.providers.recorded.reading import Taped
from hermes.providers.recorded.sharing import delta, restored
from hermes.replay.recording import Line, Recording

FORMAT = "hermes-replay-1"
# Whatever claims to be a session is not unpacked beyond this.
MAX_BYTES = 2_000_000_000
_MAGIC = b"\x1f\x8b"


class Header(Value):
    format: str
    session_id: str
    version: str
    now: Run
    shared: int = 0
    masked: int = 0


class Kept(Value):
    path: str
    text: str


class Data(Value):
    """Bytes in JSON: as text where they are text."""

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
    """An exchange whose bytes can be read; the request is again a difference to the one before."""

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
    fault: Fault | None = None
    masked: int = 0


class Entry(Value):
    """One line of the file; exactly one field is given."""

    header: Header | None = None
    record: Line | None = None
    run: Run | None = None
    way: Way | None = None
    exchange: SavedExchange | None = None
    kept: Kept | None = None
    end: int | None = None


def lines_of(recording: Recording) -> Iterator[bytes]:
    entries = list(_entries(recording))
    for entry in (*entries, Entry(end=len(entries))):
        yield encode(entry) + b"\n"


def packed(recording: Recording) -> bytes:
    # Without a time in its head, so that the same recording is the same file.
    return gzip.compress(b"".join(lines_of(recording)), mtime=0)


def load(path: Path) -> Recording:
    """UsageError when the file is none of ours, or not whole."""
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == _MAGIC
        with gzip.open(path) if is_packed else path.open("rb") as file:
            data = file.read(MAX_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read ({error}); is it whole?") from error
    return parse(data, str(path))


def parse(data: bytes, name: str) -> Recording:
    try:
        entries = [decode(Entry, line) for line in data.split(b"\n") if line.strip()]
    except DecodeError as error:
        raise UsageError(f"{name} is no recorded session ({error}).") from error
    header = entries[0].header if entries else None
    if header is None or header.format != FORMAT:
        raise UsageError(f"{name} is no recorded session; `hermes sessions export` makes one.")
    if entries[-1].end != len(entries) - 1:
        raise UsageError(f"{name} is not whole; take a new copy of it.")
    records = tuple(entry.record for entry in entries if entry.record is not None)
    return Recording(
        session_id=header.session_id,
        version=header.version,
        lines=records,
        now=header.now,
        shared=header.shared,
        tapes=tuple(_tapes(entries)),
        kept={entry.kept.path: entry.kept.text for entry in entries if entry.kept},
        masked=header.masked,
    )


def _entries(recording: Recording) -> Iterator[Entry]:
    yield Entry(
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
        yield Entry(record=line)
    for tape in recording.tapes:
        yield Entry(run=tape.run)
        for way in tape.ways:
            yield Entry(way=way)
        before = b""
        for exchange in tape.exchanges:
            yield Entry(exchange=_saved(exchange, before))
            before = exchange.body
    for path, text in recording.kept.items():
        yield Entry(kept=Kept(path=path, text=text))


def _saved(exchange: Exchange, before: bytes) -> SavedExchange:
    shared = delta(before, exchange.body)
    # A difference may begin inside a letter; then the request stands whole.
    if not Data.of(shared.body).text and shared.body:
        shared = delta(b"", exchange.body)
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


def _tapes(entries: Iterable[Entry]) -> Iterator[Taped]:
    found: Taped | None = None
    before = b""
    for entry in entries:
        if entry.run is not None:
            if found is not None:
                yield found
            found, before = Taped(run=entry.run), b""
        elif entry.way is not None and found is not None:
            found = replace(found, ways=(*found.ways, entry.way))
        elif entry.exchange is not None and found is not None:
            before = restored(
                before, entry.exchange.head, entry.exchange.tail, entry.exchange.request.bytes
            )
            found = replace(found, exchanges=(*found.exchanges, _exchange(entry.exchange, before)))
    if found is not None:
        yield found


def _exchange(saved: SavedExchange, body: bytes) -> Exchange:
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
    return Exchange(**fields)
