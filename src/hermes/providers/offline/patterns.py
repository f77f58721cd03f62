"""The pattern language in which data files define the wording of requests.

    list|show the? {n} <files> <in> {path} -> hidden=yes

A word matches itself, `a|b` either of two, `<name>` any phrase of that class, and `{slot}` a value.
A `?` makes an element optional. After `->` come constant values. A slot may be strict (`{path!}`:
only what looks like a path), quoted (`{text'}`) or the rest of the request (`{text*}`). `{item}` is
a path that was shown before: "it", "the second one". Fillers may occur between elements.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from hermes.codec.values import Value

SlotKind = Literal["path", "number", "range", "glob", "word", "process", "item", "text", "sum"]

# The kind of value of a slot; other names take text.
SLOT_KINDS: dict[str, SlotKind] = {
    "path": "path",
    "to": "path",
    "other": "path",
    "target": "path",
    "parent": "path",
    "folder": "path",
    "item": "item",
    "n": "number",
    "from": "number",
    "upto": "number",
    "range": "range",
    "glob": "glob",
    "program": "word",
    "variable": "word",
    "process": "process",
    "sum": "sum",
}


Mode = Literal["", "strict", "quoted", "rest"]


class PatternElement(Value):
    """One element. `names` are its words, or the name of its class or slot."""

    op: Literal["word", "class", "slot"]
    names: tuple[str, ...]
    optional: bool = False
    slot: SlotKind = "text"
    mode: Mode = ""


class RequestPattern(Value):
    elements: tuple[PatternElement, ...]
    sets: tuple[tuple[str, str], ...] = ()


_MODES: dict[str, Mode] = {"!": "strict", "'": "quoted", "*": "rest"}


@lru_cache(maxsize=4096)
def parse_pattern(text: str) -> RequestPattern:
    wording, _, constants = text.partition(" -> ")
    pairs = tuple(pair.partition("=") for pair in constants.split())
    return RequestPattern(
        elements=tuple(_element(part) for part in wording.split()),
        sets=tuple((name, value) for name, _, value in pairs),
    )


def _element(part: str) -> PatternElement:
    optional = part[-1] == "?"
    part = part.rstrip("?")
    if part[0] == "<":
        return PatternElement(op="class", names=(part,), optional=optional)
    if part[0] != "{":
        return PatternElement(op="word", names=tuple(part.split("|")), optional=optional)
    mode = _MODES.get(part[-2], "")
    name = part[1:-2] if mode else part[1:-1]
    slot = SLOT_KINDS.get(name, "text")
    return PatternElement(op="slot", names=(name,), optional=optional, slot=slot, mode=mode)
