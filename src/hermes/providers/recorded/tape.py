"""Writes and reads the tapes of a session, safe against kill -9."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlsplit

from hermes.codec.values import Value, replace
from hermes.core.errors import ProviderError, UsageError
from hermes.core.world import Clock
from hermes.net.http import HttpResponse, ResponseContext, ResponseSource
from hermes.net.http11 import ProtocolError
from hermes.providers.recorded.frames import (
    BodyDelta,
    Ending,
    FrameEncoder,
    RecordedError,
    RecordedExchange,
    TapeFrame,
    TapeModel,
    TapeRun,
    decode_frames,
    diff_body,
    restore_body,
)
from hermes.providers.recorded.masks import SecretMask

_KEPT_HEADERS = frozenset(("content-type", "content-encoding", "retry-after", "retry-after-ms"))


class ResponseRecord:
    """Wraps a response, once it starts, and records what is read."""

    def __init__(self, clock: Clock) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.times: list[int] = []
        self.ending: Ending = "left"
        self.fault: RecordedError | None = None
        self._inner: ResponseSource | None = None
        self._clock = clock
        self._newest = clock.monotonic()

    def start(self, incoming: ResponseSource) -> ResponseSource:
        self._inner, self.status, self.headers = incoming, incoming.status, incoming.headers
        self._tick()
        return self

    @property
    def kept_headers(self) -> dict[str, str]:
        """Headers that decide how a response is parsed and when the next request is made."""
        headers = self.headers.items()
        return {name: v for name, v in headers if name in _KEPT_HEADERS or "ratelimit" in name}

    @property
    def reusable(self) -> bool:
        return self._inner is not None and self._inner.reusable

    async def read(self, seconds: float) -> bytes:
        assert self._inner is not None
        try:
            piece = await self._inner.read(seconds)
        except (OSError, ProtocolError) as error:
            self.ending = _ending(error)
            raise
        if piece:
            self.pieces.append(piece)
            self._tick()
        else:
            self.ending = "whole"
        return piece

    def _tick(self) -> None:
        now = self._clock.monotonic()
        self.times.append(round((now - self._newest) * 1000))
        self._newest = now


def _ending(error: Exception) -> Ending:
    match error:
        case TimeoutError():
            return "timeout"
        case ProtocolError():
            return "protocol"
        case ConnectionError():
            return "connection"
        case _:
            return "network"


log = logging.getLogger(__name__)

DIGEST_BYTES = 16
# Other requests to a provider, such as logins, are not recorded.
MODEL_PATHS = ("/chat/completions", "/responses", "/messages")
SUFFIX = ".tape"


class TapeRecorder:
    """The interceptor of one session in one process. The file is created with the first frame; if
    writing fails, recording stops with a warning and the session continues."""

    def __init__(self, folder: Path, run: TapeRun, *, mask: SecretMask, clock: Clock) -> None:
        self._folder = folder
        self._run = run
        self._mask = mask
        self._clock = clock
        self._packing = FrameEncoder()
        self._path: Path | None = None
        self._given_up = False
        self._before = b""
        self._digest = b""
        self._secret_was_sent = False

    def open(self) -> None:
        """Create the file, which records when this process joined the session."""
        if self._path is None and not self._given_up:
            self._attempt(self._open)

    def record_model(self, model: TapeModel) -> None:
        """Record that the session connects to a model."""
        self._write(model)

    @asynccontextmanager
    async def exchange(
        self, url: str, body: bytes, real: Callable[[], ResponseContext]
    ) -> AsyncIterator[HttpResponse]:
        if not is_model_call(url):
            async with real() as answer:
                yield answer
            return
        self.open()
        response, started = ResponseRecord(self._clock), False
        try:
            async with real() as answer:
                started = True
                yield answer.wrap(response.start)
        except ProviderError as error:
            if not started:
                response.fault = RecordedError(
                    message=str(error),
                    reason=error.reason,
                    retryable=error.retryable,
                    unsent=error.unsent,
                )
            raise
        finally:
            self._write(self._frame(url, body, response))

    def _frame(self, url: str, body: bytes, response: ResponseRecord) -> RecordedExchange:
        shared, hidden = self._mask_request(body)
        self._digest = digest(self._digest, *shared)
        pieces, found = self._mask_response(response.pieces)
        return RecordedExchange(
            url=plain_url(url),
            body=shared.body,
            digest=self._digest,
            head=shared.head,
            tail=shared.tail,
            status=response.status,
            headers={name: self._mask.text(value) for name, value in response.kept_headers.items()},
            answer=b"".join(pieces),
            sizes=tuple(map(len, pieces)),
            times=tuple(response.times),
            ending=response.ending,
            fault=response.fault,
            masked=hidden + found,
        )

    def _mask_request(self, body: bytes) -> tuple[BodyDelta, int]:
        """Return the new part of the request, and the number of secrets in it. Only the new part is
        searched until a secret was found."""
        shared, hidden = diff_body(self._before, body), 0
        margin = self._mask.longest
        start = max(0, shared.head - margin)
        end = len(body) - max(0, shared.tail - margin)
        if self._secret_was_sent or self._mask.occurs_in(body[start:end]):
            self._secret_was_sent = True
            body, hidden = self._mask.data(body)
            shared = diff_body(self._before, body)
        self._before = body
        return shared, hidden

    def _mask_response(self, pieces: list[bytes]) -> tuple[list[bytes], int]:
        """Mask the pieces of a response. A model cannot repeat a secret that it was never sent, so
        the thorough search is conditional."""
        whole, labelled = self._mask.answer(b"".join(pieces))
        masked, found = self._mask.data(whole)
        found += labelled
        if self._secret_was_sent:
            masked, more = self._mask.stream(masked)
            found += more
        return (split_like(masked, pieces) if found else pieces), found

    def _write(self, frame: TapeFrame) -> None:
        self.open()
        self._attempt(lambda: self._append(frame))

    def _open(self) -> None:
        _make_private(self._folder)
        names = (path.stem for path in self._folder.glob(f"*{SUFFIX}"))
        number = max((int(name) for name in names if name.isdecimal()), default=0) + 1
        while self._path is None:
            path = self._folder / f"{number:06}{SUFFIX}"
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                self._path = path
            except FileExistsError:
                number += 1
        self._append(self._run)

    def _append(self, frame: TapeFrame) -> None:
        """Open the file for each frame, so that many sessions need few file descriptors."""
        assert self._path is not None
        data = self._packing.encode(frame)
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(file, data) < len(data):
                raise OSError("the tape was written only in part")
        finally:
            os.close(file)

    def _attempt(self, work: Callable[[], None]) -> None:
        if self._given_up:
            return
        try:
            work()
        except OSError as error:
            self._given_up = True
            log.warning("recording stopped", extra={"why": str(error)})


def is_model_call(url: str) -> bool:
    return urlsplit(url).path.rstrip("/").endswith(MODEL_PATHS)


def plain_url(url: str) -> str:
    """Return the URL without user, password and query, which may contain a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def digest(before: bytes, head: int, tail: int, body: bytes) -> bytes:
    """Return a digest of a request and all before it, computed from its difference from the
    previous one."""
    made = blake2b(b"%b%d %d " % (before, head, tail), digest_size=DIGEST_BYTES)
    made.update(body)
    return made.digest()


def split_like(masked: bytes, pieces: list[bytes]) -> list[bytes]:
    """Return the masked response in pieces like the original ones, if the length is the same."""
    if len(masked) != sum(map(len, pieces)):
        return [masked]
    found, at = [], 0
    for piece in pieces:
        found.append(masked[at : at + len(piece)])
        at += len(piece)
    return found


def _make_private(folder: Path) -> None:
    """Create missing parents with mode 0700 too; `parents=True` would use the default mode."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


class TapedRun(Value):
    """What one process did for a session. `exchanges` have complete request bodies."""

    run: TapeRun
    models: tuple[TapeModel, ...] = ()
    exchanges: tuple[RecordedExchange, ...] = ()


def read_tapes(folder: Path) -> tuple[TapedRun, ...]:
    """Return the tapes of a session in order; empty if it was never recorded. Raises UsageError
    when one is damaged."""
    found = (read_tape(path) for path in sorted(folder.glob(f"*{SUFFIX}")))
    return tuple(taped for taped in found if taped is not None)


def read_tape(path: Path) -> TapedRun | None:
    """Read a tape; None for a file that ends before its first frame. Raises UsageError when the
    file is damaged."""
    try:
        return _parse_tape(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UsageError(
            f"{path} is damaged: {error}; delete it to replay the session from its records."
        ) from error


def _parse_tape(data: bytes) -> TapedRun | None:
    run: TapeRun | None = None
    models: list[TapeModel] = []
    exchanges: list[RecordedExchange] = []
    before = seal = b""
    for frame in decode_frames(data):
        match frame:
            case TapeRun():
                run = frame
            case TapeModel():
                models.append(frame)
            case RecordedExchange():
                before = restore_body(before, frame.head, frame.tail, frame.body)
                seal = digest(seal, frame.head, frame.tail, frame.body)
                if seal != frame.digest:
                    raise ValueError("a request does not match its digest")
                exchanges.append(replace(frame, body=before, head=0, tail=0))
    if run is None:
        return None
    return TapedRun(run=run, models=tuple(models), exchanges=tuple(exchanges))
