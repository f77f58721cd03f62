"""A model provider with keys, quotas and limits, that remembers who asked with which key."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from typing import Literal

from tests.credentials.authority import Authority
from tests.loopback import Asked, Said

WINDOW_SECONDS = 1.0
Kind = Literal["endless", "quota", "always_limited", "revoked", "unpaid"]


class Provider:
    """Answers chat completions. A key with a quota may ask `quota` times per window; the limit
    names its end in one of the ways that real providers do. Tokens of the authority are keys
    without a limit."""

    def __init__(self, keys: dict[str, Kind], authority: Authority, *, quota: int) -> None:
        self._keys = keys
        self._authority = authority
        self._quota = quota
        self._used: Counter[tuple[str, int]] = Counter()
        self.answered: Counter[str] = Counter()
        self.refused: dict[str, list[tuple[float, str]]] = defaultdict(list)
        # Who was served once has heard of every key before those that serve.
        self.tried_again: dict[str, list[float]] = defaultdict(list)
        self._served: set[str] = set()

    def answer(self, asked: Asked) -> Said:
        if not asked.path.endswith("/chat/completions"):
            return self._authority.answer(asked)
        key, session, now = asked.bearer, asked.headers["x-session"], time.time()
        match self._keys.get(key, "login"):
            case "login" if not self._authority.accepts(key):
                return self._refuse(key, session, Said(401, _error("the token has expired")))
            case "revoked":
                return self._refuse(key, session, Said(401, _error("invalid api key")))
            case "unpaid":
                return self._refuse(key, session, Said(402, _error("payment required")))
            case "always_limited":
                # Slowly, so that others come by while one of them is trying.
                slow = _limited({"retry-after": str(WINDOW_SECONDS)}, delay=0.4)
                return self._refuse(key, session, slow)
            case "quota" if not self._has_room(key, now):
                left = WINDOW_SECONDS - now % WINDOW_SECONDS
                return self._refuse(key, session, _limited(_reset(key, left)))
        self.answered[key] += 1
        self._served.add(session)
        return Said(200, _reply(), kind="text/event-stream")

    def _has_room(self, key: str, now: float) -> bool:
        window = (key, int(now / WINDOW_SECONDS))
        self._used[window] += 1
        return self._used[window] <= self._quota

    def _refuse(self, key: str, session: str, said: Said) -> Said:
        self.refused[key].append((time.time(), session))
        if session in self._served:
            self.tried_again[key].append(time.time())
        return said


def _reset(key: str, left: float) -> dict[str, str]:
    spent = {"x-ratelimit-remaining-requests": "0"}
    return (
        {"retry-after-ms": f"{left * 1000:.0f}"},
        {"x-ratelimit-reset-requests": f"{left * 1000:.0f}ms", **spent},
        {"x-ratelimit-reset-requests": f"{left:.3f}s", **spent},
    )[sum(key.encode()) % 3]


def _limited(headers: dict[str, str], delay: float = 0.0) -> Said:
    return Said(429, _error("rate limit reached"), headers, delay=delay)


def _error(message: str) -> dict[str, object]:
    return {"error": {"message": message}}


def _reply() -> str:
    chunk = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": None}]}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return "".join(f"data: {json.dumps(part)}\n\n" for part in (chunk, end)) + "data: [DONE]\n\n"
