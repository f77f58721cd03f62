"""Receipts: compares what an answer claims to have done with what the turn confirmed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes.core.events import Record, ReplyAdded, ToolFinished
from hermes.core.messages import ToolResult
from hermes.surfaces.gateway.claims import FOLDER, find_claims

_SAVED_KINDS = frozenset({"wrote", "scheduled", "remembered"})


class Receipts:
    """Which tools support which kinds of claims."""

    def __init__(self) -> None:
        text = Path(__file__).with_name(FOLDER).joinpath("tools.toml").read_text("utf-8")
        found = tomllib.loads(text)
        self._kinds = {kind: frozenset(tools) for kind, tools in found["kinds"].items()}
        self._reading = frozenset(found["reading"])
        self._nothing = frozenset(found["nothing"])
        # What is named for one kind supports no other kind.
        self._specific = frozenset[str]().union(*self._kinds.values())

    def check(self, text: str, records: Iterable[Record]) -> str:
        """One line for each kind of claim that no successful call of the turn supports; "" when
        there is none."""
        claims = find_claims(text)
        if not claims:
            return ""
        done = set(self._effects(list(records)))
        if done - self._specific:
            return ""
        # A job is saved, and so is a fact: the narrower claim says it better.
        is_narrow = not {claim.kind for claim in claims}.isdisjoint(_SAVED_KINDS)
        return "\n".join(
            claim.correction
            for claim in claims
            if not self._kinds[claim.kind] & done and not (claim.kind == "saved" and is_narrow)
        )

    def _effects(self, records: list[Record]) -> Iterator[str]:
        """The tools that may have changed something."""
        actions = dict(_actions(records))
        for record in records:
            event = record.event
            if isinstance(event, ToolFinished) and not event.result.failed:
                name = _tool_name(event.result)
                reads = f"{name} {actions.get(event.result.call_id)}" in self._reading
                if name not in self._nothing and not reads:
                    yield name


def _actions(records: list[Record]) -> Iterator[tuple[str, object]]:
    for record in records:
        if isinstance(record.event, ReplyAdded):
            for call in record.event.message.calls:
                yield call.id, call.arguments.get("action")


def _tool_name(result: ToolResult) -> str:
    """The tool; for one that is called through another, its own name."""
    inner = result.details.get("tool")
    return inner if isinstance(inner, str) else result.name
