"""Encodes prompts and decodes replies of the Anthropic messages API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from hermes.codec.json import encode_sorted
from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import (
    AssistantMessage,
    Message,
    StopReason,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.core.prompt import Delta, Prompt
from hermes.net.sse import SseEvent
from hermes.providers.endpoint import Endpoint
from hermes.providers.failures import classify_event, malformed_response
from hermes.providers.normalization import clean_text
from hermes.providers.wire.events import (
    MISMATCH,
    event_objects,
    object_of,
    objects_of,
    text_of,
)
from hermes.providers.wire.format import (
    PART_END,
    REASONING_TYPES,
    ReplyReader,
    WireFormat,
    cache_mark,
)
from hermes.providers.wire.reply_builder import CallBuilder, ReasoningBuilder, ReplyBuilder
from hermes.providers.wire.usage import messages_usage
from hermes.providers.wire.vendor_fields import ANSWER_TOKENS, reasoning_budget, tool_schema

_STOPS: dict[str, StopReason] = {
    "end_turn": "done",
    "stop_sequence": "done",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
    # The server asks for a follow-up request that contains the reply so far.
    "pause_turn": "length",
}


class _Text(msgspec.Struct, gc=False):
    type: Literal["text_delta"]
    text: str


class _TextDelta(msgspec.Struct, gc=False):
    type: Literal["content_block_delta"]
    delta: _Text


_decode_text = msgspec.json.Decoder(_TextDelta).decode


class MessagesReader(ReplyReader):
    def __init__(self, endpoint: Endpoint, builder: ReplyBuilder) -> None:
        super().__init__(endpoint, builder)
        self._counts: JsonObject = {}
        self._blocks: dict[str, CallBuilder | ReasoningBuilder] = {}
        self._signatures: dict[str, str] = {}

    def plain_text(self, event: SseEvent) -> str | None:
        try:
            return _decode_text(event.data).delta.text
        except MISMATCH:
            return None

    def feed(self, event: SseEvent) -> Iterator[Delta]:
        for document in event_objects(event):
            yield from self._event(text_of(document.get("type")) or event.name, document)

    def read(self, body: JsonObject) -> Iterator[Delta]:
        if error := body.get("error"):
            raise classify_event(self._endpoint, error)
        if not isinstance(body.get("content"), list):
            raise malformed_response(self._endpoint, "the reply has no content")
        self._begin(body)
        for index, block in enumerate(objects_of(body.get("content"))):
            yield from self._start(str(index), block)
            yield from self._close(str(index))
        self._finish(body)
        self.ended = True

    def _event(self, kind: str, event: JsonObject) -> Iterator[Delta]:
        index = str(event.get("index"))
        match kind:
            case "content_block_delta":
                yield from self._delta(index, object_of(event.get("delta")))
            case "content_block_start":
                yield from self._start(index, object_of(event.get("content_block")))
            case "content_block_stop":
                yield from self._close(index)
            case "message_start":
                self._begin(object_of(event.get("message")))
            case "message_delta":
                self._count(event.get("usage"))
                self._finish(object_of(event.get("delta")))
            case "message_stop":
                self.ended = self.closed = True
            case "error":
                raise classify_event(self._endpoint, event.get("error") or event)

    def _begin(self, message: JsonObject) -> None:
        self.model = text_of(message.get("model"))
        self._count(message.get("usage"))

    def _count(self, usage: JsonValue) -> None:
        """Merge token counts. Later counts are totals and replace earlier ones; null is ignored."""
        counts = object_of(usage)
        self._counts |= {name: value for name, value in counts.items() if value is not None}
        self.usage = messages_usage(self._counts)

    def _start(self, index: str, block: JsonObject) -> Iterator[Delta]:
        match block.get("type"):
            case "text":
                yield from self.builder.add_text(text_of(block.get("text")))
            case "thinking":
                self._blocks[index] = self.builder.add_reasoning_part()
                self._signatures[index] = text_of(block.get("signature"))
                yield from self.builder.add_reasoning(text_of(block.get("thinking")))
            case "redacted_thinking":
                self.builder.add_reasoning_part().sealed = block
            case "tool_use":
                yield from self.builder.flush()
                call = self.builder.add_call(text_of(block.get("id")), text_of(block.get("name")))
                self._blocks[index] = call
                arguments = block.get("input")
                if isinstance(arguments, dict) and arguments:
                    call.parsed_arguments = arguments
                elif isinstance(arguments, str):
                    call.append(arguments)
                yield from self.builder.announce(call)

    def _delta(self, index: str, delta: JsonObject) -> Iterator[Delta]:
        block = self._blocks.get(index)
        match delta.get("type"):
            case "text_delta":
                yield from self.builder.add_text(text_of(delta.get("text")))
            case "thinking_delta":
                yield from self.builder.add_reasoning(text_of(delta.get("thinking")))
            case "signature_delta":
                signature = self._signatures.get(index, "") + text_of(delta.get("signature"))
                self._signatures[index] = signature
            case "input_json_delta" if isinstance(block, CallBuilder):
                piece = delta.get("partial_json")
                if isinstance(piece, dict):
                    block.parsed_arguments = piece
                elif isinstance(piece, str) and piece:
                    block.parsed_arguments = None
                    block.append(piece)

    def _close(self, index: str) -> Iterator[Delta]:
        """End a block. Reasoning without a signature cannot be sent back."""
        block = self._blocks.get(index)
        signature = self._signatures.get(index, "")
        if isinstance(block, ReasoningBuilder) and signature:
            thinking = "".join(block.pieces)
            block.sealed = {"type": "thinking", "thinking": thinking, "signature": signature}
        yield from self.builder.flush()

    def _finish(self, delta: JsonObject) -> None:
        if reason := text_of(delta.get("stop_reason")):
            self._stop = _STOPS.get(reason, "done")
            self.ended = True


_OUTPUT = 8_192
"""Output limit when neither prompt nor profile has one."""
_LEAST_OUTPUT = 1_024
_PREDICT_VERSION = "vertex-2023-10-16"
"""The version of this format on Vertex AI, which is a field there."""

_USER = b'{"role":"user","content":['
_END = b"]}"


class MessagesWire(WireFormat):
    reader_type = MessagesReader
    mark_end = PART_END

    @property
    def url(self) -> str:
        start = self._endpoint.url.rstrip("/")
        if self._profile.predict:
            method = "streamRawPredict" if self._profile.streams else "rawPredict"
            return f"{start}/{self._endpoint.model.rpartition('/')[2]}:{method}"
        return f"{start}/messages" if start.endswith("/v1") else f"{start}/v1/messages"

    def _opening(self, prompt: Prompt) -> bytes:
        fields: JsonObject = {"model": self._endpoint.model}
        if self._profile.predict:
            fields = {"anthropic_version": _PREDICT_VERSION}
        if prompt.tools:
            fields["tools"] = [
                {
                    "name": tool.name,
                    "description": clean_text(tool.description),
                    "input_schema": tool_schema(tool, self._profile),
                }
                for tool in prompt.tools
            ]
        if system := self._system_text(prompt):
            marks = {"cache_control": cache_mark(self._cache_ttl)} if self._marks else {}
            fields["system"] = [{"type": "text", "text": system, **marks}]
        return self._open_list(fields, "messages")

    def _fields(
        self, prompt: Prompt, messages: tuple[Message, ...], head: bytes, fragments: list[bytes]
    ) -> JsonObject:
        limit = self._limit(prompt, len(head) + sum(map(len, fragments)))
        fields: JsonObject = {"max_tokens": limit}
        if prompt.tools:
            fields["tool_choice"] = {"type": "none" if prompt.text_only else "auto"}
        tokens = reasoning_budget(self._profile, prompt.effort, prompt.max_tokens)
        if tokens and self._may_think(messages):
            fields["max_tokens"] = max(limit, tokens + ANSWER_TOKENS)
            fields["thinking"] = {"type": "enabled", "budget_tokens": tokens}
        return fields

    def _limit(self, prompt: Prompt, size: int) -> int:
        """Return the requested or maximum output, reduced to what fits in the window."""
        wanted = self._output_limit(prompt) or self._profile.max_output or _OUTPUT
        available = self._profile.window - tokens_of_size(size)
        return wanted if wanted <= available else max(min(wanted, _LEAST_OUTPUT), available)

    def _may_think(self, messages: tuple[Message, ...]) -> bool:
        """Return whether reasoning may be requested. With a reasoning budget, calls that are being
        answered must start with their reasoning block; user text after the results counts as part
        of the answer."""
        answered = [m for m in messages[-2:] if isinstance(m, ToolMessage)]
        if not answered:
            return True
        asked = messages[messages.index(answered[0], -2) - 1]
        if not isinstance(asked, AssistantMessage):
            return False
        blocks = self._parts_in_order(asked, _text)
        return bool(blocks) and blocks[0].get("type") in REASONING_TYPES

    def _fragment(self, message: Message) -> bytes:
        match message:
            case UserMessage(parts=parts):
                role, blocks = "user", [self._part(part) for part in parts]
            case AssistantMessage():
                role, blocks = "assistant", self._parts_in_order(message, _text)
            case ToolMessage(results=results):
                role, blocks = "user", [self._result(result) for result in results]
        return self._json({"role": role, "content": blocks})

    def _merge(self, messages: tuple[Message, ...], fragments: list[bytes]) -> list[bytes]:
        """Merge tool results and the user text after them into one user message."""
        users = [n for n, message in enumerate(messages) if type(message) is UserMessage]
        joined: list[bytes] = []
        start = 0
        for n in users:
            if n and isinstance(messages[n - 1], ToolMessage):
                joined += fragments[start:n]
                joined[-1] = joined[-1][: -len(_END)] + b"," + fragments[n][len(_USER) :]
                start = n + 1
        return joined + fragments[start:]

    def _result(self, result: ToolResult) -> JsonObject:
        content = self._result_content(result)
        encoded = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
        return encoded | {"is_error": True} if result.failed else encoded

    def _call(self, call: ToolCall) -> JsonObject:
        arguments = msgspec.Raw(encode_sorted(call.arguments))
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}

    def _image(self, media_type: str, data: str) -> JsonObject:
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": "image", "source": source}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}
