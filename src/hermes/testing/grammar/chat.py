"""Checks chat completions requests."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject, JsonValue
from hermes.testing.grammar.shape import (
    Pairing,
    check_arguments,
    check_count,
    check_duplicates,
    check_id,
    check_model,
    check_name,
    check_schema,
    check_signature,
    check_tool_list,
    is_blank,
    objects,
)
from hermes.testing.wires.draft import sealer

PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text", "image_url"},
}


MAX_ID = 40


def find_problems(body: JsonObject, _headers: dict[str, str]) -> Iterator[str]:
    """All problems, in the order of the request. Beyond the vendors' own rules, user and assistant
    must alternate, because the templates of many open models require it."""
    yield from check_model(body)
    yield from _options(body)
    yield from check_tool_list(body)
    yield from _tools(objects(body.get("tools")))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: a non-empty list is required"
    elif not all(isinstance(message, dict) for message in messages):
        yield "messages: every entry must be an object"
    else:
        yield from _conversation(messages)
        yield from _seals(messages, sealer("chat", str(body.get("model"))))


def _options(body: JsonObject) -> Iterator[str]:
    yield from check_count(body, "max_tokens")
    yield from check_count(body, "max_completion_tokens")
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        yield "max_tokens and max_completion_tokens cannot both be set"
    if body.get("stream_options") is not None and body.get("stream") is not True:
        yield "stream_options: only allowed when stream is true"


def _tools(tools: list[JsonObject]) -> Iterator[str]:
    functions: list[JsonObject] = []
    for at, tool in enumerate(tools):
        function = tool.get("function")
        if tool.get("type") != "function" or not isinstance(function, dict):
            yield f"tools[{at}]: must be {{type: 'function', function: …}}"
            continue
        functions.append(function)
        yield from check_name(function.get("name"), f"tools[{at}].function.name")
        if "parameters" in function:
            yield from check_schema(function["parameters"], f"tools[{at}].function.parameters")
    yield from check_duplicates([f.get("name") for f in functions], "tools: the name")


def _conversation(messages: list[JsonObject]) -> Iterator[str]:
    pairing = Pairing()
    before = "nothing"
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        role = message.get("role")
        if not isinstance(role, str) or role not in PARTS:
            yield f"{where}: unknown role {role!r}"
            continue
        yield from _order(role, before, where)
        yield from _content(role, message, where)
        if role == "tool":
            yield from pairing.answer(message.get("tool_call_id"), where)
        else:
            yield from pairing.settle(where)
        if role == "assistant":
            yield from _calls(message, pairing, where)
        before = role
    yield from pairing.settle("end of messages")
    made = [call for message in messages for call in objects(message.get("tool_calls"))]
    yield from check_duplicates([call.get("id") for call in made], "messages: the call id")
    if before not in ("user", "tool"):
        yield f"the last message is from {before!r}: there is nothing to answer"


def _order(role: str, before: str, where: str) -> Iterator[str]:
    opening = before in ("nothing", "system", "developer")
    if role in ("system", "developer") and not opening:
        yield f"{where}: a {role} message is only allowed at the beginning"
    if role in ("assistant", "tool") and opening:
        yield f"{where}: the first message after the system text must be from the user"
    if role == before and role in ("user", "assistant"):
        yield f"{where}: two {role} messages in a row"


def _content(role: str, message: JsonObject, where: str) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        # A tool result may be empty, and a message may consist of calls only.
        if is_blank(content) and role != "tool" and not message.get("tool_calls"):
            yield f"{where}: content must not be empty"
    elif isinstance(content, list) and content:
        for part in content:
            yield from _part(role, part, where)
    elif role != "assistant" or content is not None or not message.get("tool_calls"):
        yield f"{where}: content must be a string or a non-empty list of parts"


def _part(role: str, part: JsonValue, where: str) -> Iterator[str]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in PARTS[role]:
        yield f"{where}: a {role} message cannot have a part of type {kind!r}"
    elif kind == "text" and is_blank(part.get("text")):
        yield f"{where}: a text part needs text"
    elif kind == "image_url":
        image = part.get("image_url")
        if not isinstance(image, dict) or not isinstance(image.get("url"), str):
            yield f"{where}: an image part needs image_url.url"


def _calls(message: JsonObject, pairing: Pairing, where: str) -> Iterator[str]:
    if "tool_calls" not in message:
        return
    made = objects(message["tool_calls"])
    if not made:
        yield f"{where}: tool_calls must be a non-empty list, or be left out"
    for number, call in enumerate(made):
        place = f"{where}.tool_calls[{number}]"
        function = call.get("function")
        yield from check_id(call.get("id"), place)
        if len(str(call.get("id"))) > MAX_ID:
            yield f"{place}: an id has at most {MAX_ID} characters"
        if call.get("type") != "function" or not isinstance(function, dict):
            yield f"{place}: must be {{id, type: 'function', function: …}}"
        else:
            yield from check_name(function.get("name"), f"{place}.function.name")
            yield from check_arguments(function.get("arguments"), f"{place}.function")
        pairing.call(call.get("id"))


def _seals(messages: list[JsonObject], by: str) -> Iterator[str]:
    """Aggregators send signed reasoning in separate blocks."""
    for at, message in enumerate(messages):
        for detail in objects(message.get("reasoning_details")):
            text = str(detail.get("text", ""))
            yield from check_signature(detail.get("signature"), text, by, f"messages[{at}]")
