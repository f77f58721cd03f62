"""The responses format: writes replies and checks requests."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject
from hermes.testing.steps import Failure
from hermes.testing.wires.checks import (
    Pairing,
    check_arguments,
    check_count,
    check_duplicates,
    check_id,
    check_list,
    check_name,
    check_request,
    check_signature,
    is_blank,
    objects,
)
from hermes.testing.wires.draft import Frame, ReplyDraft, describe_failure, sealer

PATH = "/responses"
CALL_PREFIX = "call_"
INCOMPLETE = {"length": "max_output_tokens", "filtered": "content_filter"}

Change = tuple[str, JsonObject]


def body(draft: ReplyDraft) -> JsonObject:
    return _finished_response(draft, list(_items(draft)))


def events(draft: ReplyDraft) -> Iterator[Frame]:
    for number, (kind, fields) in enumerate(_changes(draft)):
        yield kind, {"type": kind, "sequence_number": number, **fields}


def error_event(draft: ReplyDraft, failure: Failure, number: int) -> Frame:
    error = describe_failure(failure)
    failed = _envelope(draft, "failed") | {"error": {"code": error.code, "message": error.message}}
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
        made: JsonObject = {
            "id": f"fc_{draft.n}_{number}",
            "type": "function_call",
            "status": "incomplete" if step.stops == "length" else "completed",
            "name": call.name,
            "arguments": call.value if "object_arguments" in step.flaws else call.text,
        }
        yield made if call.id is None else made | {"call_id": call.id}


def _text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _item_changes(draft: ReplyDraft, item: JsonObject) -> Iterator[Change]:
    position: JsonObject = {"item_id": item["id"]}
    match item["type"]:
        case "reasoning":
            begun = {key: value for key, value in item.items() if key != "encrypted_content"}
            yield "response.output_item.added", {"item": begun | {"summary": []}}
            if text := draft.step.reasoning:
                position["summary_index"] = 0
                part = {"type": "summary_text", "text": ""}
                yield "response.reasoning_summary_part.added", position | {"part": part}
                for piece in draft.pieces(text):
                    yield "response.reasoning_summary_text.delta", position | {"delta": piece}
                yield "response.reasoning_summary_text.done", position | {"text": text}
                whole = part | {"text": text}
                yield "response.reasoning_summary_part.done", position | {"part": whole}
        case "message":
            begun = item | {"status": "in_progress", "content": []}
            yield "response.output_item.added", {"item": begun}
            position["content_index"] = 0
            yield "response.content_part.added", position | {"part": _text_part("")}
            for piece in draft.pieces(draft.step.text):
                yield "response.output_text.delta", position | {"delta": piece, "logprobs": []}
            text = draft.step.text
            yield "response.output_text.done", position | {"text": text, "logprobs": []}
            yield "response.content_part.done", position | {"part": _text_part(text)}
        case _:
            begun = item | {"status": "in_progress", "arguments": ""}
            yield "response.output_item.added", {"item": begun}
            arguments = item["arguments"]
            if isinstance(arguments, str):
                for piece in draft.pieces(arguments):
                    yield "response.function_call_arguments.delta", position | {"delta": piece}
            yield "response.function_call_arguments.done", position | {"arguments": arguments}
    yield "response.output_item.done", {"item": item}


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
    tools = objects(body.get("tools"))
    functions = [tool for tool in tools if tool.get("type") == "function"]
    yield from check_request(body, functions, "parameters")
    for at, tool in enumerate(tools):
        if not isinstance(tool.get("type"), str):
            yield f"tools[{at}]: a type is required"
    yield from check_count(body, "max_output_tokens", least=16)
    if not isinstance(body.get("instructions", ""), str | None):
        yield "instructions: must be a string"
    items = body.get("input")
    if isinstance(items, str) and items:
        return
    if problem := check_list(items, "input", "string or list"):
        yield problem
    else:
        yield from _conversation(objects(items), sealer("responses", str(body.get("model"))))


def _conversation(items: list[JsonObject], signer: str) -> Iterator[str]:
    pairing = Pairing()
    kinds = [item.get("type", "message") for item in items]
    for at, item in enumerate(items):
        where = f"input[{at}]"
        id, prefix = item.get("id"), ITEM_IDS.get(str(kinds[at]))
        if id is not None and prefix and not str(id).startswith(prefix):
            yield f"{where}.id: expected an id that begins with {prefix!r}, found {id!r}"
        match kinds[at]:
            case "message":
                yield from _message(item, where)
                if item.get("role") != "assistant":
                    yield from pairing.settle(where)
            case "function_call":
                yield from check_id(item.get("call_id"), f"{where}.call_id")
                if len(str(item.get("call_id"))) > 64:
                    yield f"{where}.call_id: at most 64 characters"
                yield from check_name(item.get("name"), f"{where}.name")
                yield from check_arguments(item.get("arguments"), where)
                pairing.call(item.get("call_id"))
            case "function_call_output":
                output = item.get("output")
                if not isinstance(output, str) and not (isinstance(output, list) and output):
                    yield f"{where}: output must be a string or a non-empty list of parts"
                yield from pairing.answer(item.get("call_id"), where)
            case "reasoning":
                yield from _reasoning(item, items[at + 1 : at + 2], where, signer)
            case unknown:
                yield f"{where}: unknown item type {unknown!r}"
    yield from pairing.settle("end of input")
    made = [item.get("call_id") for item in items if item.get("type") == "function_call"]
    yield from check_duplicates(made, "input: the call id")
    last = items[-1]
    if kinds[-1] != "function_call_output" and last.get("role") not in PARTS.keys() - {"assistant"}:
        yield "the last item is from the model: there is nothing to answer"


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
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in PARTS[role]:
            yield f"{where}: a {role} message cannot have a part of type {kind!r}"
        elif kind in ("input_text", "output_text") and is_blank(part.get("text")):
            yield f"{where}: a text part needs text"
        elif kind == "input_image" and not (part.get("image_url") or part.get("file_id")):
            yield f"{where}: an image part needs image_url"


def _reasoning(
    item: JsonObject, following: list[JsonObject], where: str, signer: str
) -> Iterator[str]:
    text = "".join(str(part.get("text")) for part in objects(item.get("summary")))
    yield from check_signature(item.get("encrypted_content"), text, signer, where)
    if not isinstance(item.get("summary"), list):
        yield f"{where}: reasoning needs a summary list"
    if "encrypted_content" in item and not item["encrypted_content"]:
        yield f"{where}: encrypted_content must not be empty"
    after = following[0] if following else {}
    produced = after.get("type") in ("function_call", "reasoning")
    if not produced and after.get("role") != "assistant":
        yield f"{where}: reasoning without the item that it led to"
