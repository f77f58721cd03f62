"""Converts a conversation from elsewhere into the events of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from hermes.core.events import DurableEvent, MessageReceived, ReplyAdded, ToolFinished
from hermes.core.messages import AssistantMessage, Message, ToolMessage, Usage, UserMessage


def import_events(messages: Iterable[Message], model: str, provider: str) -> Iterator[DurableEvent]:
    """Replies are attributed to this model, at no cost."""
    for message in messages:
        match message:
            case UserMessage():
                yield MessageReceived(message=message, past=True)
            case AssistantMessage():
                yield ReplyAdded(message=message, usage=Usage(), model=model, provider=provider)
            case ToolMessage():
                yield from (ToolFinished(result=each) for each in message.results)
            case _:
                assert_never(message)
