"""The chat completions format: writes replies and checks requests."""

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
from hermes.testing.wires.draft import DraftCall, Frame, ReplyDraft, openai_error, sealer

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
