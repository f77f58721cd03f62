"""Merges what is known about models with similar names, from general to specific."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hermes.codec.values import Value
from hermes.providers.profile import EffortStyle, OutputField, Replay, SchemaStyle

UNKNOWN_WINDOW = 256_000


class Family(Value):
    """None means unknown. `match` holds parts of model names; with `vendors` the family applies
    only to models of these vendors. models.toml explains the other fields."""

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


def merge_families(families: Iterable[Family], model: str, vendor: str = "") -> Family:
    """All that is known about a model by its name. A longer match beats a shorter one, a
    vendor-specific match beats both, and the first listed wins a tie. Dots in names count as
    hyphens; a slash is put in front so that a match can anchor at the start."""
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
    fields: dict[str, object] = {}
    for *_, family in found:
        for field in Family.__struct_fields__[2:]:
            if (value := getattr(family, field)) is not None:
                fields[field] = value
    return Family(**fields)  # type: ignore[arg-type]
