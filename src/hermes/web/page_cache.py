"""Keeps fetched pages in memory: recent ones are used again, older ones are validated first."""

from __future__ import annotations

import re
from collections import OrderedDict

from hermes.codec.values import Value
from hermes.core.ports import FetchResponse
from hermes.core.world import Clock

FRESH_SECONDS = 300.0
MOST_BYTES = 16 * 1024 * 1024
_MAX_AGE = re.compile(r"max-age=(\d{1,9})")


class CachedPage(Value):
    response: FetchResponse
    expires_at: float


class PageCache:
    """The pages of one process, by URL; the least recently used are dropped first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pages: OrderedDict[str, CachedPage] = OrderedDict()
        self._bytes = 0

    def find_fresh(self, url: str) -> FetchResponse | None:
        page = self._pages.get(url)
        if page is None or page.expires_at <= self._clock.monotonic():
            return None
        self._pages.move_to_end(url)
        return page.response

    def validators(self, url: str) -> dict[str, str]:
        """Return the headers that ask whether the page has changed."""
        page = self._pages.get(url)
        if page is None:
            return {}
        headers = page.response.headers
        found = {
            "if-none-match": headers.get("etag", ""),
            "if-modified-since": headers.get("last-modified", ""),
        }
        return {name: value for name, value in found.items() if value}

    def store(self, url: str, response: FetchResponse) -> FetchResponse:
        """Store a response and return the page. A 304 stands for the page that is stored."""
        if response.status == 304 and url in self._pages:
            response = self._pages[url].response
        self._drop(url)
        seconds = _fresh_seconds(response)
        if response.status == 200 and not response.cut and seconds is not None:
            self._pages[url] = CachedPage(
                response=response, expires_at=self._clock.monotonic() + seconds
            )
            self._bytes += len(response.body)
            while self._bytes > MOST_BYTES:
                self._drop(next(iter(self._pages)))
        return response

    def _drop(self, url: str) -> None:
        if page := self._pages.pop(url, None):
            self._bytes -= len(page.response.body)


def _fresh_seconds(response: FetchResponse) -> float | None:
    """Return how long the page may be used without a request; None if it must not be stored."""
    control = response.headers.get("cache-control", "").lower()
    if "no-store" in control:
        return None
    if "no-cache" in control:
        return 0.0
    found = _MAX_AGE.search(control)
    return min(float(found[1]), FRESH_SECONDS) if found else FRESH_SECONDS
