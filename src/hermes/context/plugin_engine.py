"""Runs context engines of plugins, with the built-in engine as fallback."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from hermes.codec.json import encode_sorted
from hermes.codec.values import JsonObject
from hermes.context.budget import messages_tokens
from hermes.context.engine import BuiltInEngine
from hermes.core.events import Compacted
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    user_says,
)
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.session_deps import CompactionRequest
from hermes.core.transcript import Transcript

OWN_WORDS = "hermes"


class InvalidConversation(ValueError):
    """A conversation that no model would accept."""


class PlainMessages:
    """A conversation as dicts. Unchanged dicts map back to the original messages; new ones have the
    origin of Hermes."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.dicts: list[JsonObject] = []
        self._known: dict[bytes, UserMessage | AssistantMessage | ToolResult] = {}
        for message in messages:
            for as_dict, whole in message_dicts(message):
                self.dicts.append(as_dict)
                self._known[encode_sorted(as_dict)] = whole

    def read(self, returned: object) -> tuple[Message, ...]:
        """Convert the dicts that a plugin returned. Raises InvalidConversation unless the list
        starts with a user, pairs calls with results and keeps the last message."""
        if not isinstance(returned, list) or not returned:
            raise InvalidConversation("no messages were returned")
        messages: list[Message] = []
        for each in map(self._read_one, returned):
            if not isinstance(each, ToolResult):
                messages.append(each)
            elif messages and isinstance(last := messages[-1], ToolMessage):
                messages[-1] = ToolMessage(results=(*last.results, each))
            else:
                messages.append(ToolMessage(results=(each,)))
        if not isinstance(messages[0], UserMessage):
            raise InvalidConversation("it does not begin with a user message")
        for before, after in zip(messages, (*messages[1:], None), strict=True):
            calls = before.calls if isinstance(before, AssistantMessage) else ()
            results = after.results if isinstance(after, ToolMessage) else ()
            if {call.id for call in calls} != {result.call_id for result in results}:
                missing = "a call lacks its result" if calls else "a result lacks its call"
                raise InvalidConversation(missing)
            if isinstance(before, AssistantMessage) and isinstance(after, AssistantMessage):
                raise InvalidConversation("two assistant messages in a row")
        if encode_sorted(returned[-1]) != encode_sorted(self.dicts[-1]):
            raise InvalidConversation("the newest message is missing")
        return tuple(messages)

    def _read_one(self, each: Any) -> UserMessage | AssistantMessage | ToolResult:
        try:
            known = self._known.get(encode_sorted(each))
        except TypeError as error:
            raise InvalidConversation(f"a message is not JSON ({error})") from error
        if known is not None:
            return known
        match each:
            case {"role": "user", "content": str() as text}:
                return user_says(text, origin=OWN_WORDS)
            case {"role": "assistant", "content": str() as text}:
                calls = tuple(_call(call) for call in each.get("tool_calls") or ())
                spoken = (Text(text=text),) if text else ()
                return AssistantMessage(parts=(*spoken, *calls))
            case {"role": "tool", "content": str() as text, "tool_call_id": str() as call_id}:
                name = str(each.get("name", ""))
                return ToolResult(call_id=call_id, name=name, parts=(Text(text=text),))
            case _:
                raise InvalidConversation("a message has no known role or no content")


def _call(call: Any) -> ToolCall:
    match call:
        case {"id": str() as id, "name": str() as name, "arguments": dict() as arguments}:
            return ToolCall(id=id, name=name, arguments=arguments)
        case _:
            raise InvalidConversation("a call cannot be read")


def message_dicts(
    message: Message,
) -> Iterator[tuple[JsonObject, UserMessage | AssistantMessage | ToolResult]]:
    """Yield a message as dicts with `role` and `content`, each with the part that it stands for.
    Assistants have `tool_calls`; each tool result is a dict with its `tool_call_id`."""
    match message:
        case UserMessage():
            yield {"role": "user", "content": message.text}, message
        case AssistantMessage():
            as_dict: JsonObject = {"role": "assistant", "content": message.text}
            if message.calls:
                as_dict["tool_calls"] = [
                    {"id": call.id, "name": call.name, "arguments": call.arguments}
                    for call in message.calls
                ]
            yield as_dict, message
        case ToolMessage():
            for result in message.results:
                answered: JsonObject = {"role": "tool", "content": result.text}
                yield answered | {"tool_call_id": result.call_id, "name": result.name}, result
        case _:
            assert_never(message)


log = logging.getLogger(__name__)

SECONDS = 60.0


class PluginEngine(ABC):
    """The interface for context engines of plugins. Messages are dicts with `role` and `content`,
    `tool_calls` of assistants and `tool_call_id` of results. The host updates the attributes."""

    name = ""
    last_prompt_tokens = 0
    last_completion_tokens = 0
    last_total_tokens = 0
    threshold_tokens = 0
    context_length = 0
    compression_count = 0

    @abstractmethod
    def update_from_response(self, usage: JsonObject) -> None:
        """Take note of the token usage of a reply. Called after each reply."""

    @abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool: ...

    @abstractmethod
    def compress(
        self,
        messages: list[JsonObject],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
    ) -> list[JsonObject]:
        """Return the messages to send instead. The newest message must stay last."""


class PluggedEngine:
    """A `ContextEngine` of a plugin. The built-in engine `own` takes over when the plugin fails or
    returns an invalid conversation."""

    def __init__(self, plugin: PluginEngine, own: BuiltInEngine, *, threshold: float) -> None:
        self._plugin = plugin
        self._own = own
        self._threshold = threshold
        self._reported_upto = 0

    def due(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        plugin = self._plugin
        try:
            self._report_usage(transcript, window)
            if plugin.should_compress(prompt_tokens=_size(transcript, prompt)):
                return True
            # Some engines inspect the messages before they are sent.
            early = getattr(plugin, "should_compress_preflight", None)
            return bool(callable(early) and early(PlainMessages(prompt.messages).dicts))
        except Exception:
            log.exception("context engine failed", extra={"engine": plugin.name})
            return self._own.due(transcript, prompt, window)

    def fits(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        return self._own.fits(transcript, prompt, window)

    async def compact(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest, meter: Meter
    ) -> Compacted | None:
        try:
            made = await self._compress(transcript, prompt, request)
        except Exception:
            log.exception("context engine failed", extra={"engine": self._plugin.name})
            return await self._own.compact(transcript, prompt, request, meter)
        if made is not None:
            self._plugin.compression_count += 1
        return made

    def preview(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest
    ) -> Compacted | None:
        return self._own.preview(transcript, prompt, request)

    async def _compress(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest
    ) -> Compacted | None:
        plain, before = PlainMessages(prompt.messages), _size(transcript, prompt)
        async with asyncio.timeout(SECONDS):
            returned: Any = await asyncio.to_thread(
                self._plugin.compress,
                [dict(each) for each in plain.dicts],
                current_tokens=before,
                focus_topic=request.topic or None,
            )
        head = plain.read(returned)
        saved = messages_tokens(prompt.messages) - messages_tokens(head)
        if saved <= 0:
            return None
        return Compacted(
            upto=len(transcript.messages),
            head=head,
            cause=request.cause,
            topic=request.topic,
            keep=request.keep,
            window=request.window,
            tokens_before=before,
            tokens_after=max(0, before - saved),
        )

    def _report_usage(self, transcript: Transcript, window: int) -> None:
        plugin = self._plugin
        plugin.context_length = window
        plugin.threshold_tokens = int(window * self._threshold)
        if transcript.measured and transcript.measured_upto != self._reported_upto:
            self._reported_upto = transcript.measured_upto
            usage: JsonObject = {
                "prompt_tokens": transcript.last_prompt,
                "completion_tokens": transcript.measured - transcript.last_prompt,
                "total_tokens": transcript.measured,
            }
            for name, tokens in usage.items():
                setattr(plugin, f"last_{name}", tokens)
            plugin.update_from_response(usage)


def _size(transcript: Transcript, prompt: Prompt) -> int:
    """Return the provider's last count plus an estimate of newer messages."""
    if not transcript.measured:
        return messages_tokens(prompt.messages)
    newer = transcript.messages[transcript.measured_upto :]
    return transcript.measured + messages_tokens(newer)
