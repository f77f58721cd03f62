"""Secrets that people tell each other in passing: a name and a password, a number for a door."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.redact.lookalikes import is_no_secret, is_prose
from hermes.policy.redact.page import Page
from hermes.policy.redact.spans import Span
from hermes.policy.redact.strength import is_chosen

_VALUE = r"[\"'`]?(?P<secret>[^\s\"'`<>(){}$]{6,128})"
_BOTH = re.compile(
    r"(?:daten|identifiants|logins?|creds|credentials)[^\n:]{0,24}[:=]\s{0,3}[\w.@-]{1,64}"
    rf"\s?[/|:,]\s?{_VALUE}",
    re.IGNORECASE,
)
_AFTER_USER = re.compile(
    r"(?:user|username|login) \S{1,64}[\s,;]{1,2}(?:with )?(?:pass|pw|pwd|password)[ :=]{1,2}"
    + _VALUE,
    re.IGNORECASE,
)
_SAID = re.compile(
    r"(?<![\w-])(?:pwd?|creds)(?: (?:for|of|on|to) \S{1,30}(?: \S{1,20})?)?(?::| is| was|=)\s{1,3}"
    + _VALUE,
    re.IGNORECASE,
)
_COMMUNITY = re.compile(rf"community(?: string| name)?(?::| is|=)\s{{0,3}}{_VALUE}", re.IGNORECASE)
# A line with logins for all machines; a word alone would be the next word of a sentence.
_FOR_ALL = re.compile(
    r"login\s{1,8}\S{1,64}\s{1,8}password\s{1,8}(?P<secret>(?=\S*[\d%!#$&*+=?@^])\S{6,128})"
)
# A word that a text must hold, and what may begin there. The value must look chosen.
_CHOSEN = (
    (b"daten", (_BOTH,)),
    (b"identifiants", (_BOTH,)),
    (b"login", (_BOTH, _AFTER_USER)),
    (b"cred", (_BOTH, _SAID)),
    (b"user", (_AFTER_USER,)),
    (b"pw", (_SAID,)),
    (b"community", (_COMMUNITY,)),
)
_PIN = re.compile(
    r" pin(?: code| number)?(?: (?:is|was)|:|=)\s{0,3}(?P<secret>\d{4,8})(?!\w)", re.I
)
_DOOR = re.compile(r"(?i:door|gate|alarm|entry|safe|locker)\Z")
_DOOR_CODE = re.compile(
    r" code(?: is|:|=)\s{1,3}(?P<secret>[#*]?\d{3,8}[#*]?)(?!\w)", re.IGNORECASE
)
_SPARE = re.compile(r"(?i:backup|recovery|scratch|rescue)\Z")
_SPARE_CODES = re.compile(
    r"(?i: codes?)(?:\s*\([^()\n]{0,60}\))?[^\n:]{0,40}:(?P<secret>(?:[\s,;]{1,4}(?:\d{1,2}[.)]\s)?"
    r"(?:[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,3}|\d{8,10}|\d{4} \d{4})(?![\w-])){1,20})"
)
_BEFORE_KEY = re.compile(r"(?P<secret>(?:0x)?[0-9a-fA-F]{64})\W{1,3}[\w' ]{0,24}\Z")


def told(page: Page) -> Iterator[Span]:
    for word, expressions in _CHOSEN:
        for at in page.places(word):
            for expression in expressions:
                yield from _chosen(expression.match(page.text, at))
            match = _FOR_ALL.match(page.text, at) if word == b"login" else None
            if match and not is_no_secret(match["secret"]):
                yield Span(start=match.start("secret"), end=match.end("secret"), kind="password")
    for at in page.places(b" pin"):
        if match := _PIN.match(page.text, at):
            yield Span(start=match.start("secret"), end=match.end("secret"), kind="pin")
    for at in page.places(b" code"):
        yield from _codes(page.text, at)
    for at in page.places(b"private key"):
        if match := _BEFORE_KEY.search(page.text, max(0, at - 110), at):
            yield Span(start=match.start("secret"), end=match.end("secret"), kind="private_key")


def _codes(text: str, at: int) -> Iterator[Span]:
    """What opens a door, and what is used in place of a second step."""
    if _DOOR.search(text, max(0, at - 8), at) and (match := _DOOR_CODE.match(text, at)):
        yield Span(start=match.start("secret"), end=match.end("secret"), kind="pin")
    if _SPARE.search(text, max(0, at - 8), at) and (match := _SPARE_CODES.match(text, at)):
        codes = match["secret"].lstrip(" \t\n,;")
        if any(letter.isdigit() for letter in codes):
            end = match.end("secret")
            yield Span(start=end - len(codes), end=end, kind="recovery_code")


def _chosen(match: re.Match[str] | None) -> Iterator[Span]:
    if match is None:
        return
    secret = match["secret"].rstrip(".,;:?)")
    if is_chosen(secret) and not is_no_secret(secret) and not is_prose(secret):
        start = match.start("secret")
        yield Span(start=start, end=start + len(secret), kind="password")
