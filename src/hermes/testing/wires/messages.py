"""Writes a reply in the messages format."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject
from hermes.testing.steps import Failure
from hermes.testing.wires.draft import DraftCall, Frame, ReplyDraft
from hermes.testing.wires.errors import anthropic_error

FINISH = {"done": "end_turn", "calls": "tool_use", "length": "max_tokens", "filtered": "refusal"}


def body(draft: ReplyDraft) -> JsonObject:
    whole = _envelope(draft) | {"content": _blocks(draft), "stop_reason": _finish(draft)}
    return whole | {"usage": _usage(draft)} if draft.counts else whole


def events(draft: ReplyDraft) -> Iterator[Frame]:
    yield _event("message_start", message=_opening(draft))
    for index, block in enumerate(_streamed_blocks(draft)):
        for kind, fields in block:
            yield _event(kind, index=index, **fields)
    yield _message_delta(draft)
    if "no_end" not in draft.step.flaws:
        yield _event("message_stop")


def error_event(_draft: ReplyDraft, failure: Failure, _number: int) -> Frame:
    return "error", anthropic_error(failure)


def _event(kind: str, **fields: object) -> Frame:
    return kind, {"type": kind, **fields}


def _envelope(draft: ReplyDraft) -> JsonObject:
    return {
        "id": f"msg_{draft.n}",
        "type": "message",
        "role": "assistant",
        "model": draft.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _opening(draft: ReplyDraft) -> JsonObject:
    # The output count is only known at the end; vendors open with a token or two.
    opening = _envelope(draft)
    return opening | {"usage": _usage(draft) | {"output_tokens": 1}} if draft.counts else opening


def _message_delta(draft: ReplyDraft) -> Frame:
    delta = {"stop_reason": _finish(draft), "stop_sequence": None}
    usage = {"usage": {"output_tokens": draft.usage.output}} if draft.counts else {}
    return _event("message_delta", delta=delta, **usage)


def _finish(draft: ReplyDraft) -> str | None:
    if "no_finish" in draft.step.flaws:
        return None
    return draft.step.finish or FINISH.get(draft.step.stops)


def _blocks(draft: ReplyDraft) -> list[JsonObject]:
    step = draft.step
    blocks: list[JsonObject] = []
    if step.reasoning:
        thinking = {"type": "thinking", "thinking": step.reasoning}
        blocks.append(thinking | {"signature": draft.sealed or ""})
    elif draft.sealed:
        blocks.append({"type": "redacted_thinking", "data": draft.sealed})
    if step.text:
        blocks.append({"type": "text", "text": step.text})
    blocks.extend(_tool_use(call) | {"input": call.value} for call in draft.calls)
    return blocks


def _tool_use(call: DraftCall) -> JsonObject:
    block = {"type": "tool_use", "name": call.name, "input": {}}
    return block if call.id is None else {"id": call.id} | block


Change = tuple[str, JsonObject]


def _streamed_blocks(draft: ReplyDraft) -> Iterator[Iterator[Change]]:
    step = draft.step
    if step.reasoning:
        yield _thinking(draft)
    elif draft.sealed:
        yield _block({"type": "redacted_thinking", "data": draft.sealed}, ())
    if step.text:
        deltas = ({"type": "text_delta", "text": piece} for piece in draft.pieces(step.text))
        yield _block({"type": "text", "text": ""}, deltas)
    for call in draft.calls:
        yield _block(_tool_use(call), _argument_deltas(draft, call))


def _thinking(draft: ReplyDraft) -> Iterator[Change]:
    deltas: list[JsonObject] = [
        {"type": "thinking_delta", "thinking": piece}
        for piece in draft.pieces(draft.step.reasoning)
    ]
    if draft.sealed:
        deltas.append({"type": "signature_delta", "signature": draft.sealed})
    return _block({"type": "thinking", "thinking": "", "signature": ""}, deltas)


def _argument_deltas(draft: ReplyDraft, call: DraftCall) -> Iterator[JsonObject]:
    yield {"type": "input_json_delta", "partial_json": ""}
    if call.text != "{}":
        for piece in draft.pieces(call.text):
            yield {"type": "input_json_delta", "partial_json": piece}


def _block(
    start: JsonObject, deltas: Iterator[JsonObject] | list[JsonObject] | tuple[()]
) -> Iterator[Change]:
    yield "content_block_start", {"content_block": start}
    for delta in deltas:
        yield "content_block_delta", {"delta": delta}
    yield "content_block_stop", {}


def _usage(draft: ReplyDraft) -> JsonObject:
    usage = draft.usage
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
    }
