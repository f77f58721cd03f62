"""Checks whether a silent local server is still working on a request."""

from __future__ import annotations

import asyncio
import re
from typing import Literal

from hermes.codec.values import JsonValue
from hermes.core.errors import ProviderError
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import HttpClient, Timeouts
from hermes.providers.servers import root_of
from hermes.providers.wire.format import request_headers
from hermes.providers.wire.loose import objects_of, parse_json

Activity = Literal["busy", "alive", "idle", "gone"]
"""busy   it reports work
alive  it responds but reports nothing about work
idle   it reports no work
gone   it does not respond
"""

_SECONDS = 5.0
_MAX_BYTES = 4 * 1024 * 1024
_RUNNING = re.compile(rb"^vllm:num_requests_(?:running|waiting)\S*\s+([0-9.e+]+)", re.MULTILINE)
# Paths that report work first, then paths that any server answers.
_PATHS = ("/slots", "/metrics", "/health", "/api/ps", "/v1/models")


class ActivityProbe:
    """Asks the path that responded last, and all of them when it no longer does."""

    def __init__(self, http: HttpClient, endpoint: Endpoint) -> None:
        self._http = http
        self._root = root_of(endpoint.url)
        self._headers = {**request_headers(endpoint), "accept": "*/*"}
        self._path = ""

    async def check(self) -> Activity:
        for path in (self._path, *_PATHS) if self._path else _PATHS:
            found = await self._ask(path)
            if found is not None:
                self._path = path
                return found
        self._path = ""
        return "gone"

    async def _ask(self, path: str) -> Activity | None:
        timeouts = Timeouts(connect=_SECONDS, read=_SECONDS)
        try:
            async with (
                asyncio.timeout(_SECONDS),
                self._http.get(
                    self._root + path, headers=self._headers, timeouts=timeouts
                ) as answer,
            ):
                body = await answer.read(_MAX_BYTES)
                status = answer.status
        except (ProviderError, TimeoutError):
            return None
        return _sign(path, status, body)


def _sign(path: str, status: int, body: bytes) -> Activity | None:
    if path == "/health" and status == 503:
        # The model is still loading.
        return "busy"
    if path == "/v1/models" and status < 500:
        return "alive"
    if status != 200:
        return None
    if path == "/slots":
        return _sign_of_slots(parse_json(body))
    if path == "/metrics":
        counts = [float(found) for found in _RUNNING.findall(body)]
        return ("busy" if any(counts) else "idle") if counts else None
    return "alive"


def _sign_of_slots(page: JsonValue) -> Activity | None:
    slots = [slot for slot in objects_of(page) if isinstance(slot.get("is_processing"), bool)]
    if not slots:
        return None
    return "busy" if any(slot["is_processing"] for slot in slots) else "idle"
