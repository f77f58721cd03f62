"""What providers of each kind are asked for, on the plugin's own side: which methods there are, and
what each of them tells of itself when it is loaded. Only the standard library is used here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """`required` and `optional` are all the methods that the host may call. `facts` are asked once,
    when the plugin is loaded, with what counts where they are missing; some are mere attributes."""

    label: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    facts: Mapping[str, Any] = {}

    @property
    def methods(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)


KINDS: dict[str, Kind] = {
    "memory": Kind(
        "memory provider",
        ("initialize",),
        (
            "prefetch",
            "queue_prefetch",
            "sync_turn",
            "on_turn_start",
            "on_session_end",
            "on_session_switch",
            "on_pre_compress",
            "on_memory_write",
            "on_delegation",
            "forget",
            "save_config",
            "shutdown",
        ),
        {"system_prompt_block": "", "get_config_schema": [], "backup_paths": []},
    ),
    "web": Kind("web provider", (), ("search", "extract"), {"get_setup_schema": {}}),
    "tts": Kind(
        "speaking provider",
        ("synthesize",),
        (),
        {
            "list_voices": [],
            "list_models": [],
            "get_setup_schema": {},
            "format": "wav",
            "voice_compatible": False,
        },
    ),
    "browser": Kind(
        "browser provider",
        ("create_session", "close_session"),
        ("emergency_cleanup",),
        {"get_setup_schema": {}},
    ),
    "stt": Kind(
        "listening provider", ("transcribe",), (), {"list_models": [], "get_setup_schema": {}}
    ),
}


def fault_of(kind: str, provider: Any) -> str:
    """Why this cannot be a provider of the kind; "" when it can."""
    own = KINDS[kind]
    if not isinstance(getattr(provider, "name", None), str) or not provider.name:
        return f"A {own.label} has a `name`."
    missing = [each for each in own.required if not callable(getattr(provider, each, None))]
    if missing:
        return f"A {own.label} has a method `{missing[0]}`."
    if not any(callable(getattr(provider, each, None)) for each in own.methods):
        return f"A {own.label} has one of the methods {', '.join(own.methods)}."
    return ""


def told_of(kind: str, provider: Any, agrees: Callable[[Any], bool]) -> dict[str, Any]:
    """What the host gets to know of it; `agrees` asks whether it can be used."""
    own = KINDS[kind]
    return {
        "kind": kind,
        "name": provider.name,
        "available": agrees(getattr(provider, "is_available", None)),
        "methods": [each for each in own.methods if callable(getattr(provider, each, None))],
        "facts": {name: _fact(provider, name, without) for name, without in own.facts.items()},
    }


def tools_of(provider: Any) -> list[dict[str, Any]]:
    """The schemas of tools that a provider brings, by `get_tool_schemas`; those that it answers
    by `handle_tool_call` alone."""
    schemas = getattr(provider, "get_tool_schemas", None)
    if not callable(schemas) or not callable(getattr(provider, "handle_tool_call", None)):
        return []
    return [_flat(each) for each in schemas() or ()]


def _flat(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Some write what models see, in the form of one of them."""
    inner = schema.get("function")
    return dict(inner) if isinstance(inner, Mapping) else dict(schema)


def _fact(provider: Any, name: str, otherwise: Any) -> Any:
    found = getattr(provider, name, None)
    if callable(found):
        found = found()
    return otherwise if found is None else found
