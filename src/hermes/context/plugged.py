"""Runs context engines of plugins, with the built-in engine as fallback."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Any

from hermes.codec.values import JsonObject
from hermes.context.engine import BuiltInEngine
from hermes.context.plain import PlainMessages
from hermes.context.tokens import messages_tokens
from hermes.core.events import Compacted
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.transcript import Transcript
from hermes.core.turn import CompactionRequest

log = logging.getLogger(__name__)

SECONDS = 60.0


class PluginEngine(ABC):
    """The interface for plugins. Messages are dicts with `role` and `content`, `tool_calls` of
    assistants and `tool_call_id` of results. The host updates the attributes."""

    name = ""
    last_prompt_tokens = 0
    last_completion_tokens = 0
    last_total_tokens = 0
    threshold_tokens = 0
    context_length = 0
    compression_count = 0

    @abstractmethod
    def update_from_response(self, usage: JsonObject) -> None:
        """Called with the token usage of a reply."""

    @abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool: ...

    @abstractmethod
    def compress(
        self,
        messages: list[JsonObject],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
    ) -> list[JsonObject]:
        """Returns the messages to send instead. The newest message must stay last."""


class PluggedEngine:
    """`core.turn.ContextEngine`. The built-in engine `own` takes over when the plugin fails or
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
        self, transcript: Transcript, prompt: Prompt, occasion: CompactionRequest, meter: Meter
    ) -> Compacted | None:
        try:
            made = await self._compress(transcript, prompt, occasion)
        except Exception:
            log.exception("context engine failed", extra={"engine": self._plugin.name})
            return await self._own.compact(transcript, prompt, occasion, meter)
        if made is not None:
            self._plugin.compression_count += 1
        return made

    def preview(
        self, transcript: Transcript, prompt: Prompt, occasion: CompactionRequest
    ) -> Compacted | None:
        return self._own.preview(transcript, prompt, occasion)

    async def _compress(
        self, transcript: Transcript, prompt: Prompt, occasion: CompactionRequest
    ) -> Compacted | None:
        plain, before = PlainMessages(prompt.messages), _size(transcript, prompt)
        async with asyncio.timeout(SECONDS):
            given: Any = await asyncio.to_thread(
                self._plugin.compress,
                [dict(each) for each in plain.dicts],
                current_tokens=before,
                focus_topic=occasion.topic or None,
            )
        head = plain.read(given)
        saved = messages_tokens(prompt.messages) - messages_tokens(head)
        if saved <= 0:
            return None
        return Compacted(
            upto=len(transcript.messages),
            head=head,
            cause=occasion.cause,
            topic=occasion.topic,
            keep=occasion.keep,
            window=occasion.window,
            tokens_before=before,
            tokens_after=max(0, before - saved),
        )

    def _report_usage(self, transcript: Transcript, window: int) -> None:
        plugin = self._plugin
        plugin.context_length = window
        plugin.threshold_tokens = int(window * self._threshold)
        if transcript.measured and transcript.measured_upto != self._reported_upto:
            self._reported_upto = transcript.measured_upto
            output = transcript.measured - transcript.last_prompt
            plugin.last_prompt_tokens = transcript.last_prompt
            plugin.last_completion_tokens = output
            plugin.last_total_tokens = transcript.measured
            usage: JsonObject = {
                "prompt_tokens": transcript.last_prompt,
                "completion_tokens": output,
                "total_tokens": transcript.measured,
            }
            plugin.update_from_response(usage)


def _size(transcript: Transcript, prompt: Prompt) -> int:
    """Returns the provider's last count plus an estimate of newer messages."""
    if transcript.measured:
        return transcript.measured + messages_tokens(
            transcript.messages[transcript.measured_upto :]
        )
    return messages_tokens(prompt.messages)
