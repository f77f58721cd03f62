"""Everything in a text that looks like a secret, by its form, its name or its surroundings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.redact.fields import in_fields
from hermes.policy.redact.formats import in_formats
from hermes.policy.redact.page import Page
from hermes.policy.redact.people import identities, phones
from hermes.policy.redact.shapes import SHAPES
from hermes.policy.redact.spans import Span

_HEADLESS_KEY = re.compile(
    r"(?m)^[^\S\n]*(?:\d+[|:]\s?)?[A-Za-z0-9+/=]{1,76}$"
    r"(?:\n[^\S\n]*(?:\d+[|:]\s?)?[A-Za-z0-9+/=]{16,76}$)*+"
    r"\n[^\S\n]*(?:\d+[|:]\s?)?-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----"
)


def looking_secret(page: Page) -> Iterator[Span]:
    yield from in_formats(page)
    yield from in_fields(page)
    for shape in SHAPES:
        yield from shape(page)
    yield from headless_keys(page)


def headless_keys(page: Page) -> Iterator[Span]:
    """The rest of a private key whose beginning was cut off with the text before it."""
    if b"PRIVATE KEY" not in page.data or b"-----END " not in page.data:
        return
    for match in _HEADLESS_KEY.finditer(page.text):
        yield Span(start=match.start(), end=match.end(), kind="private_key")


def numbers(text: str) -> Iterator[Span]:
    """Phone numbers, which are masked in any case."""
    yield from phones(text)


def people(text: str) -> Iterator[Span]:
    """What identifies people, for those who want that hidden."""
    yield from identities(text)
