"""Saves a chosen model in the settings and switches the model of a session."""

from __future__ import annotations

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

# What was written for one provider is wrong for another.
_OF_PROVIDER = ("base_url", "api_key", "api_mode")
# What was written for one model is wrong for another.
_OF_MODEL = ("context_length",)


def save_choice(config: Config, model: str, provider: str, *, base_url: str = "") -> None:
    """From the next run on. ConfigError when the file cannot be written."""
    changes: Changes = {("model", "default"): model, ("model", "provider"): provider}
    stale: tuple[str, ...] = ()
    if provider != _write(config, "provider") or base_url:
        stale += _OF_PROVIDER
    if model != _write(config, "default"):
        stale += _OF_MODEL
    changes |= {("model", key): REMOVED for key in stale if _write(config, key) is not None}
    if base_url:
        changes["model", "base_url"] = base_url
    write_settings(config.home, changes)


def save_chain(config: Config, chain: tuple[FallbackSettings, ...]) -> None:
    """In place of the old chain, in whichever words that was written."""
    entries: list[JsonValue] = [_entry(each) for each in chain]
    changes: Changes = {("fallback_providers",): entries or REMOVED, ("fallback_model",): REMOVED}
    write_settings(config.home, changes)


def save_task(config: Config, task: str, provider: str, model: str = "") -> None:
    """Who does one kind of side work."""
    place = ("auxiliary", task)
    changes: Changes = {
        (*place, "provider"): REMOVED if provider in ("", "auto") else provider,
        (*place, "model"): model or REMOVED,
    }
    write_settings(config.home, changes)


def save_endpoint(config: Config, name: str, base_url: str, key_env: str = "") -> None:
    """An endpoint of one's own, under a name."""
    changes: Changes = {("providers", name, "base_url"): base_url}
    if key_env:
        changes["providers", name, "key_env"] = key_env
    write_settings(config.home, changes)


def _entry(each: FallbackSettings) -> JsonValue:
    fields = {name: getattr(each, name) for name in each.__struct_fields__}
    return {name: value for name, value in fields.items() if value}


def _write(config: Config, key: str) -> JsonValue:
    """What the file says; None when it says nothing."""
    found = config.explain(f"model.{key}")
    held = (SourcedValue(value=found.value, source=found.source), *found.shadows)
    return next((each.value for each in held if each.source.kind == "file"), None)


async def switch(session: Session, model: str, provider: str) -> None:
    """UsageError while a turn runs. When it fails, the session keeps its model."""
    if session.busy:
        raise UsageError("A turn is running; switch the model when it has ended, or stop it.")
    await session.send(SwitchModel(model=model, provider=provider))


async def switch_back(session: Session, events: Subscription, model: str, provider: str) -> None:
    """Wait for the end of the next turn. The turn after it, if one waits already, begins with the
    old model: nothing comes between the end of a turn and what follows here."""
    try:
        async for record in events:
            if isinstance(record.event, TurnEnded):
                await session.send(SwitchModel(model=model, provider=provider))
                return
    finally:
        events.close()
