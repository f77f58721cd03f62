"""Saves the chosen model in the settings, and switches the model of a session."""

from __future__ import annotations

from hermes.codec.json import plain
from hermes.codec.values import JsonValue
from hermes.config.edit import write_settings
from hermes.config.layers import SourcedValue
from hermes.config.load import Config
from hermes.config.migrations import REMOVED, Changes
from hermes.config.provider_settings import FallbackSettings
from hermes.core.commands import SwitchModel
from hermes.core.errors import UsageError
from hermes.core.events import TurnEnded
from hermes.core.recorder import Subscription
from hermes.core.session import Session

# Settings that apply to one provider only.
_OF_PROVIDER = ("base_url", "api_key", "api_mode")
# Settings that apply to one model only.
_OF_MODEL = ("context_length",)


def save_choice(config: Config, model: str, provider: str, *, base_url: str = "") -> None:
    """Save a choice, which takes effect with the next run. Raise ConfigError when the file cannot
    be written."""
    changes: Changes = {("model", "default"): model, ("model", "provider"): provider}
    stale: tuple[str, ...] = ()
    if provider != _file_value(config, "provider") or base_url:
        stale += _OF_PROVIDER
    if model != _file_value(config, "default"):
        stale += _OF_MODEL
    changes |= {("model", key): REMOVED for key in stale if _file_value(config, key) is not None}
    if base_url:
        changes["model", "base_url"] = base_url
    write_settings(config.home, changes)


def save_chain(config: Config, chain: tuple[FallbackSettings, ...]) -> None:
    """Replace the fallback chain, including the older `fallback_model` setting."""
    entries: list[JsonValue] = [
        {name: value for name, value in plain(each).items() if value} for each in chain
    ]
    changes: Changes = {("fallback_providers",): entries or REMOVED, ("fallback_model",): REMOVED}
    write_settings(config.home, changes)


def save_task(config: Config, task: str, provider: str, model: str = "") -> None:
    """Set the model of one side task."""
    path = ("auxiliary", task)
    changes: Changes = {
        (*path, "provider"): REMOVED if provider in ("", "auto") else provider,
        (*path, "model"): model or REMOVED,
    }
    write_settings(config.home, changes)


def save_endpoint(config: Config, name: str, base_url: str, key_env: str = "") -> None:
    """Save a custom endpoint under a name."""
    changes: Changes = {("providers", name, "base_url"): base_url}
    if key_env:
        changes["providers", name, "key_env"] = key_env
    write_settings(config.home, changes)


def _file_value(config: Config, key: str) -> JsonValue:
    """Return the value in the settings file, or None."""
    found = config.explain(f"model.{key}")
    values = (SourcedValue(value=found.value, source=found.source), *found.shadows)
    return next((each.value for each in values if each.source.kind == "file"), None)


async def switch(session: Session, model: str, provider: str) -> None:
    """Switch the model of a session. Raise UsageError while a turn runs. On failure the session
    keeps its model."""
    if session.busy:
        raise UsageError("A turn is running; stop it, or switch the model when it has ended.")
    await session.send(SwitchModel(model=model, provider=provider))


async def switch_back(session: Session, events: Subscription, model: str, provider: str) -> None:
    """Wait for the end of the next turn, then restore the model. A turn that is already queued
    starts with the restored model, because nothing runs between the end of a turn and this
    switch."""
    try:
        async for record in events:
            if isinstance(record.event, TurnEnded):
                await session.send(SwitchModel(model=model, provider=provider))
                return
    finally:
        events.close()
