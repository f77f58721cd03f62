"""Writes plain data as YAML for a settings file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes.codec.json import encode
from hermes.codec.values import JsonValue
from hermes.config.schema import KeyPath

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_/.@+-]*(?::[A-Za-z0-9_/][A-Za-z0-9_/.@+-]*)*")
_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_UNPRINTABLE = re.compile(
    r"[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def block_lines(path: KeyPath, value: JsonValue, indent: int) -> list[str]:
    """The lines of a new key, including its missing parents."""
    margin = " " * indent
    if len(path) > 1:
        return [f"{margin}{scalar(path[0])}:", *block_lines(path[1:], value, indent + 2)]
    if isinstance(value, Mapping) and value:
        below = [line for name in value for line in block_lines((name,), value[name], indent + 2)]
        return [f"{margin}{scalar(path[0])}:", *below]
    return [f"{margin}{scalar(path[0])}: {flow(value)}"]


def flow_pair(path: KeyPath, value: JsonValue) -> str:
    held = flow(value) if len(path) == 1 else "{" + flow_pair(path[1:], value) + "}"
    return f"{scalar(path[0])}: {held}"


def flow(value: JsonValue) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(flow_pair((name,), held) for name, held in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return scalar(value)


def scalar(value: JsonValue) -> str:
    """Quotes text unless it can only be read as text."""
    if not isinstance(value, str):
        return encode(value).decode()
    if _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _UNPRINTABLE.sub(lambda found: _escape(ord(found[0])), escaped) + '"'


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
