"""The messages format: writes replies and checks requests."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject, JsonValue
from hermes.testing.steps import Failure
from hermes.testing.wires.checks import (
    Pairing,
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
from hermes.testing.wires.draft import DraftCall, Frame, ReplyDraft, anthropic_error, sealer

PATH = "/v1/messages"
CALL_PREFIX = "toolu_"
FINISH = {"done": "end_turn", "calls": "tool_use", "length": "max_tokens", "filtered": "refusal"}


def body(draft: ReplyDraft) -> JsonObject:
    whole = _envelope(draft) | {"content": _blocks(draft), "stop_reason": draft.finish(FINISH)}
    return whole | {"usage": _usage(draft)} if draft.counts else whole


def events(draft: ReplyDraft) -> Iterator[Frame]:
    opening = _envelope(draft)
    if draft.counts:
        # The output count is only known at the end; vendors open with a token or two.
        opening["usage"] = _usage(draft) | {"output_tokens": 1}
    yield _event("message_start", message=opening)
    for index, (block, deltas) in enumerate(_streamed_blocks(draft)):
        yield _event("content_block_start", index=index, content_block=block)
        for part in deltas:
            yield _event("content_block_delta", index=index, delta=part)
        yield _event("content_block_stop", index=index)
    delta = {"stop_reason": draft.finish(FINISH), "stop_sequence": None}
    usage = {"usage": {"output_tokens": draft.usage.output}} if draft.counts else {}
    yield _event("message_delta", delta=delta, **usage)
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


def _streamed_blocks(draft: ReplyDraft) -> Iterator[tuple[JsonObject, list[JsonObject]]]:
    """The first form of each block, and the deltas that complete it."""
    step, pieces = draft.step, draft.pieces
    if step.reasoning:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(step.reasoning)]
        if draft.sealed:
            deltas.append({"type": "signature_delta", "signature": draft.sealed})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    elif draft.sealed:
        yield {"type": "redacted_thinking", "data": draft.sealed}, []
    if step.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(step.text)]
        yield {"type": "text", "text": ""}, deltas
    for call in draft.calls:
        parts = ["", *(pieces(call.text) if call.text != "{}" else ())]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        yield _tool_use(call), deltas


def _usage(draft: ReplyDraft) -> JsonObject:
    usage = draft.usage
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
    }


BLOCKS = {
    "user": {"text", "image", "document", "tool_result", "search_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}
THOUGHTS = ("thinking", "redacted_thinking")
MAX_CACHE_MARKS = 4


def find_problems(body: JsonObject, headers: dict[str, str]) -> Iterator[str]:
    """All problems, in the order of the request."""
    if "anthropic-version" not in headers:
        yield "anthropic-version: the header is required"
    tools = objects(body.get("tools"))
    own = [tool for tool in tools if tool.get("type", "custom") == "custom"]
    yield from check_request(body, own, "input_schema")
    if body.get("max_tokens") is None:
        yield "max_tokens: field required"
    yield from check_count(body, "max_tokens")
    yield from _system(body.get("system"))
    yield from _thinking_option(body)
    if _cache_marks(body) > MAX_CACHE_MARKS:
        yield f"at most {MAX_CACHE_MARKS} blocks may have cache_control"
    messages = objects(body.get("messages"))
    if problem := check_list(body.get("messages"), "messages"):
        yield problem
    else:
        yield from _conversation(messages, sealer("messages", str(body.get("model"))))
        yield from _thinking_goes_on(body, messages)


def _system(system: JsonValue) -> Iterator[str]:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        yield "system: must be a string or a list of text blocks"
        return
    for at, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text" or not block.get("text"):
            yield f"system[{at}]: must be a non-empty text block"


def _thinking_option(body: JsonObject) -> Iterator[str]:
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") == "disabled":
        return
    if body.get("temperature") not in (None, 1):
        yield "temperature: must be 1 or absent when thinking is on"
    if thinking.get("type") != "enabled":
        return
    budget, most = thinking.get("budget_tokens"), body.get("max_tokens")
    if not isinstance(budget, int) or budget < 1024:
        yield "thinking.budget_tokens: must be at least 1024"
    elif isinstance(most, int) and budget >= most:
        yield "thinking.budget_tokens: must be less than max_tokens"


def _cache_marks(node: JsonValue) -> int:
    """The cache marks on system blocks, tools, content blocks and results."""
    if isinstance(node, list):
        return sum(_cache_marks(item) for item in node)
    if not isinstance(node, dict):
        return 0
    inner = (node.get(key) for key in ("system", "tools", "messages", "content"))
    return ("cache_control" in node) + sum(_cache_marks(part) for part in inner)


def _conversation(messages: list[JsonObject], signer: str) -> Iterator[str]:
    pairing = Pairing()
    used: list[JsonValue] = []
    before: JsonValue = None
    for at, message in enumerate(messages):
        where = f"messages.{at}"
        role = message.get("role")
        if not isinstance(role, str) or role not in BLOCKS:
            yield f"{where}: unknown role {role!r}"
            continue
        if role == before:
            yield f"{where}: roles must alternate, but two {role} messages follow each other"
        if before is None and role != "user":
            yield f"{where}: the first message must be from the user"
        yield from _content(role, message.get("content"), where, signer)
        blocks = objects(message.get("content"))
        other_before = False
        for number, block in enumerate(blocks):
            if block.get("type") != "tool_result":
                other_before = True
                continue
            path = f"{where}.content.{number}"
            yield from pairing.answer(block.get("tool_use_id"), path)
            if other_before:
                yield f"{path}: tool results must come before all other content"
        yield from pairing.settle(where)
        for block in blocks:
            if block.get("type") == "tool_use":
                pairing.call(block.get("id"))
                used.append(block.get("id"))
        before = role
    yield from pairing.settle("end of messages")
    yield from check_duplicates(used, "messages: the tool_use id")
    if before == "assistant":
        yield "the last message is from 'assistant': there is nothing to answer"


def _content(role: str, content: JsonValue, where: str, signer: str) -> Iterator[str]:
    blocks = objects(content)
    if isinstance(content, str):
        if not content:
            yield f"{where}: content must not be empty"
    elif not blocks:
        yield f"{where}: content must be a string or a non-empty list of blocks"
    for number, block in enumerate(blocks):
        yield from _check_block(role, block, f"{where}.content.{number}", signer)
    if blocks and role == "assistant" and blocks[-1].get("type") in THOUGHTS:
        yield f"{where}: the last block must not be thinking"


def _check_block(role: str, block: JsonObject, where: str, signer: str) -> Iterator[str]:
    kind = block.get("type")
    if kind not in BLOCKS[role]:
        yield f"{where}: a {role} message cannot have a block of type {kind!r}"
    elif kind == "text" and is_blank(block.get("text")):
        yield f"{where}: text blocks must be non-empty"
    elif kind == "image" and not isinstance(block.get("source"), dict):
        yield f"{where}: an image needs a source"
    elif kind == "tool_use":
        yield from check_id(block.get("id"), f"{where}.id")
        yield from check_name(block.get("name"), f"{where}.name")
        if not isinstance(block.get("input"), dict):
            yield f"{where}.input: must be an object"
    elif kind == "thinking":
        text, signature = block.get("thinking"), block.get("signature")
        if not isinstance(text, str) or not isinstance(signature, str) or not signature:
            yield f"{where}: thinking needs its text and its signature"
        yield from check_signature(signature, str(text), signer, where)
    elif kind == "redacted_thinking" and not block.get("data"):
        yield f"{where}: redacted thinking needs its data"


def _thinking_goes_on(body: JsonObject, messages: list[JsonObject]) -> Iterator[str]:
    """Check that a message with unanswered calls begins with its thinking block, if there is a
    thinking budget."""
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled" or len(messages) < 2:
        return
    asked, answered = (objects(message.get("content")) for message in messages[-2:])
    in_between = any(block.get("type") == "tool_result" for block in answered)
    if in_between and asked and asked[0].get("type") not in THOUGHTS:
        yield "thinking: the last assistant message must start with a thinking block"
