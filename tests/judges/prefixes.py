"""How much of a request its predecessor had already sent: what caches of providers live on."""

from __future__ import annotations

import re

from hermes.testing.request import Request

# Marks move on with the conversation; caches do not count them as part of it.
_MARK = re.compile(rb',"cache_control":\{"type":"ephemeral"(?:,"ttl":"1h")?\}')
# The list of messages is over here: after it come the fields that may change.
_END = re.compile(rb'\],"(?:tool_choice|store|max_tokens)":')


def marks(request: Request) -> int:
    return len(_MARK.findall(request.raw))


def told(request: Request) -> bytes:
    """Everything up to the last word of the conversation, without marks. Further words of the same
    speaker may be added right there."""
    raw = _MARK.sub(b"", request.raw)
    *_, end = _END.finditer(raw)
    return raw[: end.start()].rstrip(b'"]}')


def begins_with(newer: Request, older: Request) -> bool:
    return _MARK.sub(b"", newer.raw).startswith(told(older))


def departure(newer: Request, older: Request) -> str:
    """Where the newer request leaves the older one, for whoever reads a failed test."""
    left, right = told(older), _MARK.sub(b"", newer.raw)
    pairs = enumerate(zip(left, right, strict=False))
    at = next((n for n, (one, other) in pairs if one != other), min(len(left), len(right)))
    return f"{left[at - 80 : at + 40]!r} became {right[at - 80 : at + 40]!r}"
