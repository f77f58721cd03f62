"""A request to the scripted server, and its conversation in one form for all wire formats."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.testing.wires.table import WireName

Role = Literal["system", "user", "assistant", "tool"]


class RequestCall(Value):
    id: str
    name: str
    arguments: str


class RequestMessage(Value):
    """A message in a model request."""

    role: Role
    text: str = ""
    calls: tuple[RequestCall, ...] = ()
    # The tool call that a tool result answers.
    call_id: str = ""


def parse_messages(wire: str, body: JsonObject) -> Iterator[RequestMessage]:
    """Lenient: entries that do not fit the wire format are skipped."""
    messages, items = _objects(body.get("messages")), body.get("input")
    if wire == "chat":
        yield from (parsed for message in messages for parsed in _chat(message))
        return
    if system := _text(body.get("system" if wire == "messages" else "instructions")):
        yield RequestMessage(role="system", text=system)
    if wire == "messages":
        yield from (parsed for message in messages for parsed in _messages(message))
        return
    if isinstance(items, str):
        yield RequestMessage(role="user", text=items)
    yield from (parsed for item in _objects(items) for parsed in _responses(item))


def _chat(message: JsonObject) -> Iterator[RequestMessage]:
    text = _text(message.get("content"))
    match message.get("role"):
        case "system" | "developer":
            yield RequestMessage(role="system", text=text)
        case "user":
            yield RequestMessage(role="user", text=text)
        case "assistant":
            made: list[RequestCall] = []
            for call in _objects(message.get("tool_calls")):
                function = call.get("function")
                held: JsonObject = function if isinstance(function, dict) else {}
                made.append(_call(call.get("id"), held.get("name"), held.get("arguments")))
            yield RequestMessage(role="assistant", text=text, calls=tuple(made))
        case "tool":
            answered = str(message.get("tool_call_id", ""))
            yield RequestMessage(role="tool", text=text, call_id=answered)


def _messages(message: JsonObject) -> Iterator[RequestMessage]:
    content = message.get("content")
    blocks, text = list(_objects(content)), _text(content)
    if message.get("role") == "assistant":
        made = tuple(
            _call(block.get("id"), block.get("name"), block.get("input"))
            for block in blocks
            if block.get("type") == "tool_use"
        )
        yield RequestMessage(role="assistant", text=text, calls=made)
        return
    for block in blocks:
        if block.get("type") == "tool_result":
            answered = str(block.get("tool_use_id", ""))
            yield RequestMessage(role="tool", text=_text(block.get("content")), call_id=answered)
    if text:
        yield RequestMessage(role="user", text=text)


def _responses(item: JsonObject) -> Iterator[RequestMessage]:
    match item.get("type", "message"):
        case "message":
            role, text = item.get("role"), _text(item.get("content"))
            if role == "assistant" or role == "user":
                yield RequestMessage(role=role, text=text)
            else:
                yield RequestMessage(role="system", text=text)
        case "function_call":
            made = _call(item.get("call_id"), item.get("name"), item.get("arguments"))
            yield RequestMessage(role="assistant", calls=(made,))
        case "function_call_output":
            answered = str(item.get("call_id", ""))
            yield RequestMessage(role="tool", text=_text(item.get("output")), call_id=answered)


def _call(id: JsonValue, name: JsonValue, arguments: JsonValue) -> RequestCall:
    text = arguments if isinstance(arguments, str) else encode(arguments).decode()
    return RequestCall(id=str(id or ""), name=str(name or ""), arguments=text)


def _objects(value: JsonValue) -> Iterator[JsonObject]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def _text(content: JsonValue) -> str:
    """The text of a string or of the text parts of a list."""
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in _objects(content))
    return "".join(text for text in texts if isinstance(text, str))


class Request(Value, dict=True):
    """A request that the server received."""

    # Counts from 1.
    n: int
    method: str
    path: str
    # The names are in lower case.
    headers: dict[str, str]
    # The exact body.
    raw: bytes
    # The time of the server's clock.
    at: float
    wire: WireName | None = None
    # {} if the body is not a JSON object.
    body: JsonObject = {}

    @property
    def stream(self) -> bool:
        return self.body.get("stream") is True

    @property
    def model(self) -> str:
        model = self.body.get("model")
        return model if isinstance(model, str) else ""

    # Cached: scripts and tests read it often, and long conversations are slow to parse.
    @cached_property
    def messages(self) -> tuple[RequestMessage, ...]:
        """The conversation in one form for every wire format, system text first."""
        return tuple(parse_messages(self.wire, self.body)) if self.wire else ()

    @property
    def last_text(self) -> str:
        """The newest user text or tool result."""
        return next((message.text for message in reversed(self.messages) if message.text), "")

    @property
    def results(self) -> tuple[RequestMessage, ...]:
        """The tool results since the last reply of the model, in order."""
        newest: list[RequestMessage] = []
        for message in reversed(self.messages):
            if message.role == "assistant":
                break
            if message.role == "tool":
                newest.append(message)
        return tuple(reversed(newest))

    @property
    def tools(self) -> tuple[str, ...]:
        offered = self.body.get("tools") or []
        return tuple(tool.get("function", tool).get("name", "") for tool in offered)


class Violation(Value):
    """A request that its wire format forbids or that has no step. `n` is the number of the
    request."""

    n: int
    wire: WireName
    reason: str
