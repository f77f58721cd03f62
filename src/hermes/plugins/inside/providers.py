"""Kinds of providers and context engines of a plugin. Standard library only."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class ProviderKind(NamedTuple):
    """A kind of provider that plugins can register, and its methods."""

    label: str
    required: tuple[str, ...]  # with `optional`, all methods that the host may call
    optional: tuple[str, ...] = ()
    # read once at load time, with their defaults; some are attributes
    facts: Mapping[str, Any] = {}

    @property
    def methods(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)


KINDS: dict[str, ProviderKind] = {
    "memory": ProviderKind(
        "memory provider",
        ("initialize",),
        tuple(
            "prefetch queue_prefetch sync_turn on_turn_start on_session_end on_session_switch "
            "on_pre_compress on_memory_write on_delegation forget save_config shutdown".split()
        ),
        {"system_prompt_block": "", "get_config_schema": [], "backup_paths": []},
    ),
    "web": ProviderKind("web provider", (), ("search", "extract"), {"get_setup_schema": {}}),
    "tts": ProviderKind(
        "TTS provider",
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
    "browser": ProviderKind(
        "browser provider",
        ("create_session", "close_session"),
        ("emergency_cleanup",),
        {"get_setup_schema": {}},
    ),
    "stt": ProviderKind(
        "STT provider", ("transcribe",), (), {"list_models": [], "get_setup_schema": {}}
    ),
}


def provider_fault(kind: str, provider: Any) -> str:
    """Return why the object is not a valid provider, or ""."""
    own = KINDS[kind]
    if not isinstance(getattr(provider, "name", None), str) or not provider.name:
        return f"A {own.label} needs a `name`."
    missing = [each for each in own.required if not callable(getattr(provider, each, None))]
    if missing:
        return f"A {own.label} needs a method `{missing[0]}`."
    if not any(callable(getattr(provider, each, None)) for each in own.methods):
        return f"A {own.label} needs one of the methods {', '.join(own.methods)}."
    return ""


def describe_provider(kind: str, provider: Any, agrees: Callable[[Any], bool]) -> dict[str, Any]:
    """Describe a provider for the host; `agrees` runs its availability check."""
    own = KINDS[kind]
    return {
        "kind": kind,
        "name": provider.name,
        "available": agrees(getattr(provider, "is_available", None)),
        "methods": [each for each in own.methods if callable(getattr(provider, each, None))],
        "facts": {name: _fact(provider, name, without) for name, without in own.facts.items()},
    }


def _fact(provider: Any, name: str, otherwise: Any) -> Any:
    found = getattr(provider, name, None)
    if callable(found):
        found = found()
    return otherwise if found is None else found


class EngineFactory:
    """Makes a context engine for each session. `pattern` is a class, instantiated without
    arguments, or an object, which is copied; an object that cannot be copied is shared."""

    def __init__(self, pattern: Any, logger: logging.Logger) -> None:
        self._pattern = pattern
        self._logger = logger
        self._of: dict[str, Any] = {}
        self.sample = self._create()

    @property
    def name(self) -> Any:
        return getattr(self.sample, "name", None)

    def of(self, session_id: str) -> Any:
        if session_id not in self._of:
            self._of[session_id] = self._create()
        return self._of[session_id]

    def forget(self, session_id: str) -> None:
        self._of.pop(session_id, None)

    def _create(self) -> Any:
        if isinstance(self._pattern, type):
            return self._pattern()
        try:
            return copy.deepcopy(self._pattern)
        except Exception:
            self._logger.warning("the engine cannot be copied; sessions share it", exc_info=True)
            return self._pattern
