"""Writes a reply in the chat completions format."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject, JsonValue
from hermes.testing.steps import Failure
from hermes.testing.wires.draft import DraftCall, Frame, ReplyDraft
from hermes.testing.wires.errors import openai_error

FINISH = {"done": "stop", "calls": "tool_calls", "length": "length", "filtered": "content_filter"}


def body(draft: ReplyDraft) -> JsonObject:
    step = draft.step
    message: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    text = _shown_text(draft)
    if text or not draft.calls:
        message["content"] = text
    if step.reasoning and step.reasoning_form != "inline":
        message[step.reasoning_form] = step.reasoning
    if details := _details(draft, step.reasoning):
        message["reasoning_details"] = details
    if draft.calls:
        message["tool_calls"] = [_whole_call(draft, call) for call in draft.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(draft)}
    whole = _envelope(draft, "chat.completion") | {"choices": [choice]}
    return whole | {"usage": _usage(draft)} if draft.counts else whole


def events(draft: ReplyDraft) -> Iterator[Frame]:
    yield _delta(draft, {"role": "assistant", "content": ""})
    yield from _reasoning(draft)
    for piece in draft.pieces(_shown_text(draft)):
        yield _delta(draft, {"content": piece})
    for index, call in enumerate(draft.calls):
        at = 0 if "same_index" in draft.step.flaws else index
        yield from _call_pieces(draft, at, call)
    if finish := _finish(draft):
        yield _delta(draft, {}, finish=finish)
    if draft.wants_usage and draft.counts:
        envelope = _envelope(draft, "chat.completion.chunk")
        yield "", envelope | {"choices": [], "usage": _usage(draft)}
    if "no_end" not in draft.step.flaws:
        yield "", "[DONE]"


def error_event(_draft: ReplyDraft, failure: Failure, _number: int) -> Frame:
    return "", openai_error(failure)


def _shown_text(draft: ReplyDraft) -> str:
    step = draft.step
    if step.reasoning and step.reasoning_form == "inline":
        return f"<think>\n{step.reasoning}\n</think>\n\n{step.text}"
    return step.text


def _finish(draft: ReplyDraft) -> str | None:
    if "no_finish" in draft.step.flaws:
        return None
    return draft.step.finish or FINISH.get(draft.step.stops)


def _envelope(draft: ReplyDraft, kind: str) -> JsonObject:
    return {
        "id": f"chatcmpl-{draft.n}",
        "object": kind,
        "created": draft.created,
        "model": draft.model,
        "system_fingerprint": None,
    }


def _delta(draft: ReplyDraft, delta: JsonObject, *, finish: str | None = None) -> Frame:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return "", _envelope(draft, "chat.completion.chunk") | {"choices": [choice]}


def _reasoning(draft: ReplyDraft) -> Iterator[Frame]:
    step = draft.step
    if step.reasoning_form == "inline":
        return
    for piece in draft.pieces(step.reasoning):
        delta: JsonObject = {step.reasoning_form: piece}
        if step.reasoning_form == "reasoning":
            delta["reasoning_details"] = [_detail(piece, None)]
        yield _delta(draft, delta)
    if draft.sealed and step.reasoning_form == "reasoning":
        yield _delta(draft, {"reasoning_details": [_detail("", draft.sealed)]})


def _details(draft: ReplyDraft, text: str) -> list[JsonObject]:
    if draft.step.reasoning_form != "reasoning" or not (text or draft.sealed):
        return []
    return [_detail(text, draft.sealed)]


def _detail(text: str, signature: str | None) -> JsonObject:
    """The block in which aggregators send signed reasoning."""
    detail: JsonObject = {"type": "reasoning.text", "text": text, "index": 0}
    return detail | ({"signature": signature} if signature else {})


def _arguments(draft: ReplyDraft, call: DraftCall) -> JsonValue:
    return call.value if "object_arguments" in draft.step.flaws else call.text


def _whole_call(draft: ReplyDraft, call: DraftCall) -> JsonObject:
    function = {"name": call.name, "arguments": _arguments(draft, call)}
    return _with_id(call, {"type": "function", "function": function})


def _with_id(call: DraftCall, fields: JsonObject) -> JsonObject:
    return fields if call.id is None else {"id": call.id} | fields


def _call_pieces(draft: ReplyDraft, index: int, call: DraftCall) -> Iterator[Frame]:
    flaws = draft.step.flaws
    if "object_arguments" in flaws:
        yield _call_delta(draft, {"index": index} | _whole_call(draft, call))
        return
    opening = {"name": call.name, "arguments": ""}
    head = _with_id(call, {"index": index, "type": "function", "function": opening})
    yield _call_delta(draft, head)
    for piece in draft.pieces(call.text):
        if "resent_name" in flaws:
            function = {"name": call.name, "arguments": piece}
            yield _call_delta(draft, head | {"function": function})
        else:
            yield _call_delta(draft, {"index": index, "function": {"arguments": piece}})
    if "resent_arguments" in flaws:
        function = {"name": call.name, "arguments": call.text}
        yield _call_delta(draft, head | {"function": function})


def _call_delta(draft: ReplyDraft, call: JsonObject) -> Frame:
    return _delta(draft, {"tool_calls": [call]})


def _usage(draft: ReplyDraft) -> JsonObject:
    usage = draft.usage
    counted: JsonObject = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
    return counted if draft.cost is None else counted | {"cost": draft.cost}
