"""The base class of all values: frozen, keyword-only, compact when encoded."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar, dataclass_transform

import msgspec

# JSON that has not been decoded into a value yet. Recursive aliases would make every access a cast,
# so the leaves stay `Any`. Such objects live at the wire and end in `decode`.
JsonValue: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class ValueMeta(msgspec.StructMeta):
    """Tells type checkers that every value is frozen and keyword-only."""


class Value(
    msgspec.Struct,
    metaclass=ValueMeta,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
):
    """The base of all values. Defaults are not encoded, so a default is part of the stored
    format."""


V = TypeVar("V", bound=Value)


def replace(value: V, **changes: Any) -> V:
    """The same value with other fields."""
    return msgspec.structs.replace(value, **changes)
