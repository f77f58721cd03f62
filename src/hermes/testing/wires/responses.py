"""The responses format: writes replies and checks requests."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject, JsonValue
from hermes.testing.steps import Failure
from hermes.testing.wires.checks import (
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
from hermes.testing.wires.draft import DraftCall, Frame, ReplyDraft, describe_failure, sealer

INCOMPLETE = {"length": "max_output_tokens", "filtered": "content_filter"}

Change = tuple[str, JsonObject]


def body(draft: ReplyDraft) -> JsonObject:
    return _finished_response(draft, list(_items(draft)))


def events(draft: ReplyDraft) -> Iterator[Frame]:
    for number, (kind, fields) in enumerate(_changes(draft)):
        yield kind, {"type": kind, "sequence_number": number, **fields}


def error_event(draft: ReplyDraft, failure: Failure, number: int) -> Frame:
    told = describe_failure(failure)
    failed = _envelope(draft, "failed") | {"error": {"code": told.code, "message": told.message}}
    return "response.failed", {
        "type": "response.failed",
        "sequence_number": number,
        "response": failed,
    }


def _changes(draft: ReplyDraft) -> Iterator[Change]:
    opening = _envelope(draft, "in_progress")
    yield "response.created", {"response": opening}
    yield "response.in_progress", {"response": opening}
    items = list(_items(draft))
    for index, item in enumerate(items):
        for kind, fields in _item_changes(draft, item):
            yield kind, {"output_index": index, **fields}
    if "no_finish" not in draft.step.flaws:
        ended = _finished_response(draft, items)
        yield f"response.{ended['status']}", {"response": ended}


def _envelope(draft: ReplyDraft, status: str) -> JsonObject:
    return {
        "id": f"resp_{draft.n}",
        "object": "response",
        "created_at": draft.created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": draft.model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _finished_response(draft: ReplyDraft, items: list[JsonObject]) -> JsonObject:
    cause = draft.step.finish or INCOMPLETE.get(draft.step.stops)
    ended = _envelope(draft, "incomplete" if cause else "completed") | {"output": items}
    if cause:
        ended["incomplete_details"] = {"reason": cause}
    if draft.counts:
        ended["usage"] = _usage(draft)
    return ended


def _items(draft: ReplyDraft) -> Iterator[JsonObject]:
    step = draft.step
    if step.reasoning or draft.sealed:
        summary = [{"type": "summary_text", "text": step.reasoning}] if step.reasoning else []
        item = {"id": f"rs_{draft.n}", "type": "reasoning", "summary": summary}
        yield item | ({"encrypted_content": draft.sealed} if draft.sealed else {})
    if step.text:
        yield {
            "id": f"msg_{draft.n}",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [_text_part(step.text)],
        }
    for number, call in enumerate(draft.calls):
        yield _call_item(draft, number, call)


def _text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_item(draft: ReplyDraft, number: int, call: DraftCall) -> JsonObject:
    item: JsonObject = {
        "id": f"fc_{draft.n}_{number}",
        "type": "function_call",
        "status": "incomplete" if draft.step.stops == "length" else "completed",
        "name": call.name,
        "arguments": call.value if "object_arguments" in draft.step.flaws else call.text,
    }
    return item if call.id is None else item | {"call_id": call.id}


def _item_changes(draft: ReplyDraft, item: JsonObject) -> Iterator[Change]:
    match item["type"]:
        case "reasoning":
            yield "response.output_item.added", {"item": _bare(item, summary=[])}
            yield from _summary_changes(draft, item["id"])
        case "message":
            begun = item | {"status": "in_progress", "content": []}
            yield "response.output_item.added", {"item": begun}
            yield from _text_changes(draft, item["id"])
        case _:
            begun = item | {"status": "in_progress", "arguments": ""}
            yield "response.output_item.added", {"item": begun}
            yield from _argument_changes(draft, item)
    yield "response.output_item.done", {"item": item}


def _bare(item: JsonObject, **changed: object) -> JsonObject:
    return {key: value for key, value in item.items() if key != "encrypted_content"} | changed


def _summary_changes(draft: ReplyDraft, item_id: str) -> Iterator[Change]:
    text = draft.step.reasoning
    if not text:
        return
    place: JsonObject = {"item_id": item_id, "summary_index": 0}
    empty = {"part": {"type": "summary_text", "text": ""}}
    yield "response.reasoning_summary_part.added", place | empty
    for piece in draft.pieces(text):
        yield "response.reasoning_summary_text.delta", place | {"delta": piece}
    yield "response.reasoning_summary_text.done", place | {"text": text}
    whole = {"part": {"type": "summary_text", "text": text}}
    yield "response.reasoning_summary_part.done", place | whole


def _text_changes(draft: ReplyDraft, item_id: str) -> Iterator[Change]:
    text = draft.step.text
    place: JsonObject = {"item_id": item_id, "content_index": 0}
    yield "response.content_part.added", place | {"part": _text_part("")}
    for piece in draft.pieces(text):
        yield "response.output_text.delta", place | {"delta": piece, "logprobs": []}
    yield "response.output_text.done", place | {"text": text, "logprobs": []}
    yield "response.content_part.done", place | {"part": _text_part(text)}


def _argument_changes(draft: ReplyDraft, item: JsonObject) -> Iterator[Change]:
    place: JsonObject = {"item_id": item["id"]}
    if isinstance(item["arguments"], str):
        for piece in draft.pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", place | {"delta": piece}
    yield "response.function_call_arguments.done", place | {"arguments": item["arguments"]}


def _usage(draft: ReplyDraft) -> JsonObject:
    usage = draft.usage
    cached = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": cached,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.output,
    }


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
