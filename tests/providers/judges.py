"""Strict judges of request bodies, one per wire format, written without our encoders in mind."""

from __future__ import annotations

import json
import re
from typing import Any

ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def judge(wire: str, raw: bytes) -> dict[str, Any]:
    """The decoded body; AssertionError names what the vendor would refuse."""
    body: dict[str, Any] = json.loads(raw.decode("utf-8"))
    {"chat": _chat, "responses": _responses, "messages": _messages}[wire](body)
    return body


def _chat(body: dict[str, Any]) -> None:
    messages = list(body["messages"])
    if messages[0]["role"] in ("system", "developer"):
        assert messages.pop(0)["content"], "empty system text"
    assert messages, "nothing to answer"
    assert messages[0]["role"] == "user", "the first speaker is not the user"
    assert messages[-1]["role"] in ("user", "tool"), "the last speaker is the assistant"
    waiting: list[str] = []
    used: set[str] = set()
    before = ""
    for message in messages:
        role = message["role"]
        if role == "tool":
            assert message["tool_call_id"] in waiting, "a result without a call"
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting, f"unanswered calls {waiting}"
            assert role in ("user", "assistant"), role
            assert role != before, f"two {role} messages in a row"
        if role == "assistant":
            calls = message.get("tool_calls")
            assert calls or message["content"], "an empty assistant message"
            waiting = [_chat_call(call, used) for call in calls or []]
        elif role == "user":
            assert _has_content(message["content"]), "an empty user message"
        before = role
    assert not waiting, f"unanswered calls {waiting}"


def _chat_call(call: dict[str, Any], used: set[str]) -> str:
    assert call["type"] == "function"
    assert isinstance(json.loads(call["function"]["arguments"]), dict), "arguments are no object"
    return _identity(call["id"], call["function"]["name"], used)


def _has_content(content: Any) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return bool(content) and all(part["type"] != "text" or part["text"].strip() for part in content)


def _identity(id: str, name: str, used: set[str]) -> str:
    assert ID.fullmatch(id), f"id {id!r}"
    assert NAME.fullmatch(name), f"name {name!r}"
    assert id not in used, f"id {id!r} is used twice"
    used.add(id)
    return id


def _responses(body: dict[str, Any]) -> None:
    items = body["input"]
    assert items[0].get("role") == "user"
    assert items[-1].get("role") == "user" or items[-1]["type"] == "function_call_output"
    waiting: set[str] = set()
    used: set[str] = set()
    before = ""
    for item in items:
        kind = item["type"]
        if kind == "function_call_output":
            assert item["call_id"] in waiting, "an output without a call"
            waiting.remove(item["call_id"])
        elif kind == "function_call":
            waiting.add(_identity(item["call_id"], item["name"], used))
            assert isinstance(json.loads(item["arguments"]), dict)
        elif kind == "message":
            assert item["role"] in ("user", "assistant")
            assert item["role"] == "assistant" or not waiting, "words before the outputs"
            assert item["content"] and all(_item_part(part) for part in item["content"])
        else:
            assert kind == "reasoning" and item["encrypted_content"]
        if before == "reasoning":
            assert kind in ("reasoning", "function_call") or item.get("role") == "assistant"
        before = kind
    assert before != "reasoning" and not waiting


def _item_part(part: dict[str, Any]) -> bool:
    if part["type"] == "input_image":
        return bool(part["image_url"])
    assert part["type"] in ("input_text", "output_text")
    return bool(part["text"].strip())


def _messages(body: dict[str, Any]) -> None:
    assert body["max_tokens"] > 0
    assert sum(1 for _ in re.finditer(r'"cache_control":', json.dumps(body))) <= 4
    messages = body["messages"]
    assert messages[0]["role"] == "user" and messages[-1]["role"] == "user"
    used: set[str] = set()
    waiting: list[str] = []
    before = ""
    for message in messages:
        assert message["role"] != before, "two messages of one role in a row"
        before = message["role"]
        blocks = message["content"]
        assert blocks, "no content"
        kinds = [block["type"] for block in blocks]
        if before == "assistant":
            assert kinds[-1] not in ("thinking", "redacted_thinking"), "a thought at the end"
            uses = [block for block in blocks if block["type"] == "tool_use"]
            assert all(isinstance(block["input"], dict) for block in uses)
            waiting = [_identity(block["id"], block["name"], used) for block in uses]
        else:
            results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            assert sorted(results) == sorted(waiting), "results do not fit the calls"
            assert kinds[: len(results)] == ["tool_result"] * len(results), "results are not first"
            waiting = []
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        assert all(text.strip() for text in texts), "an empty text block"
    assert not waiting
