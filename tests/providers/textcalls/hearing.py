"""Asks the wrapper with a reply that is written in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    StopReason,
    Text,
    Usage,
    user_says,
)
from hermes.core.prompt import Delta, Prompt, ReasoningDelta, Reply, TextDelta
from hermes.providers.textcalls.provider import TextCallProvider
from tests.providers.asking import Heard, Listed, ask
from tests.providers.textcalls.forms import TOOLS

PROMPT = Prompt(system="", messages=(user_says("do it"),), tools=TOOLS)


def reply_of(text: str, *, thought: str = "", stop: StopReason = "done") -> Reply:
    parts: list[Any] = [Reasoning(text=thought)] if thought else []
    if text.strip():
        parts.append(Text(text=text))
    message = AssistantMessage(parts=tuple(parts), stop=stop)
    return Reply(message=message, usage=Usage(requests=1), model="m", provider="p")


async def hear(
    pieces: Iterable[str],
    *,
    style: str = "auto",
    thought: str = "",
    stop: StopReason = "done",
    prompt: Prompt = PROMPT,
) -> Heard:
    pieces = list(pieces)
    deltas: list[Delta | Reply] = [TextDelta(text=piece) for piece in pieces if piece]
    if thought:
        deltas.insert(0, ReasoningDelta(text=thought))
    reply = reply_of("".join(pieces), thought=thought, stop=stop)
    return await ask(TextCallProvider(Listed([*deltas, reply]), style), prompt)


def heard_now(pieces: Iterable[str], **how: Any) -> Heard:
    return asyncio.run(hear(pieces, **how))


def calls_in(heard: Heard) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in heard.whole.message.calls]


def texts_in(heard: Heard) -> list[str]:
    return [part.text for part in heard.whole.message.parts if isinstance(part, Text)]


def after(*messages: Message) -> Prompt:
    return Prompt(system="", messages=messages, tools=TOOLS)


def streamed(heard: Heard) -> Sequence[str]:
    return [delta.text for delta in heard.deltas if isinstance(delta, TextDelta)]
