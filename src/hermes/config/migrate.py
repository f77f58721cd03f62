"""Brings the settings of older versions up to date, as pure steps from one document to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.schema import Path
from hermes.core.errors import ConfigError

VERSION_KEY = "_config_version"


class Migration(Value):
    """The step to version `to`. `change` gets a document of its own and may alter it; keys that
    it does not know stay as they are. Running it on a document that is new already is harmless."""

    to: int
    change: Callable[[JsonObject], JsonObject]


# In order of `to`, without gaps, from 2 upward.
MIGRATIONS: tuple[Migration, ...] = ()


def newest_version(steps: Sequence[Migration] = MIGRATIONS) -> int:
    return steps[-1].to if steps else 1


def version_of(document: JsonObject) -> int:
    """The version that a document says it has; one that says none is of the first."""
    said = document.get(VERSION_KEY)
    return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else 1


def migrated(document: JsonObject, steps: Sequence[Migration] = MIGRATIONS) -> JsonObject:
    """The document in the newest version; the given one is left alone. ConfigError when it holds
    something that a step cannot work with."""
    version = version_of(document)
    if version >= newest_version(steps):
        return document
    result = decode(JsonObject, encode(document))
    for step in steps:
        if step.to > version:
            result = _changed(step, result)
    return {**result, VERSION_KEY: newest_version(steps)}


def _changed(step: Migration, document: JsonObject) -> JsonObject:
    try:
        return step.change(document)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"config.yaml cannot be brought to version {step.to} ({error!r}); correct it by hand."
        ) from error


class Removed(Value):
    """Says that a key goes away."""


REMOVED = Removed()
Changes = dict[Path, JsonValue]


def changes_between(old: JsonObject, new: JsonObject, before: Path = ()) -> Changes:
    """What to set and what to remove (REMOVED) in order to come from the one to the other."""
    found: Changes = {}
    for name in {**old, **new}:
        path = (*before, name)
        was, becomes = old.get(name, REMOVED), new.get(name, REMOVED)
        if isinstance(was, dict) and isinstance(becomes, dict):
            found.update(changes_between(was, becomes, path))
        elif was != becomes or type(was) is not type(becomes):
            found[path] = becomes
    return found
