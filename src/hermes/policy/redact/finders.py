"""Everything in a text that looks like a secret, by its form, its name or its surroundings."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.policy.redact.fields import in_fields
from hermes.policy.redact.formats import in_formats
from hermes.policy.redact.page import Page
from hermes.policy.redact.people import identities, phones
from hermes.policy.redact.shapes import SHAPES
from hermes.policy.redact.spans import Span


def looking_secret(page: Page) -> Iterator[Span]:
    yield from in_formats(page)
    yield from in_fields(page)
    for shape in SHAPES:
        yield from shape(page)


def numbers(text: str) -> Iterator[Span]:
    """Phone numbers, which are masked in any case."""
    yield from phones(text)


def people(text: str) -> Iterator[Span]:
    """What identifies people, for those who want that hidden."""
    yield from identities(text)
