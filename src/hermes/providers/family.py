"""What models with similar names have in common, laid over each other from general to special."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hermes.codec.values import Value
from hermes.providers.profile import EffortStyle, OutputField, Replay, SchemaStyle

UNKNOWN_WINDOW = 256_000


class Family(Value):
    """None says nothing about it. `match` are parts of names; with `vendors` it counts only for
    models that these serve. The rest is explained in models.toml."""

    match: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()
    window: int | None = None
    output: int | None = None
    reasons: bool | None = None
    thinking: Literal["none", "adaptive", "budget"] | None = None
    effort: EffortStyle | None = None
    efforts: tuple[str, ...] | None = None
    envelope: bool | None = None
    caches: bool | None = None
    output_field: OutputField | None = None
    developer: bool | None = None
    replay: Replay | None = None
    images: bool | None = None
    tools: bool | None = None
    tool_calls: str | None = None
    schemas: SchemaStyle | None = None
    temperature: Literal["free", "omitted"] | None = None


def merged(families: Iterable[Family], model: str, vendor: str = "") -> Family:
    """All that is known of a model by its name. A longer match says it better than a shorter one,
    a vendor's own word best; of equals the first one listed wins. Dots in names read as hyphens,
    and the slash in front of a name lets a match ask for its beginning."""
    name = "/" + model.lower().replace(".", "-")
    found: list[tuple[bool, int, int, Family]] = []
    for place, family in enumerate(families):
        if family.vendors and vendor not in family.vendors:
            continue
        longest = 0
        for word in family.match:
            if len(word) > longest and word in name:
                longest = len(word)
        if longest:
            found.append((bool(family.vendors), longest, -place, family))
    found.sort(key=lambda row: row[:3])
    said: dict[str, object] = {}
    for *_, family in found:
        for field in Family.__struct_fields__[2:]:
            if (value := getattr(family, field)) is not None:
                said[field] = value
    return Family(**said)  # type: ignore[arg-type]
