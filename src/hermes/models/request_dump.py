"""Writes every model request and its response to a file, for debugging."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonValue
from hermes.core.errors import ProviderError
from hermes.net.http import HttpResponse, ResponseContext, current_interceptor
from hermes.providers.recorded.masks import SecretMask
from hermes.providers.recorded.tape import ResponseRecord, is_model_call, plain_url

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

log = logging.getLogger(__name__)

MAX_FILES = 200


def dump_requests(run: RunContext) -> None:
    """Start dumping for the current task and the tasks it starts. Recorded sessions have a tape
    instead."""
    current_interceptor.set(RequestDump(run))


class RequestDump:
    """An HTTP interceptor. Headers are not written; secrets in bodies are masked."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._folder = run.home.root / "logs" / "requests"
        self._number = 0

    @asynccontextmanager
    async def exchange(
        self, url: str, body: bytes, real: Callable[[], ResponseContext]
    ) -> AsyncIterator[HttpResponse]:
        if not is_model_call(url):
            async with real() as answer:
                yield answer
            return
        response, fault = ResponseRecord(self._run.world.clock), ""
        started = self._run.world.clock.now()
        try:
            async with real() as answer:
                yield answer.wrap(response.start)
        except ProviderError as error:
            fault = str(error)
            raise
        finally:
            self._write(started, url, body, response, fault)

    def _write(
        self, started: float, url: str, body: bytes, response: ResponseRecord, fault: str
    ) -> None:
        known = self._run.redactor
        mask = SecretMask(known.values(), known.marks, known.typed)
        answer, _ = mask.stream(mask.data(mask.answer(b"".join(response.pieces))[0])[0])
        dump = {
            "at": started,
            "seconds": round(self._run.world.clock.now() - started, 3),
            "url": plain_url(url),
            "request": self._redact(mask.data(body)[0]),
            "status": response.status,
            "ending": response.ending,
            "fault": self._run.redactor.line(fault),
            "answer": self._redact(answer),
        }
        try:
            self._save(started, encode(dump))
        except OSError as error:
            log.warning("cannot write the request dump", extra={"why": str(error)})

    def _redact(self, data: bytes) -> JsonValue:
        """Redact a body. JSON stays JSON; anything else becomes text."""
        text = self._run.redactor.line(data.decode("utf-8", "replace"))
        try:
            return decode(object, text)
        except DecodeError:
            return text

    def _save(self, started: float, dump: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._number += 1
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(started))
        path = self._folder / f"{stamp}-{os.getpid()}-{self._number:04}.json"
        path.touch(mode=0o600)
        path.write_bytes(dump + b"\n")
        for old in sorted(self._folder.glob("*.json"))[:-MAX_FILES]:
            old.unlink(missing_ok=True)
