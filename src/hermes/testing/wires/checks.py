"""Checks shared by the wire formats. Each yields problems."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, JsonValue
from hermes.testing.wires.draft import SEAL, seal

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9_-]+")


def check_count(body: JsonObject, field: str, *, least: int = 1) -> Iterator[str]:
    """Check an optional whole number."""
    value = body.get(field)
    if value is not None and (not isinstance(value, int) or value < least):
        yield f"{field}: must be a whole number of at least {least}"


def check_request(body: JsonObject, tools: list[JsonObject], schema: str) -> Iterator[str]:
    """The model, the tool choice, and `tools`: the function declarations with their schemas."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: a non-empty string is required"
    declared = body.get("tools")
    if declared is None:
        if body.get("tool_choice") is not None:
            yield "tool_choice: only allowed together with tools"
    elif not isinstance(declared, list) or not declared:
        yield "tools: must be a non-empty list, or be left out"
    elif not all(isinstance(tool, dict) for tool in declared):
        yield "tools: every entry must be an object"
    for tool in tools:
        yield from check_name(tool.get("name"), "tools: name")
        parameters = tool.get(schema)
        if not isinstance(parameters, dict) or parameters.get("type") != "object":
            yield f"tools: {tool.get('name')!r}: a JSON Schema of type 'object' is required"
    yield from check_duplicates([tool.get("name") for tool in tools], "tools: the name")


def check_name(name: JsonValue, where: str) -> Iterator[str]:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"{where}: {name!r} is not a tool name ([a-zA-Z0-9_-], at most 64)"


def check_id(id: JsonValue, where: str) -> Iterator[str]:
    if not isinstance(id, str) or not id:
        yield f"{where}: a non-empty id is required"
    elif not ID.fullmatch(id):
        yield f"{where}: the id {id!r} may only contain [a-zA-Z0-9_-]"


def check_arguments(arguments: JsonValue, where: str) -> Iterator[str]:
    """Arguments are a string with a JSON object."""
    if not isinstance(arguments, str):
        yield f"{where}: arguments must be a string"
        return
    try:
        decode(dict[str, JsonValue], arguments)
    except DecodeError as error:
        yield f"{where}: arguments are not a JSON object: {error}"


def check_duplicates(names: list[JsonValue], what: str) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if isinstance(name, str) and name in seen:
            yield f"{what} {name!r} occurs twice"
        seen.add(str(name))


def check_signature(sealed: JsonValue, text: str, by: str, where: str) -> Iterator[str]:
    """A signature of the scripted server proves that the reasoning is unchanged and from the same
    model."""
    if isinstance(sealed, str) and sealed.startswith(SEAL) and sealed != seal(text, by):
        yield f"{where}: the signature does not match the reasoning, or is from another model"


def check_list(entries: JsonValue, name: str, kind: str = "list") -> str:
    """The problem of the conversation, if it is not a list of messages."""
    if not isinstance(entries, list) or not entries:
        return f"{name}: a non-empty {kind} is required"
    return "" if len(objects(entries)) == len(entries) else f"{name}: every entry must be an object"


def is_blank(text: JsonValue) -> bool:
    return not isinstance(text, str) or not text.strip()


def objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


class Pairing:
    """Tracks tool calls without a result."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self._answered: set[str] = set()

    def call(self, id: JsonValue) -> None:
        if isinstance(id, str):
            self.open.append(id)
            self._answered.discard(id)

    def answer(self, id: JsonValue, where: str) -> Iterator[str]:
        if id in self.open:
            self.open.remove(str(id))
            self._answered.add(str(id))
        elif id in self._answered:
            yield f"{where}: the tool call {id!r} is answered twice"
        else:
            yield f"{where}: the result {id!r} answers no tool call before it"

    def settle(self, where: str) -> Iterator[str]:
        """Report calls that have no result at this point."""
        for id in self.open:
            yield f"{where}: the tool call {id!r} has no result"
        self.open = []
        self._answered = set()
