"""Checks prompts before a provider repairs them."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.core.messages import AssistantMessage, ToolMessage, UserMessage
from hermes.core.prompt import Prompt


def find_problems(prompt: Prompt) -> Iterator[str]:
    """A conversation begins with the user, and results answer the calls directly before them, in
    the same order."""
    if not prompt.messages or not isinstance(prompt.messages[0], UserMessage):
        yield "the conversation does not begin with a user message"
    asked: tuple[str, ...] = ()
    for at, message in enumerate(prompt.messages):
        if isinstance(message, ToolMessage):
            answered = tuple(result.call_id for result in message.results)
            if answered != asked:
                yield f"messages[{at}]: results {answered} for the calls {asked}"
            asked = ()
            continue
        if asked:
            yield f"messages[{at}]: the calls {asked} have no results"
        asked = ()
        if isinstance(message, AssistantMessage):
            asked = tuple(call.id for call in message.calls)
    if asked:
        yield f"the calls {asked} have no results"
    names = [tool.name for tool in prompt.tools]
    for name in {name for name in names if names.count(name) > 1}:
        yield f"two tools are named {name!r}"
