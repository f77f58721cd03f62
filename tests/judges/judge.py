"""The verdict on a request: do the types of the vendors' own libraries accept it?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import ErrorDetails, SchemaValidator, ValidationError

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue
from hermes.testing.wires.table import WireName
from tests.judges.strict_types import ITEMS, validator
from tests.judges.vendors import VENDORS

_SHOWN = 3
_TELLING = ("type", "role")


class Piece(NamedTuple):
    """A part of a request that is judged by itself: its frame, or one entry of its conversation.
    `kind` names its type in WireTypes."""

    where: str
    kind: str
    value: JsonValue


class Judge:
    """Remembers what it found right: requests of one session repeat each other."""

    def __init__(self) -> None:
        self._known: dict[bytes, frozenset[str]] = {}

    def complaints(
        self, wire: WireName, body: JsonObject, *, among: Collection[str] = ()
    ) -> list[str]:
        """What none of these vendors (or of all that know the wire) would understand, each with
        its place."""
        vendors = frozenset(among or VENDORS[wire])
        understood = vendors
        for piece in _pieces(wire, body):
            fits = self._fits(wire, piece) & vendors
            if not fits:
                return list(_complaints(wire, piece, vendors))
            if not understood & fits:
                ours, theirs = ", ".join(sorted(understood)), ", ".join(sorted(fits))
                return [f"{piece.where or 'body'}: for {theirs}, but what comes before for {ours}"]
            understood &= fits
        return []

    def _fits(self, wire: WireName, piece: Piece) -> frozenset[str]:
        """The vendors that understand it."""
        raw = encode(piece.value)
        key = hashlib.blake2b(raw, digest_size=16, key=f"{wire} {piece.kind}".encode()).digest()
        if key not in self._known:
            names = (name for name in VENDORS[wire] if not _errors(wire, piece.kind, name, raw))
            self._known[key] = frozenset(names)
        return self._known[key]


def _pieces(wire: WireName, body: JsonObject) -> Iterator[Piece]:
    items = ITEMS[wire]
    said = body.get(items)
    kind = "streamed" if body.get("stream") is True else "whole"
    if not isinstance(said, list):
        yield Piece("", kind, body)
        return
    yield Piece("", kind, {**body, items: []})
    for at, item in enumerate(said):
        yield Piece(f"{items}[{at}]", "item", item)


@cache
def _validator(wire: WireName, kind: str, vendor: str) -> SchemaValidator:
    return validator(wire, kind, VENDORS[wire][vendor])


def _errors(wire: WireName, kind: str, vendor: str, raw: bytes) -> list[ErrorDetails]:
    try:
        _validator(wire, kind, vendor).validate_json(raw, strict=True)
    except ValidationError as error:
        return error.errors(include_url=False, include_input=False)
    return []


def _complaints(wire: WireName, piece: Piece, vendors: Collection[str]) -> Iterator[str]:
    """In the eyes of the vendor who has fewest and reads furthest; the deepest place says most."""
    raw = encode(piece.value)
    found = [_errors(wire, piece.kind, vendor, raw) for vendor in sorted(vendors)]
    errors = _telling(min(found, key=lambda errors: (len(errors), -_depth(errors))))
    told = [(_path(error["loc"], piece.value), error["msg"]) for error in errors]
    depth = max(len(path) for path, _ in told)
    deepest = dict.fromkeys(one for one in told if len(one[0]) == depth)
    for path, message in list(deepest)[:_SHOWN]:
        yield f"{piece.where or 'body'}{''.join(path)}: {message}"


def _depth(errors: list[ErrorDetails]) -> int:
    return max(len(error["loc"]) for error in errors)


def _telling(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Without those of types that the value does not claim to be. Where it claims to be none of
    those that are possible, the claim is what is wrong."""
    claims = {error["loc"] for error in errors if _is_claim(error)}
    others = {loc[:-1] for loc in claims}
    possible: dict[tuple[int | str, ...], set[int | str]] = {other[:-1]: set() for other in others}
    for error in errors:
        for size in range(len(error["loc"])):
            if (place := error["loc"][:size]) in possible:
                possible[place].add(error["loc"][size])
    hopeless = {
        place for place, names in possible.items() if all((*place, n) in others for n in names)
    }

    def tells(loc: tuple[int | str, ...]) -> bool:
        inside = [loc[:size] for size in range(1, len(loc)) if loc[:size] in others]
        return all(other[:-1] in hopeless for other in inside) and (not inside or loc in claims)

    return [error for error in errors if tells(error["loc"])] or errors


def _is_claim(error: ErrorDetails) -> bool:
    return error["loc"][-1] in _TELLING and error["type"] in ("literal_error", "missing")


def _path(loc: tuple[int | str, ...], value: Any) -> tuple[str, ...]:
    """The place in the value. Names of types are part of a `loc` but of no value."""
    path: list[str] = []
    for number, step in enumerate(loc):
        last = number == len(loc) - 1
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            path.append(f"[{step}]")
            value = value[step]
        elif isinstance(value, dict) and (step in value or last):
            path.append(f".{step}")
            value = value.get(step)
    return tuple(path)


def complaints_of_log(log: Path) -> list[str]:
    """About the requests that a server in another process wrote down."""
    judge = Judge()
    heard = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    return [
        f"{one['wire']} request {one['n']}: {complaint}"
        for one in heard
        if one["wire"] is not None
        for complaint in judge.complaints(one["wire"], one["body"])
    ]
