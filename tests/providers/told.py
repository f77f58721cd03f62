"""What a model is told by a request: its turns, in one form for the three wires."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Literal, NamedTuple

from tests.providers.transcripts import Target


class Say(NamedTuple):
    text: str


class Call(NamedTuple):
    name: str
    arguments: Any


class Think(NamedTuple):
    seal: str


class Result(NamedTuple):
    text: str
    failed: bool


class Turn(NamedTuple):
    who: Literal["user", "model", "tools"]
    parts: tuple[Say | Call | Think | Result, ...]


def read(body: dict[str, Any], target: Target) -> list[Turn]:
    """Every turn that the request tells, but for the system text."""
    readers = {"chat": _chat, "responses": _responses, "messages": _messages}
    turns = _grouped(readers[target.wire](body))
    return [joined(printable(turn) if target.profile.ascii else turn) for turn in turns]


def _grouped(turns: list[Turn]) -> list[Turn]:
    """Parts of one turn may come as several messages."""
    done: list[Turn] = []
    for turn in turns:
        if done and done[-1].who == turn.who:
            done[-1] = Turn(turn.who, done[-1].parts + turn.parts)
        else:
            done.append(turn)
    return done


def _chat(body: dict[str, Any]) -> list[Turn]:
    turns: list[Turn] = []
    for message in body["messages"]:
        match message["role"]:
            case "user":
                turns.append(Turn("user", (Say(_content(message["content"])),)))
            case "tool":
                turns.append(Turn("tools", (Result(_content(message["content"]), False),)))
            case "assistant":
                turns.append(Turn("model", tuple(_chat_parts(message))))
    return turns


def _chat_parts(message: dict[str, Any]) -> list[Say | Call | Think]:
    parts: list[Say | Call | Think] = []
    if "reasoning_content" in message:
        parts.append(Think(message["reasoning_content"]))
    if "reasoning_details" in message:
        parts += [Think(detail["signature"]) for detail in message["reasoning_details"]]
    if message["content"] is not None:
        parts.append(Say(_content(message["content"])))
    for call in message.get("tool_calls", ()):
        function = call["function"]
        parts.append(Call(function["name"], json.loads(function["arguments"])))
    return parts


def _responses(body: dict[str, Any]) -> list[Turn]:
    return [_item(item) for item in body["input"]]


def _item(item: dict[str, Any]) -> Turn:
    match item["type"]:
        case "message" if item["role"] == "user":
            return Turn("user", (Say(_content(item["content"])),))
        case "message":
            return Turn("model", (Say(_content(item["content"])),))
        case "function_call":
            return Turn("model", (Call(item["name"], json.loads(item["arguments"])),))
        case "function_call_output":
            return Turn("tools", (Result(_content(item["output"]), False),))
        case "reasoning":
            return Turn("model", (Think(seal(item)),))
    raise AssertionError(item)


def _messages(body: dict[str, Any]) -> list[Turn]:
    turns: list[Turn] = []
    for message in body["messages"]:
        for block in message["content"]:
            kind = block["type"]
            if kind == "tool_result":
                failed = block.get("is_error", False)
                turns.append(Turn("tools", (Result(_content(block["content"]), failed),)))
            elif message["role"] == "user":
                turns.append(Turn("user", (Say(_content([block])),)))
            elif kind == "tool_use":
                turns.append(Turn("model", (Call(block["name"], block["input"]),)))
            elif kind == "text":
                turns.append(Turn("model", (Say(_content([block])),)))
            else:
                turns.append(Turn("model", (Think(seal(block)),)))
    return turns


def _content(content: Any) -> str:
    if isinstance(content, str):
        return squeezed(content)
    return "".join(_content_part(part) for part in content)


def _content_part(part: dict[str, Any]) -> str:
    match part["type"]:
        case "image_url":
            return _data_url(part["image_url"]["url"])
        case "input_image":
            return _data_url(part["image_url"])
        case "image":
            assert part["source"]["media_type"] == "image/png"
            return picture(base64.b64decode(part["source"]["data"]))
        case _:
            return squeezed(part["text"])


def _data_url(url: str) -> str:
    kind, data = url.removeprefix("data:").split(";base64,")
    assert kind == "image/png"
    return picture(base64.b64decode(data))


def seal(sealed: Any) -> str:
    for name in ("signature", "data", "encrypted_content", "reasoning_content"):
        if name in sealed:
            return str(sealed[name])
    raise AssertionError(sealed)


def printable(part: Any) -> Any:
    """Without control characters and what may stand in their place."""
    match part:
        case str():
            return re.sub("[\x00-\x1f\ufffd]", "", part)
        case list():
            return [printable(item) for item in part]
        case dict():
            return {printable(key): printable(item) for key, item in sorted(part.items())}
        case Turn(who=who, parts=parts):
            return Turn(who, tuple(printable(item) for item in parts))
        case tuple():
            return type(part)(*(printable(item) for item in part))
        case _:
            return part


def joined(turn: Turn) -> Turn:
    """What is said in one breath."""
    parts: list[Any] = []
    for part in turn.parts:
        if isinstance(part, Say) and parts and isinstance(parts[-1], Say):
            parts[-1] = Say(parts[-1].text + part.text)
        else:
            parts.append(part)
    return Turn(turn.who, tuple(parts))


def squeezed(text: str) -> str:
    return "".join(text.split())


def picture(data: bytes) -> str:
    return f"⟦{data.decode()}⟧"
