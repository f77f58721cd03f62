"""Writes every exchange with a model to a file of its own, for who looks for a fault in one."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonValue
from hermes.core.errors import ProviderError
from hermes.net.http import HttpResponse, current_interceptor
from hermes.providers.recorded.masks import SecretMask
from hermes.providers.recorded.tape import ResponseRecord, is_model_call, plain_url

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

log = logging.getLogger(__name__)

KEPT = 200


def dump_requests(run: RunContext) -> None:
    """From now on, as long as the running task and those it starts go on. A session that is
    recorded has a tape instead."""
    current_interceptor.set(RequestDump(run))


class RequestDump:
    """A tap. Headers are not written at all, and what is secret in the rest is masked."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._folder = run.home.root / "logs" / "requests"
        self._number = 0

    @asynccontextmanager
    async def exchange(
        self, url: str, body: bytes, real: Callable[[], AbstractAsyncContextManager[HttpResponse]]
    ) -> AsyncIterator[HttpResponse]:
        if not is_model_call(url):
            async with real() as answer:
                yield answer
            return
        heard, fault = ResponseRecord(self._run.world.clock), ""
        began = self._run.world.clock.now()
        try:
            async with real() as answer:
                yield answer.wrap(heard.start)
        except ProviderError as error:
            fault = str(error)
            raise
        finally:
            self._write(began, url, body, heard, fault)

    def _write(
        self, began: float, url: str, body: bytes, heard: ResponseRecord, fault: str
    ) -> None:
        mask = SecretMask(self._run.redactor.values(), self._run.redactor.marks)
        answer, _ = mask.stream(mask.data(mask.answer(b"".join(heard.pieces))[0])[0])
        page = {
            "at": began,
            "seconds": round(self._run.world.clock.now() - began, 3),
            "url": plain_url(url),
            "request": self._redact(mask.data(body)[0]),
            "status": heard.status,
            "ending": heard.ending,
            "fault": self._run.redactor.line(fault),
            "answer": self._redact(answer),
        }
        try:
            self._save(began, encode(page))
        except OSError as error:
            log.warning("a request was not written down", extra={"why": str(error)})

    def _redact(self, data: bytes) -> JsonValue:
        """JSON as JSON, anything else as text."""
        text = self._run.redactor.line(data.decode("utf-8", "replace"))
        try:
            return decode(object, text)
        except DecodeError:
            return text

    def _save(self, began: float, page: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._number += 1
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(began))
        path = self._folder / f"{stamp}-{os.getpid()}-{self._number:04}.json"
        path.touch(mode=0o600)
        path.write_bytes(page + b"\n")
        for old in sorted(self._folder.glob("*.json"))[:-KEPT]:
            old.unlink(missing_ok=True)
