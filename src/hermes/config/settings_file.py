"""Changes single keys of config.yaml, keeps every other line, and migrates the file.

Positions come from the library's node tree; only the changed span is replaced. The result is
parsed again and compared with the wanted data. If they differ (anchors, keys removed from a
`{…}`), the library writes the whole document and keeps the comments it can.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue
from hermes.config.home import Home, replace_file
from hermes.config.migrations import (
    MIGRATIONS,
    VERSION_KEY,
    Changes,
    Migration,
    Removed,
    changes_between,
    migrate_document,
    newest_version,
    value_at,
    version_of,
)
from hermes.config.schema import KeyPath, format_key
from hermes.config.settings import SHORT_FORMS
from hermes.config.yaml_parser import BadYaml, compose_text, decode_text, parse_text
from hermes.core.errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_/.@+-]*(?::[A-Za-z0-9_/][A-Za-z0-9_/.@+-]*)*")
_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_UNPRINTABLE = re.compile(
    r"[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def block_lines(path: KeyPath, value: JsonValue, indent: int) -> list[str]:
    """Return the lines of a new key, including its missing parents."""
    margin = " " * indent
    if len(path) > 1:
        return [f"{margin}{scalar(path[0])}:", *block_lines(path[1:], value, indent + 2)]
    if isinstance(value, Mapping) and value:
        below = [line for name in value for line in block_lines((name,), value[name], indent + 2)]
        return [f"{margin}{scalar(path[0])}:", *below]
    return [f"{margin}{scalar(path[0])}: {flow(value)}"]


def flow_pair(path: KeyPath, value: JsonValue) -> str:
    inner = flow(value) if len(path) == 1 else "{" + flow_pair(path[1:], value) + "}"
    return f"{scalar(path[0])}: {inner}"


def flow(value: JsonValue) -> str:
    """Return a value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(flow_pair((name,), inner) for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return scalar(value)


def scalar(value: JsonValue) -> str:
    """Quote text unless it can only be read as text."""
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


def apply_changes(text: str, changes: Changes) -> str:
    """Set keys, or remove those whose value is REMOVED; raise BadYaml."""
    for path, value in changes.items():
        data = parse_text(text)
        wanted = _expected_data(data, path, value)
        if encode(wanted) == encode(data):
            continue
        for attempt in (_edit_in_place, _rewrite):
            result = attempt(text, path, value)
            if result is not None and _reads_as(result, wanted):
                text = result
                break
        else:
            raise BadYaml(f"{format_key(path)} cannot be changed in place; edit the file by hand")
    return text


def _expected_data(data: JsonObject, path: KeyPath, value: JsonValue) -> JsonObject:
    name, rest = path[0], path[1:]
    if rest:
        inner = data.get(name)
        if isinstance(value, Removed) and not isinstance(inner, dict):
            return data
        return {**data, name: _expected_data(inner if isinstance(inner, dict) else {}, rest, value)}
    if isinstance(value, Removed):
        return {own: inner for own, inner in data.items() if own != name}
    return {**data, name: value}


def _reads_as(text: str, wanted: JsonObject) -> bool:
    try:
        return encode(_normalise(parse_text(text))) == encode(_normalise(wanted))
    except BadYaml:
        return False


def _normalise(value: JsonValue) -> JsonValue:
    """Sort keys, and treat `a:` and an empty `a` as equal."""
    if isinstance(value, dict):
        return {name: _normalise(value[name]) for name in sorted(value)} or None
    return value


def _edit_in_place(text: str, path: KeyPath, value: JsonValue) -> str | None:
    root = compose_text(text)
    if root is None:
        gap = "" if not text or text.endswith("\n") else "\n"
        return text + gap + "\n".join(block_lines(path, value, 0)) + "\n"
    return _Editor(text).apply(root, path, value)


class _Editor:
    """Apply one change; None means that the text must be rewritten instead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def apply(self, node: Node, path: KeyPath, value: JsonValue) -> str | None:
        if not isinstance(node, MappingNode):
            return None
        pair = next((pair for pair in node.value if pair[0].value == path[0]), None)
        if pair is None:
            return None if isinstance(value, Removed) else self._insert(node, path, value)
        key, old = pair
        if len(path) > 1 and not _is_empty(old):
            return self.apply(old, path[1:], value)
        if len(path) > 1:
            if isinstance(value, Removed):
                return None
            # The first key below a bare `name:`; a comment on that line stays.
            lines = block_lines(path[1:], value, key.start_mark.column + 2)
            return self._with_lines(self._line_end(self._after_colon(key)), lines)
        if isinstance(value, Removed):
            return None if node.flow_style else self._remove(key, old)
        return self._replace(key, old, value)

    def _insert(self, node: MappingNode, path: KeyPath, value: JsonValue) -> str:
        if node.flow_style:
            end = node.end_mark.index - 1
            comma = ", " if node.value else ""
            return self._splice(end, end, comma + flow_pair(path, value))
        lines = block_lines(path, value, node.value[0][0].start_mark.column)
        return self._with_lines(self._line_end(_end(node)), lines)

    def _replace(self, key: Node, inner: Node, value: JsonValue) -> str:
        start, end = inner.start_mark.index, _end(inner)
        colon = self._after_colon(key)
        if _is_empty(inner):
            return self._splice(colon, colon, f" {flow(value)}")
        if "\n" in self._text[colon:start]:
            # The old value is on its own lines; the new one follows the colon.
            kept = self._text[colon:start].rstrip()
            return self._splice(colon, end, f" {flow(value)}{kept}")
        tail = self._newline if self._text[end - 1] == "\n" else ""
        return self._splice(start, end, flow(value) + tail)

    def _remove(self, key: Node, inner: Node) -> str:
        start = self._text.rfind("\n", 0, key.start_mark.index) + 1
        end = self._after_colon(key) if _is_empty(inner) else _end(inner)
        if self._text[end - 1] != "\n":
            end = min(self._line_end(end) + len(self._newline), len(self._text))
        return self._splice(start, end, "")

    def _after_colon(self, key: Node) -> int:
        return self._text.index(":", key.end_mark.index) + 1

    def _line_end(self, index: int) -> int:
        """Return the index before the next line break, or before the one at `index - 1`."""
        if self._text[index - 1] == "\n":
            index -= 1
        found = self._text.find("\n", index)
        index = len(self._text) if found < 0 else found
        return index - 1 if self._text[index - 1] == "\r" else index

    def _with_lines(self, at: int, lines: list[str]) -> str:
        return self._splice(at, at, "".join(self._newline + line for line in lines))

    def _splice(self, start: int, end: int, fresh: str) -> str:
        return self._text[:start] + fresh + self._text[end:]


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.start_mark.index == node.end_mark.index


def _end(node: Node) -> int:
    """Return the index after the last character of a value. The end mark of a block or an empty
    value is after its comments."""
    if isinstance(node, CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        key, inner = last if isinstance(last, tuple) else (last, last)
        return _end(key) if _is_empty(inner) else _end(inner)
    return int(node.end_mark.index)


def _rewrite(text: str, path: KeyPath, value: JsonValue) -> str:
    yaml: Any = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    data = yaml.load(text)
    node = data
    for name in path[:-1]:
        if not isinstance(node.get(name), dict):
            node[name] = {}
        node = node[name]
    if isinstance(value, Removed):
        node.pop(path[-1], None)
    else:
        node[path[-1]] = value
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


class SettingsFile:
    """The current file; raises ConfigError if it is invalid or of a newer version."""

    def __init__(self, home: Home, steps: Sequence[Migration] = MIGRATIONS) -> None:
        self._home = home
        self._steps = steps
        try:
            self._text = decode_text(home.config.read_bytes())
            self.data: JsonObject = parse_text(self._text)
        except FileNotFoundError:
            self._text, self.data = "", {}
        except BadYaml as error:
            raise ConfigError(
                f"config.yaml is invalid ({error}); fix it with `hermes config edit`."
            ) from error
        except OSError as error:
            raise ConfigError(
                f"Cannot read {home.config} ({error.strerror}); check its permissions."
            ) from error
        if version_of(self.data) > newest_version(steps):
            raise ConfigError(
                f"config.yaml has version {version_of(self.data)}, newer than this program; "
                "update Hermes first."
            )

    def write(self, changes: Changes) -> None:
        """Apply the changes. A new file gets a version."""
        if not self.data:
            changes = {(VERSION_KEY,): newest_version(self._steps), **changes}
        try:
            fresh = apply_changes(self._text, {**self._long_forms(changes), **changes})
        except BadYaml as error:
            raise ConfigError(f"{self._home.config}: {error}.") from error
        if fresh != self._text:
            replace_file(self._home, self._home.config, fresh.encode())

    def migrate(self) -> Changes:
        """Back up the file and migrate it to the newest version; return the changes."""
        changes = (
            changes_between(self.data, migrate_document(self.data, self._steps))
            if self.data
            else {}
        )
        if changes:
            config = self._home.config
            backup = config.with_name(f"{config.name}.bak.{version_of(self.data)}")
            replace_file(self._home, backup, self._text.encode())
            self.write(changes)
        return changes

    def _long_forms(self, changes: Changes) -> Changes:
        """Turn `model: NAME` into a mapping before another key of `model` is set."""
        long_forms: Changes = {}
        for key, inner in SHORT_FORMS.items():
            path = tuple(key.split("."))
            value = value_at(self.data, path)
            is_inside = any(len(each) > len(path) and each[: len(path)] == path for each in changes)
            if isinstance(value, str | int | float) and is_inside:
                long_forms[path] = {inner: value}
        return long_forms
