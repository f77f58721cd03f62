"""Replays the messages of a loaded session as updates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acp.helpers import (
    SessionUpdate,
    update_agent_message_text,
    update_agent_thought_text,
    update_user_message_text,
)

from hermes.core.events import ToolFinished
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.surfaces.acp.updates import UpdateEncoder


def history_updates(messages: Iterable[Message], teller: UpdateEncoder) -> Iterator[SessionUpdate]:
    for message in messages:
        match message:
            case UserMessage():
                yield update_user_message_text(message.text)
            case AssistantMessage(parts=parts):
                for part in parts:
                    match part:
                        case Text(text=text) if text:
                            yield update_agent_message_text(text)
                        case Reasoning(text=text) if text:
                            yield update_agent_thought_text(text)
                        case ToolCall():
                            yield teller.start_call(part)
                        case _:
                            pass
            case ToolMessage(results=results):
                for result in results:
                    yield from teller.encode(ToolFinished(result=result))
