"""Checks responses requests."""

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
    "system": {"input_text"},
    "developer": {"input_text"},
    "user": {"input_text", "input_image", "input_file"},
    "assistant": {"output_text", "refusal"},
}
ITEM_IDS = {"message": "msg", "function_call": "fc", "reasoning": "rs"}


def find_problems(body: JsonObject, _headers: dict[str, str]) -> Iterator[str]:
    """All problems, in the order of the request."""
    yield from check_model(body)
    yield from check_count(body, "max_output_tokens", least=16)
    if not isinstance(body.get("instructions", ""), str | None):
        yield "instructions: must be a string"
    yield from check_tool_list(body)
    yield from _tools(objects(body.get("tools")))
    given = body.get("input")
    if isinstance(given, str) and given:
        return
    if not isinstance(given, list) or not given:
        yield "input: a non-empty string or list is required"
    elif not all(isinstance(item, dict) for item in given):
        yield "input: every entry must be an object"
    else:
        yield from _conversation(given)
        yield from _seals(given, sealer("responses", str(body.get("model"))))


def _tools(tools: list[JsonObject]) -> Iterator[str]:
    functions = [tool for tool in tools if tool.get("type") == "function"]
    for at, tool in enumerate(tools):
        if not isinstance(tool.get("type"), str):
            yield f"tools[{at}]: a type is required"
    for function in functions:
        yield from check_name(function.get("name"), "tools: name")
        yield from check_schema(function.get("parameters"), f"tools: {function.get('name')!r}")
    yield from check_duplicates([f.get("name") for f in functions], "tools: the name")


def _conversation(items: list[JsonObject]) -> Iterator[str]:
    pairing = Pairing()
    kinds = [item.get("type", "message") for item in items]
    for at, item in enumerate(items):
        where = f"input[{at}]"
        yield from _item_id(kinds[at], item, where)
        match kinds[at]:
            case "message":
                yield from _message(item, where)
                if item.get("role") != "assistant":
                    yield from pairing.settle(where)
            case "function_call":
                yield from _call(item, where)
                pairing.call(item.get("call_id"))
            case "function_call_output":
                yield from _output(item, where)
                yield from pairing.answer(item.get("call_id"), where)
            case "reasoning":
                yield from _reasoning(item, items[at + 1 : at + 2], where)
            case unknown:
                yield f"{where}: unknown item type {unknown!r}"
    yield from pairing.settle("end of input")
    yield from _call_ids(items)
    yield from _last(items[-1], kinds[-1])


def _item_id(kind: JsonValue, item: JsonObject, where: str) -> Iterator[str]:
    id, prefix = item.get("id"), ITEM_IDS.get(str(kind))
    if id is not None and prefix and not str(id).startswith(prefix):
        yield f"{where}.id: expected an id that begins with {prefix!r}, found {id!r}"


def _message(item: JsonObject, where: str) -> Iterator[str]:
    role = item.get("role")
    if not isinstance(role, str) or role not in PARTS:
        yield f"{where}: unknown role {role!r}"
        return
    content = item.get("content")
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield f"{where}: content must be a string or a non-empty list of parts"
        return
    for part in content:
        yield from _part(role, part, where)


def _part(role: str, part: JsonValue, where: str) -> Iterator[str]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in PARTS[role]:
        yield f"{where}: a {role} message cannot have a part of type {kind!r}"
    elif kind in ("input_text", "output_text") and is_blank(part.get("text")):
        yield f"{where}: a text part needs text"
    elif kind == "input_image" and not (part.get("image_url") or part.get("file_id")):
        yield f"{where}: an image part needs image_url"


def _call(item: JsonObject, where: str) -> Iterator[str]:
    yield from check_id(item.get("call_id"), f"{where}.call_id")
    if len(str(item.get("call_id"))) > 64:
        yield f"{where}.call_id: at most 64 characters"
    yield from check_name(item.get("name"), f"{where}.name")
    yield from check_arguments(item.get("arguments"), where)


def _output(item: JsonObject, where: str) -> Iterator[str]:
    output = item.get("output")
    if not isinstance(output, str) and not (isinstance(output, list) and output):
        yield f"{where}: output must be a string or a non-empty list of parts"


def _reasoning(item: JsonObject, following: list[JsonObject], where: str) -> Iterator[str]:
    if not isinstance(item.get("summary"), list):
        yield f"{where}: reasoning needs a summary list"
    if "encrypted_content" in item and not item["encrypted_content"]:
        yield f"{where}: encrypted_content must not be empty"
    after = following[0] if following else {}
    produced = after.get("type") in ("function_call", "reasoning")
    if not produced and after.get("role") != "assistant":
        yield f"{where}: reasoning without the item that it led to"


def _seals(items: list[JsonObject], by: str) -> Iterator[str]:
    for at, item in enumerate(items):
        if item.get("type") == "reasoning":
            text = "".join(str(part.get("text")) for part in objects(item.get("summary")))
            yield from check_signature(item.get("encrypted_content"), text, by, f"input[{at}]")


def _call_ids(items: list[JsonObject]) -> Iterator[str]:
    made = [item.get("call_id") for item in items if item.get("type") == "function_call"]
    yield from check_duplicates(made, "input: the call id")


def _last(item: JsonObject, kind: JsonValue) -> Iterator[str]:
    if kind != "function_call_output" and item.get("role") not in ("user", "system", "developer"):
        yield "the last item is from the model: there is nothing to answer"
