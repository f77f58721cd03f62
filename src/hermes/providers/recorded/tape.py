"""Writes the tape of a session: every exchange with a model in one append, safe from kill -9."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlsplit

from hermes.core.errors import ProviderError
from hermes.core.world import Clock
from hermes.providers.http import Answer
from hermes.providers.recorded.frames import Exchange, Frame, Packing, Run, Way
from hermes.providers.recorded.heard import Heard
from hermes.providers.recorded.masks import Mask
from hermes.providers.recorded.sharing import Delta, delta

log = logging.getLogger(__name__)

DIGEST_BYTES = 16
# What else goes to a provider, logins above all, is nobody's business.
MODEL_PATHS = ("/chat/completions", "/responses", "/messages")
SUFFIX = ".tape"


class Tape:
    """The tap of one session in one process. Nothing is made before the first frame; a tape that
    cannot be written is given up with a word in the log, and the session goes on."""

    def __init__(self, folder: Path, run: Run, *, mask: Mask, clock: Clock) -> None:
        self._folder = folder
        self._run = run
        self._mask = mask
        self._clock = clock
        self._packing = Packing()
        self._path: Path | None = None
        self._given_up = False
        self._before = b""
        self._digest = b""
        self._secret_was_sent = False

    def begin(self) -> None:
        """Make the file, so that it is known when this process came into the session."""
        if self._path is None and not self._given_up:
            self._attempt(self._open)

    def goes(self, way: Way) -> None:
        """The session connects to a model."""
        self._write(way)

    @asynccontextmanager
    async def exchange(
        self, url: str, body: bytes, real: Callable[[], AbstractAsyncContextManager[Answer]]
    ) -> AsyncIterator[Answer]:
        if not is_model_call(url):
            async with real() as answer:
                yield answer
            return
        self.begin()
        heard, began = Heard(self._clock), False
        try:
            async with real() as answer:
                began = True
                yield answer.through(heard.begins)
        except ProviderError as error:
            if not began:
                heard.fails(error)
            raise
        finally:
            self._write(self._frame(url, body, heard))

    def _frame(self, url: str, body: bytes, heard: Heard) -> Exchange:
        shared, hidden = self._masked_request(body)
        self._digest = digest(self._digest, *shared)
        pieces, found = self._masked_answer(heard.pieces)
        return Exchange(
            url=plain_url(url),
            body=shared.body,
            digest=self._digest,
            head=shared.head,
            tail=shared.tail,
            status=heard.status,
            headers={name: self._mask.text(value) for name, value in heard.headers.items()},
            answer=b"".join(pieces),
            sizes=tuple(map(len, pieces)),
            times=tuple(heard.times),
            ending=heard.ending,
            fault=heard.fault,
            masked=hidden + found,
        )

    def _masked_request(self, body: bytes) -> tuple[Delta, int]:
        """What is new in the request, and how many secrets stood in it. Only what is new is looked
        through, as long as none was found."""
        shared, hidden = delta(self._before, body), 0
        margin = self._mask.longest
        start = max(0, shared.head - margin)
        end = len(body) - max(0, shared.tail - margin)
        if self._secret_was_sent or self._mask.covers(body[start:end]):
            self._secret_was_sent = True
            body, hidden = self._mask.data(body)
            shared = delta(self._before, body)
        self._before = body
        return shared, hidden

    def _masked_answer(self, pieces: list[bytes]) -> tuple[list[bytes], int]:
        """A model cannot say a secret that it was not told, so the careful look is for the rest."""
        whole, labelled = self._mask.answer(b"".join(pieces))
        masked, found = self._mask.data(whole)
        found += labelled
        if self._secret_was_sent:
            masked, more = self._mask.stream(masked)
            found += more
        return (recut(masked, pieces) if found else pieces), found

    def _write(self, frame: Frame) -> None:
        self.begin()
        self._attempt(lambda: self._append(frame))

    def _open(self) -> None:
        _make_private(self._folder)
        number = _next_number(self._folder)
        while self._path is None:
            path = self._folder / f"{number:06}{SUFFIX}"
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                self._path = path
            except FileExistsError:
                number += 1
        self._append(self._run)

    def _append(self, frame: Frame) -> None:
        """Opened for each frame: a program with many sessions has few open files then."""
        assert self._path is not None
        data = self._packing.pack(frame)
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(file, data) < len(data):
                raise OSError("the tape was cut short")
        finally:
            os.close(file)

    def _attempt(self, work: Callable[[], None]) -> None:
        if self._given_up:
            return
        try:
            work()
        except OSError as error:
            self._given_up = True
            log.warning("the session is not recorded any more", extra={"why": str(error)})


def is_model_call(url: str) -> bool:
    return urlsplit(url).path.rstrip("/").endswith(MODEL_PATHS)


def plain_url(url: str) -> str:
    """Without a name, a password or a query, which may be a key."""
    place = urlsplit(url)
    return f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path}"


def digest(before: bytes, head: int, tail: int, body: bytes) -> bytes:
    """Of a request and all before it, from what it does not share with the last of them."""
    made = blake2b(b"%b%d %d " % (before, head, tail), digest_size=DIGEST_BYTES)
    made.update(body)
    return made.digest()


def recut(masked: bytes, pieces: list[bytes]) -> list[bytes]:
    """The masked answer in pieces like those that came, if it is as long as they were together."""
    if len(masked) != sum(map(len, pieces)):
        return [masked]
    found, at = [], 0
    for piece in pieces:
        found.append(masked[at : at + len(piece)])
        at += len(piece)
    return found


def _make_private(folder: Path) -> None:
    """With all that is missing above it; `parents=True` would leave those open to everybody."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _next_number(folder: Path) -> int:
    numbers = (int(path.stem) for path in folder.glob(f"*{SUFFIX}") if path.stem.isdecimal())
    return max(numbers, default=0) + 1
