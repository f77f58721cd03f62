"""Finds what identifies people: phone numbers, and on request mail addresses and user ids."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.redact.spans import Span

_PHONE = re.compile(r"\+[1-9]\d{9,14}(?!\w)")
_NOT_BEFORE_PHONE = re.compile(r"[\w+.=&-]")
_SPACED_PHONE = re.compile(r"(?<![\w+.])\+[1-9]\d{0,2}(?:[ .()-]{1,2}\d{2,4}){2,5}(?!\w)")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{2,63}){1,4}")
_ID = re.compile(
    r"(?i)(?<![\w])(?:user|chat|sender|member|account|customer|peer|from)[_ -]?id[\"']?\s*[:=]\s*"
    r"[\"']?(?P<id>[\w@.:+-]{4,64})"
)


def phones(text: str) -> Iterator[Span]:
    for match in _PHONE.finditer(text):
        if not _NOT_BEFORE_PHONE.match(text, match.start() - 1) or not match.start():
            yield Span(start=match.start(), end=match.end(), kind="phone")


def identities(text: str) -> Iterator[Span]:
    """Phones in any spelling, mail addresses and user ids, to be replaced by a digest."""
    for expression, kind in ((_PHONE, "phone"), (_SPACED_PHONE, "phone"), (_MAIL, "email")):
        for match in expression.finditer(text):
            yield Span(start=match.start(), end=match.end(), kind=f"pii_{kind}")
    for match in _ID.finditer(text):
        yield Span(start=match.start("id"), end=match.end("id"), kind="pii_id")
