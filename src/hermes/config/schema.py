"""Reads settings classes as a schema, and converts data and text to the type of a setting."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct

from hermes.codec.json import DecodeError, convert, decode
from hermes.codec.values import JsonValue, Value, replace
from hermes.config.environment import TRUE_WORDS
from hermes.core.errors import UsageError

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]
# Bounds that keep sums of money and tokens exact.
Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]
Tokens = Annotated[int, Meta(ge=1, le=1_000_000_000_000_000)]
Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"]


KeyPath = tuple[str, ...]
# Placeholder in a path for a user-defined name.
ANY_NAME = "<name>"
_SEGMENT = r'"((?:[^"\\]|\\.)*)"|([^."]+)'


class Secret(Value):
    """Marks a setting whose value must be masked."""


SECRET = Secret()


class Setting(Value):
    """One key. `kind` includes the bounds of a number; `path` may contain ANY_NAME."""

    path: KeyPath
    kind: Any
    default: Any
    meaning: str
    secret: bool = False

    @property
    def key(self) -> str:
        return format_key(self.path)


def parse_key(key: str) -> KeyPath:
    """Parse `a.b."c.d"`; raise UsageError."""
    path: list[str] = []
    end = 0
    for match in re.finditer(_SEGMENT, key):
        if key[end : match.start()] != ("." if path else ""):
            break
        path.append(re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2])
        end = match.end()
    if end != len(key) or not path:
        raise UsageError(f"{key!r} is not a key; keys look like agent.max_turns.")
    return tuple(path)


def format_key(path: KeyPath) -> str:
    return ".".join(part if part and not {*part} & {*'."'} else _quote(part) for part in path)


def _quote(part: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", part) + '"'


def fields_of(section: type[Struct]) -> dict[str, Setting]:
    """Return the settings and sections directly inside a section, by name."""
    return {name: _field(section, name) for name in section.__struct_fields__}


def field_of(section: type[Struct], name: str) -> Setting | None:
    return _field(section, name) if name in section.__struct_fields__ else None


@lru_cache(maxsize=512)
def _field(section: type[Struct], name: str) -> Setting:
    # One annotation at a time: a start that reads three settings should not evaluate a hundred.
    alone = types.SimpleNamespace(__annotations__={name: section.__annotations__[name]})
    names = vars(sys.modules[section.__module__])
    for lazy, module in names.get("LAZY_SECTIONS", {}).items():
        if lazy in section.__annotations__[name]:
            names = {**names, lazy: getattr(import_module(module), lazy)}
    hint = get_type_hints(alone, globalns=names, include_extras=True)[name]
    default = getattr(section(), name)
    notes = hint.__metadata__ if get_origin(hint) is Annotated else ()
    meta = tuple(note for note in notes if isinstance(note, Meta))
    kind = hint if not notes else hint.__origin__
    return Setting(
        path=(name,),
        kind=Annotated[(kind, *meta)] if meta else kind,
        default=default,
        meaning=next((note for note in notes if isinstance(note, str)), ""),
        secret=any(isinstance(note, Secret) for note in notes),
    )


def is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def mapping_section(kind: Any) -> type[Struct] | None:
    """Return the section type of a `dict[str, Section]`."""
    if get_origin(kind) is dict and is_section(held := get_args(kind)[1]):
        return held  # type: ignore[no-any-return]
    return None


def all_settings(section: type[Struct], before: KeyPath = ()) -> Iterator[Setting]:
    """Yield every leaf below a section, depth first, in schema order."""
    for name, setting in fields_of(section).items():
        path = (*before, name)
        if is_section(setting.kind):
            yield from all_settings(setting.kind, path)
        elif held := mapping_section(setting.kind):
            yield from all_settings(held, (*path, ANY_NAME))
        else:
            yield replace(setting, path=path)


def find_setting(section: type[Struct], path: KeyPath) -> Setting | None:
    """Return the setting or section at a path, with its full path."""
    if not path or (setting := field_of(section, path[0])) is None:
        return None
    kind: Any = setting.kind
    rest = path[1:]
    if rest and (held := mapping_section(kind)) is not None:
        kind, rest = held, rest[1:]
        setting = Setting(path=(), kind=held, default=held(), meaning=setting.meaning)
    if not rest:
        return replace(setting, path=path)
    if not is_section(kind) or (found := find_setting(kind, rest)) is None:
        return None
    return replace(found, path=path)


def strip_bounds(kind: Any) -> tuple[Any, tuple[Meta, ...]]:
    if get_origin(kind) is Annotated:
        return kind.__origin__, tuple(note for note in kind.__metadata__ if isinstance(note, Meta))
    return kind, ()


def alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "null",
}


def describe_type(kind: Any) -> str:
    """Describe a type so that it completes "must be …"."""
    plain, metas = strip_bounds(kind)
    members = alternatives(plain)
    if len(members) > 1:
        return " or ".join(describe_type(member) for member in members)
    if get_origin(plain) is Literal:
        return "one of " + ", ".join(word or "''" for word in get_args(plain))
    if get_origin(plain) is tuple:
        return "a list of mappings" if is_section(get_args(plain)[0]) else "a list of text"
    described = _WORDS.get(plain, "a mapping")
    for meta in metas:
        words = (("from", meta.ge), ("above", meta.gt), ("up to", meta.le), ("below", meta.lt))
        described += "".join(f" {word} {bound:g}" for word, bound in words if bound is not None)
    return described


FALSE_WORDS = frozenset({"0", "false", "no", "off"})


class WrongType(ValueError):
    """The value has the wrong type; the message says what it must be."""


def from_data(kind: Any, value: JsonValue) -> Any:
    """Convert a value of YAML or JSON. Words for true and false are booleans; `false` for a choice
    means "off" or "none", whichever it offers."""
    members = _members(kind)
    if isinstance(value, str) and bool in members and str not in members:
        value = _parse_bool(value)
    if value is False or value in ("off", "disabled"):
        value = next((word for word in ("off", "none") if word in _choices(kind)), value)
    if isinstance(value, list) and tuple in _origins(kind):
        value = [item if isinstance(item, str) else _as_text(item) for item in value]
    try:
        return convert(kind, value)
    except DecodeError as error:
        raise WrongType(f"must be {describe_type(kind)}") from error


def from_text(kind: Any, text: str) -> Any:
    """Convert typed text: `40`, `true`, `null`, `a,b`, `["a", "b"]`, `{"a": 1}`."""
    members = _members(kind)
    if type(None) in members and text.strip().lower() in ("null", "none", "~"):
        return None
    if str in members or bool in members or _choices(kind):
        return from_data(kind, text)
    if tuple in _origins(kind) and text.lstrip()[:1] != "[":
        return from_data(kind, [part.strip() for part in text.split(",") if part.strip()])
    return from_data(kind, _as_json(text))


def guess_value(text: str) -> JsonValue:
    """Return the value of an unknown key: parsed as JSON if possible, else the text."""
    lowered = text.strip().lower()
    if lowered in ("true", "yes", "on"):
        return True
    if lowered in ("false", "no", "off"):
        return False
    return _as_json(text)


def _as_json(text: str) -> JsonValue:
    try:
        return decode(object, text.strip())
    except DecodeError:
        return text


def _parse_bool(word: str) -> bool | str:
    lowered = word.strip().lower()
    if lowered in TRUE_WORDS:
        return True
    return False if lowered in FALSE_WORDS else word


def _as_text(item: JsonValue) -> JsonValue:
    """Turn numbers in a list of text back into text: YAML reads `- 8080` as a number."""
    return str(item) if isinstance(item, int | float) and not isinstance(item, bool) else item


def _members(kind: Any) -> tuple[Any, ...]:
    return tuple(strip_bounds(member)[0] for member in alternatives(strip_bounds(kind)[0]))


def _origins(kind: Any) -> tuple[Any, ...]:
    return tuple(get_origin(member) for member in _members(kind))


def _choices(kind: Any) -> tuple[Any, ...]:
    return tuple(
        choice
        for member in _members(kind)
        if get_origin(member) is Literal
        for choice in get_args(member)
    )
