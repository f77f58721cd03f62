"""Writes a reply in the responses format."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject
from hermes.testing.steps import Failure
from hermes.testing.wires.draft import DraftCall, Frame, ReplyDraft
from hermes.testing.wires.errors import describe_failure

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
