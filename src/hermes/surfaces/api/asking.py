"""Splits the messages of a request into the new message, the history and the instructions."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value
from hermes.surfaces.api.bodies import ChatMessage
from hermes.surfaces.api.call import text_field
from hermes.surfaces.api.content import MAX_TEXT_CHARS, ClientMessage, parse_message
from hermes.surfaces.api.refusals import HttpError

SYSTEM = ("system", "developer")
ROLES = (*SYSTEM, "user", "assistant", "tool")


class ParsedInput(Value):
    """`now` is the message to answer, `before` the conversation so far."""

    now: ClientMessage
    before: tuple[ClientMessage, ...] = ()
    system: str = ""


def split_input(said: Iterable[ClientMessage], param: str, *, system: str = "") -> ParsedInput:
    """HttpError unless the last message is the user's."""
    told = list(said)
    words = [system, *(each.text for each in told if each.role in SYSTEM)]
    rest = [each for each in told if each.role not in SYSTEM]
    if not rest or rest[-1].role != "user":
        raise HttpError(
            400, "invalid_value", "The last message must have the role `user`.", param=param
        )
    if not rest[-1].text.strip() and not rest[-1].urls:
        raise HttpError(400, "invalid_value", "The last message is empty.", param=param)
    return ParsedInput(
        now=rest[-1], before=tuple(rest[:-1]), system="\n\n".join(word for word in words if word)
    )


def chat_messages(messages: Iterable[ChatMessage], param: str) -> list[ClientMessage]:
    found = []
    for message in messages:
        each = parse_message(message.role, message.content, param)
        for call in message.tool_calls or ():
            function = call.get("function")
            each = _with_call(each, function if isinstance(function, dict) else {})
        found.append(_result(each) if message.role in ("tool", "function") else each)
    return found


def input_items(given: str | list[JsonObject], param: str = "input") -> list[ClientMessage]:
    """The input items of a response or run. Tool calls and outputs become text: they ran elsewhere,
    or in a turn that the session already has."""
    if isinstance(given, str):
        return [parse_message("user", given, param)]
    found: list[ClientMessage] = []
    for item in given:
        match text_field(item, "type") or "message":
            case "message":
                found.append(_message(item, param))
            case "function_call":
                found.append(_with_call(ClientMessage(role="assistant", text=""), item))
            case "function_call_output":
                output = item.get("output", "")
                text = output if isinstance(output, str) else encode(output).decode()
                found.append(_result(parse_message("tool", text, param)))
            case "reasoning" | "image_generation_call":
                continue
            case kind:
                words = f"Items of type {kind!r} are not supported."
                raise HttpError(400, "unsupported_content_type", words, param=param)
    return found


def _message(item: JsonObject, param: str) -> ClientMessage:
    role = text_field(item, "role")
    if role not in ROLES:
        words = f"A message needs a role: {', '.join(ROLES)}."
        raise HttpError(400, "invalid_value", words, param=param)
    content = item.get("content")
    if not isinstance(content, str | list) or (
        isinstance(content, list) and not all(isinstance(part, dict) for part in content)
    ):
        words = "The content of a message is text or a list of parts."
        raise HttpError(400, "invalid_value", words, param=param)
    return parse_message(role, content, param)


def _with_call(said: ClientMessage, call: JsonObject) -> ClientMessage:
    words = f"[called {text_field(call, 'name')} with {text_field(call, 'arguments')}]"
    return ClientMessage(
        role=said.role, text=f"{said.text}\n{words}".strip()[:MAX_TEXT_CHARS], urls=said.urls
    )


def _result(said: ClientMessage) -> ClientMessage:
    return ClientMessage(role="tool", text=f"[result: {said.text}]", urls=said.urls)
