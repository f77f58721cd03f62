"""The model list of the scripted server, in the format of each vendor."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.codec.values import JsonObject

BORN = 1_700_000_000


def model_page(models: Iterable[str | JsonObject], *, anthropic: bool) -> JsonObject:
    """A name gets default fields; an object overrides them."""
    named = [{"id": model} if isinstance(model, str) else model for model in models]
    if not anthropic:
        entries = [{"object": "model", "created": BORN, "owned_by": "tests"} | m for m in named]
        return {"object": "list", "data": entries}
    usual = {"type": "model", "created_at": "2023-11-14T22:13:20Z", "lifecycle": "active"}
    entries = [usual | {"display_name": m.get("id")} | m for m in named]
    ids = [entry.get("id") for entry in entries] or [None]
    return {"data": entries, "has_more": False, "first_id": ids[0], "last_id": ids[-1]}
