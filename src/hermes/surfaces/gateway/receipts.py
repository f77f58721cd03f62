"""Receipts: compares what an answer claims to have done with what the turn confirmed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hermes.core.events import Record, ToolFinished
from hermes.core.messages import ToolResult

PHRASES = "receipts.toml"
_QUOTED = re.compile(r"```.*?```|`[^`\n]*`|^>.*$|“[^”]*”|\"[^\"\n]*\"", re.DOTALL | re.MULTILINE)
# A dot inside a word, as in a file name, ends no sentence.
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\S))+[.!?\n]?")


class ClaimKind(NamedTuple):
    """A kind of claim: how it is worded, which tools support it, and what to say without them."""

    name: str
    claims: tuple[re.Pattern[str], ...]
    tools: frozenset[str]
    correction: str


class Receipts:
    """The kinds of claims that are checked."""

    def __init__(self, text: str = "") -> None:
        found = tomllib.loads(text or Path(__file__).with_name(PHRASES).read_text("utf-8"))
        excuses = "|".join(found["not_a_claim"])
        self._excuses = re.compile(excuses, re.IGNORECASE)
        self._kinds = tuple(
            ClaimKind(
                name,
                tuple(re.compile(each, re.IGNORECASE) for each in kind["claims"]),
                frozenset(kind["tools"]),
                kind["correction"],
            )
            for name, kind in found["kinds"].items()
        )

    def check(self, text: str, records: Iterable[Record]) -> str:
        """One line for each kind of claim that no successful call of the turn supports; "" when
        there is none."""
        plain = _QUOTED.sub("…", text)
        claimed = [kind for kind in self._kinds if self._claims(kind, plain)]
        if not claimed:
            return ""
        done = {name for each in _results(records) for name in _names(each)}
        return "\n".join(kind.correction for kind in claimed if not kind.tools & done)

    def _claims(self, kind: ClaimKind, text: str) -> bool:
        return any(
            pattern.search(sentence[0]) and not self._excuses.search(sentence[0])
            for sentence in _SENTENCE.finditer(text)
            for pattern in kind.claims
        )


def _results(records: Iterable[Record]) -> Iterable[ToolResult]:
    for record in records:
        if isinstance(record.event, ToolFinished) and not record.event.result.failed:
            yield record.event.result


def _names(result: ToolResult) -> tuple[str, ...]:
    """The tool; for one that is called through another, its own name too."""
    inner = result.details.get("tool")
    return (result.name, inner) if isinstance(inner, str) else (result.name,)
