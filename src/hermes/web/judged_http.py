"""An HTTP client that asks the policy about every address, also at each redirect."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from urllib.parse import urljoin

from hermes.codec.values import Value
from hermes.core.effects import Allow
from hermes.core.errors import HermesError
from hermes.policy.urls.judging import MOST_REDIRECTS, Urls
from hermes.policy.urls.resolver import SystemResolver
from hermes.providers.http import HttpClient, Timeouts
from hermes.providers.http import HttpResponse as HttpAnswer

REDIRECT_STATUSES = (301, 302, 303, 307, 308)
TIMEOUTS = Timeouts(connect=10, read=30)
MOST_BYTES = 20 * 1024 * 1024


class HttpResponse(Value):
    """Header names are in lower case."""

    status: int
    headers: dict[str, str] = {}
    body: bytes = b""


class JudgedHttp:
    """`own` URLs come from the user's settings and are exempt from the check. Behind a proxy the
    proxy resolves names, so only the text of a URL can be checked here."""

    def __init__(self, http: HttpClient, own: Mapping[str, str], *, proxied: bool = False) -> None:
        self._http = http
        self._own = tuple(url.rstrip("/") + "/" for url in own.values())
        self._proxied = proxied
        self._urls = Urls(SystemResolver())

    async def fetch(self, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
        for _ in range(MOST_REDIRECTS + 1):
            await self._check(url)
            async with self._send(url, headers, body) as answer:
                location = answer.headers.get("location", "")
                if answer.status not in REDIRECT_STATUSES or not location or body is not None:
                    data = await answer.read(MOST_BYTES + 1)
                    if len(data) > MOST_BYTES:
                        raise HermesError(f"{url} sends more than {MOST_BYTES} bytes; refused.")
                    return HttpResponse(status=answer.status, headers=answer.headers, body=data)
            url = urljoin(url, location)
            # A key for one server is not sent to the next.
            headers = {name: value for name, value in headers.items() if name != "authorization"}
        raise HermesError(f"{url} was redirected more than {MOST_REDIRECTS} times.")

    async def _check(self, url: str) -> None:
        if url.startswith(self._own):
            return
        if self._proxied:
            decision = self._urls.glance(url)
        else:
            decision = (await self._urls.judge(url)).decision
        if not isinstance(decision, Allow):
            raise HermesError(f"{url} was not requested: {decision.reason}")

    def _send(
        self, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AbstractAsyncContextManager[HttpAnswer]:
        if body is None:
            return self._http.get(url, headers=headers, timeouts=TIMEOUTS)
        return self._http.post(url, body=body, headers=headers, timeouts=TIMEOUTS)
