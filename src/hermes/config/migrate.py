"""Migrates settings of older versions, as pure functions from one document to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.schema import KeyPath
from hermes.core.errors import ConfigError

VERSION_KEY = "_config_version"


class Migration(Value):
    """The step to version `to`. `change` may modify the document it gets, keeps unknown keys, and
    does nothing to a document that is already new."""

    to: int
    change: Callable[[JsonObject], JsonObject]


# In order of `to`, without gaps, from 2 upward.
MIGRATIONS: tuple[Migration, ...] = ()


def newest_version(steps: Sequence[Migration] = MIGRATIONS) -> int:
    return steps[-1].to if steps else 1


def version_of(document: JsonObject) -> int:
    """The version of a document; 1 if it names none."""
    version = document.get(VERSION_KEY)
    if isinstance(version, int) and not isinstance(version, bool) and version > 0:
        return version
    return 1


def migrate_document(document: JsonObject, steps: Sequence[Migration] = MIGRATIONS) -> JsonObject:
    """A copy of the document in the newest version; raises ConfigError if a step fails on it."""
    version = version_of(document)
    if version >= newest_version(steps):
        return document
    result = decode(JsonObject, encode(document))
    for step in steps:
        if step.to > version:
            result = _apply_step(step, result)
    return {**result, VERSION_KEY: newest_version(steps)}


def _apply_step(step: Migration, document: JsonObject) -> JsonObject:
    try:
        return step.change(document)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"config.yaml cannot be migrated to version {step.to} ({error!r}); correct it by hand."
        ) from error


class Removed(Value):
    """Marks a key to be removed."""


REMOVED = Removed()
Changes = dict[KeyPath, JsonValue]


def changes_between(old: JsonObject, new: JsonObject, before: KeyPath = ()) -> Changes:
    """The keys to set or remove (REMOVED) that turn `old` into `new`."""
    found: Changes = {}
    for name in {**old, **new}:
        path = (*before, name)
        was, becomes = old.get(name, REMOVED), new.get(name, REMOVED)
        if isinstance(was, dict) and isinstance(becomes, dict):
            found.update(changes_between(was, becomes, path))
        elif was != becomes or type(was) is not type(becomes):
            found[path] = becomes
    return found
