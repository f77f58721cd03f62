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
    check_list,
    check_name,
    check_request,
    check_signature,
    is_blank,
    objects,
)
from hermes.testing.wires.draft import DraftCall, Frame, ReplyDraft, openai_error, sealer

PATH = "/chat/completions"
CALL_PREFIX = "call_"
FINISH = {"done": "stop", "calls": "tool_calls", "length": "length", "filtered": "content_filter"}


def body(draft: ReplyDraft) -> JsonObject:
    step = draft.step
    message: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    text = _shown_text(draft)
    if text or not draft.calls:
        message["content"] = text
    if step.reasoning and step.reasoning_form != "inline":
        message[step.reasoning_form] = step.reasoning
    if step.reasoning_form == "reasoning" and (step.reasoning or draft.sealed):
        message["reasoning_details"] = [_detail(step.reasoning, draft.sealed)]
    if draft.calls:
        message["tool_calls"] = [_whole_call(draft, call) for call in draft.calls]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": draft.finish(FINISH),
    }
    whole = _envelope(draft, "chat.completion") | {"choices": [choice]}
    return whole | {"usage": _usage(draft)} if draft.counts else whole


def events(draft: ReplyDraft) -> Iterator[Frame]:
    yield _delta(draft, {"role": "assistant", "content": ""})
    step = draft.step
    if step.reasoning_form != "inline":
        for piece in draft.pieces(step.reasoning):
            delta: JsonObject = {step.reasoning_form: piece}
            if step.reasoning_form == "reasoning":
                delta["reasoning_details"] = [_detail(piece, None)]
            yield _delta(draft, delta)
    if draft.sealed and step.reasoning_form == "reasoning":
        yield _delta(draft, {"reasoning_details": [_detail("", draft.sealed)]})
    for piece in draft.pieces(_shown_text(draft)):
        yield _delta(draft, {"content": piece})
    for index, call in enumerate(draft.calls):
        at = 0 if "same_index" in step.flaws else index
        for part in _call_pieces(draft, at, call):
            yield _delta(draft, {"tool_calls": [part]})
    if finish := draft.finish(FINISH):
        yield _delta(draft, {}, finish=finish)
    if draft.wants_usage and draft.counts:
        envelope = _envelope(draft, "chat.completion.chunk")
        yield "", envelope | {"choices": [], "usage": _usage(draft)}
    if "no_end" not in step.flaws:
        yield "", "[DONE]"


def error_event(_draft: ReplyDraft, failure: Failure, _number: int) -> Frame:
    return "", openai_error(failure)


def _shown_text(draft: ReplyDraft) -> str:
    step = draft.step
    if step.reasoning and step.reasoning_form == "inline":
        return f"<think>\n{step.reasoning}\n</think>\n\n{step.text}"
    return step.text


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


def _detail(text: str, signature: str | None) -> JsonObject:
    """The block in which aggregators send signed reasoning."""
    detail: JsonObject = {"type": "reasoning.text", "text": text, "index": 0}
    return detail | ({"signature": signature} if signature else {})


def _whole_call(draft: ReplyDraft, call: DraftCall) -> JsonObject:
    arguments = call.value if "object_arguments" in draft.step.flaws else call.text
    return _call(call, arguments)


def _call(call: DraftCall, arguments: JsonValue) -> JsonObject:
    function = {"name": call.name, "arguments": arguments}
    fields: JsonObject = {"type": "function", "function": function}
    return fields if call.id is None else {"id": call.id} | fields


def _call_pieces(draft: ReplyDraft, index: int, call: DraftCall) -> Iterator[JsonObject]:
    flaws, head = draft.step.flaws, {"index": index}
    if "object_arguments" in flaws:
        yield head | _whole_call(draft, call)
        return
    yield head | _call(call, "")
    for piece in draft.pieces(call.text):
        again = "resent_name" in flaws
        yield head | (_call(call, piece) if again else {"function": {"arguments": piece}})
    if "resent_arguments" in flaws:
        yield head | _call(call, call.text)


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
NO_PARAMETERS: JsonObject = {"type": "object"}


def find_problems(body: JsonObject, _headers: dict[str, str]) -> Iterator[str]:
    """All problems, in the order of the request. Beyond the vendors' own rules, user and assistant
    must alternate, because the templates of many open models require it."""
    tools = objects(body.get("tools"))
    functions = objects([tool.get("function") for tool in tools if tool.get("type") == "function"])
    yield from check_request(
        body, [{"parameters": NO_PARAMETERS} | f for f in functions], "parameters"
    )
    for at, tool in enumerate(tools):
        if tool.get("type") != "function" or not isinstance(tool.get("function"), dict):
            yield f"tools[{at}]: must be {{type: 'function', function: …}}"
    yield from check_count(body, "max_tokens")
    yield from check_count(body, "max_completion_tokens")
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        yield "max_tokens and max_completion_tokens cannot both be set"
    if body.get("stream_options") is not None and body.get("stream") is not True:
        yield "stream_options: only allowed when stream is true"
    messages = objects(body.get("messages"))
    if problem := check_list(body.get("messages"), "messages"):
        yield problem
    else:
        yield from _conversation(messages, sealer("chat", str(body.get("model"))))


def _conversation(messages: list[JsonObject], signer: str) -> Iterator[str]:
    pairing = Pairing()
    before = "nothing"
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        role = message.get("role")
        if not isinstance(role, str) or role not in PARTS:
            yield f"{where}: unknown role {role!r}"
            continue
        opening = before in ("nothing", "system", "developer")
        if role in ("system", "developer") and not opening:
            yield f"{where}: a {role} message is only allowed at the beginning"
        if role in ("assistant", "tool") and opening:
            yield f"{where}: the first message after the system text must be from the user"
        if role == before and role in ("user", "assistant"):
            yield f"{where}: two {role} messages in a row"
        yield from _content(role, message, where)
        if role == "tool":
            yield from pairing.answer(message.get("tool_call_id"), where)
        else:
            yield from pairing.settle(where)
        if role == "assistant":
            yield from _calls(message, pairing, where)
        # Aggregators send signed reasoning in separate blocks.
        for detail in objects(message.get("reasoning_details")):
            text = str(detail.get("text", ""))
            yield from check_signature(detail.get("signature"), text, signer, where)
        before = role
    yield from pairing.settle("end of messages")
    made = [call for message in messages for call in objects(message.get("tool_calls"))]
    yield from check_duplicates([call.get("id") for call in made], "messages: the call id")
    if before not in ("user", "tool"):
        yield f"the last message is from {before!r}: there is nothing to answer"


def _content(role: str, message: JsonObject, where: str) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        # A tool result may be empty, and a message may consist of calls only.
        if is_blank(content) and role != "tool" and not message.get("tool_calls"):
            yield f"{where}: content must not be empty"
    elif isinstance(content, list) and content:
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            if kind not in PARTS[role]:
                yield f"{where}: a {role} message cannot have a part of type {kind!r}"
            elif kind == "text" and is_blank(part.get("text")):
                yield f"{where}: a text part needs text"
            elif kind == "image_url":
                image = part.get("image_url")
                if not isinstance(image, dict) or not isinstance(image.get("url"), str):
                    yield f"{where}: an image part needs image_url.url"
    elif role != "assistant" or content is not None or not message.get("tool_calls"):
        yield f"{where}: content must be a string or a non-empty list of parts"


def _calls(message: JsonObject, pairing: Pairing, where: str) -> Iterator[str]:
    if "tool_calls" not in message:
        return
    made = objects(message["tool_calls"])
    if not made:
        yield f"{where}: tool_calls must be a non-empty list, or be left out"
    for number, call in enumerate(made):
        path = f"{where}.tool_calls[{number}]"
        function = call.get("function")
        yield from check_id(call.get("id"), path)
        if len(str(call.get("id"))) > MAX_ID:
            yield f"{path}: an id has at most {MAX_ID} characters"
        if call.get("type") != "function" or not isinstance(function, dict):
            yield f"{path}: must be {{id, type: 'function', function: …}}"
        else:
            yield from check_name(function.get("name"), f"{path}.function.name")
            yield from check_arguments(function.get("arguments"), f"{path}.function")
        pairing.call(call.get("id"))
