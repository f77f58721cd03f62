"""Secrets in tables: what stands in the column whose head says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.redact.names import Weight, weight
from hermes.policy.redact.page import Page
from hermes.policy.redact.spans import Span
from hermes.policy.redact.strength import is_secret

_HEADS = (b"password", b"passwd", b"secret", b"token", b"api_key", b"apikey", b"api key")
_SIGNS = ("|", ",", ";", "\t")
_MOST_ROWS = 200


def in_columns(page: Page) -> Iterator[Span]:
    done = 0
    for head in _HEADS:
        for at in page.places(head):
            start = page.text.rfind("\n", 0, at) + 1
            end = page.text.find("\n", at)
            if end < 0 or end < done or end - start > 400:
                continue
            line = page.text[start:end]
            for sign in _SIGNS:
                if line.count(sign) and (names := _names(line, sign)):
                    done = end
                    yield from _rows(page.text, end + 1, sign, line.count(sign), names)


def _names(line: str, sign: str) -> dict[int, str]:
    """The names that tell, by the number of their column. A head is short words only."""
    cells = [cell.strip(" \"'*`") for cell in line.split(sign)]
    if any(len(cell) > 30 or not re.fullmatch(r"[\w .#-]*", cell) for cell in cells):
        return {}
    named = {number: cell.replace(" ", "_") for number, cell in enumerate(cells)}
    return {number: name for number, name in named.items() if weight(name) >= Weight.TOKEN}


def _rows(text: str, at: int, sign: str, count: int, names: dict[int, str]) -> Iterator[Span]:
    for _ in range(_MOST_ROWS):
        end = text.find("\n", at)
        end = end if end >= 0 else len(text)
        cells = text[at:end].split(sign)
        if len(cells) != count + 1:
            return
        for number, name in names.items():
            start = at + sum(len(cell) + 1 for cell in cells[:number])
            bare = cells[number].strip(" \"'`")
            start += cells[number].find(bare) if bare else 0
            if bare and is_secret(bare, name, Weight.TOKEN, quoted=True, environment=False):
                yield Span(start=start, end=start + len(bare), kind="password")
        at = end + 1
        if at >= len(text):
            return
