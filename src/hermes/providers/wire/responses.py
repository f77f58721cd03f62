"""Encodes prompts and decodes replies of the OpenAI responses API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Literal

import msgspec

from hermes.codec.values import IdentityCache, JsonObject
from hermes.core.messages import (
    AssistantMessage,
    Message,
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
from hermes.providers.wire.format import ReplyReader, WireFormat, sorted_text
from hermes.providers.wire.reply_builder import CallBuilder, ReplyBuilder
from hermes.providers.wire.usage import openai_usage
from hermes.providers.wire.vendor_fields import tool_schema

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS = ("response.completed", "response.incomplete", "response.done")


class _TextDelta(msgspec.Struct, gc=False):
    type: Literal["response.output_text.delta"]
    delta: str
    output_index: int


_decode_text = msgspec.json.Decoder(_TextDelta).decode


class ResponsesReader(ReplyReader):
    """Decodes a reply of the responses format. Deltas are only for display; the whole item at its
    end is authoritative."""

    def __init__(self, endpoint: Endpoint, builder: ReplyBuilder) -> None:
        super().__init__(endpoint, builder)
        self._calls: dict[str, CallBuilder] = {}
        self._spoken: set[str] = set()
        self._thought: set[str] = set()
        self._open: set[str] = set()

    def plain_text(self, event: SseEvent) -> str | None:
        try:
            found = _decode_text(event.data)
        except MISMATCH:
            return None
        return found.delta if str(found.output_index) in self._spoken else None

    def feed(self, event: SseEvent) -> Iterator[Delta]:
        for document in event_objects(event):
            yield from self._event(text_of(document.get("type")) or event.name, document)

    def run_out(self) -> None:
        """Mark the reply as complete if all items have announced their end."""
        self.ended = self.ended or (bool(self.builder.parts) and not self._open)

    def read(self, body: JsonObject) -> Iterator[Delta]:
        if error := body.get("error"):
            raise classify_event(self._endpoint, error)
        if not isinstance(body.get("output"), list):
            raise malformed_response(self._endpoint, "the reply has no output")
        for index, item in enumerate(objects_of(body.get("output"))):
            yield from self._item(str(index), item)
        self._end(body)

    def _event(self, kind: str, event: JsonObject) -> Iterator[Delta]:
        item_id = str(event.get("output_index", event.get("item_id")))
        if kind in _TEXT:
            self._spoken.add(item_id)
            yield from self.builder.add_text(text_of(event.get("delta")))
        elif kind in _THOUGHT:
            self._thought.add(item_id)
            yield from self.builder.add_reasoning(text_of(event.get("delta")))
        elif kind == "response.output_item.added":
            self._open.add(item_id)
            item = object_of(event.get("item"))
            if item.get("type") == "function_call":
                yield from self._start_call(item_id, item)
        elif kind == "response.function_call_arguments.delta" and item_id in self._calls:
            self._calls[item_id].append(text_of(event.get("delta")))
        elif kind == "response.function_call_arguments.done" and item_id in self._calls:
            self._calls[item_id].replace(text_of(event.get("arguments")))
        elif kind == "response.output_item.done":
            self._open.discard(item_id)
            yield from self._item(item_id, object_of(event.get("item")))
        elif kind in _ENDS:
            self._end(object_of(event.get("response")))
        elif kind in ("response.failed", "error"):
            held = object_of(event.get("response"))
            raise classify_event(self._endpoint, held.get("error") or event.get("error") or event)

    def _start_call(self, item_id: str, item: JsonObject) -> Iterator[Delta]:
        yield from self.builder.flush()
        if item_id not in self._calls:
            self._calls[item_id] = self.builder.add_call()
        call = self._calls[item_id]
        call.id = text_of(item.get("call_id")) or call.id
        call.name = text_of(item.get("name")) or call.name
        yield from self.builder.announce(call)

    def _item(self, item_id: str, item: JsonObject) -> Iterator[Delta]:
        match item.get("type"):
            case "message":
                parts = objects_of(item.get("content"))
                if any(part.get("type") == "refusal" for part in parts):
                    self._stop = "filtered"
                if item_id not in self._spoken:
                    for part in parts:
                        text = text_of(part.get("text")) or text_of(part.get("refusal"))
                        yield from self.builder.add_text(text)
                yield from self.builder.flush()
            case "function_call":
                yield from self._start_call(item_id, item)
                arguments = item.get("arguments")
                if isinstance(arguments, dict):
                    self._calls[item_id].parsed_arguments = arguments
                elif isinstance(arguments, str) and arguments:
                    self._calls[item_id].replace(arguments)
            case "reasoning":
                summary = objects_of(item.get("summary"))
                if item_id not in self._thought:
                    text = "\n".join(text_of(part.get("text")) for part in summary)
                    yield from self.builder.add_reasoning(text)
                if sealed := item.get("encrypted_content"):
                    # The item id is left out: the server was asked not to store the item.
                    self.builder.open_reasoning().sealed = {
                        "type": "reasoning",
                        "summary": summary,
                        "encrypted_content": sealed,
                    }

    def _end(self, response: JsonObject) -> None:
        self.model = text_of(response.get("model"))
        self.usage = openai_usage(response.get("usage"), "input", "output")
        status = response.get("status")
        if status in ("failed", "cancelled"):
            raise classify_event(self._endpoint, response.get("error") or f"response {status}")
        if status == "incomplete":
            why = object_of(response.get("incomplete_details")).get("reason")
            self._stop = "filtered" if why == "content_filter" else "length"
        self.ended = self.closed = True


# Requests with the same key are routed to the machine that caches their prefix.
_cache_key: IdentityCache[bytes, str] = IdentityCache(lambda head: hashlib.sha256(head).hexdigest())


class ResponsesWire(WireFormat):
    path = "/responses"
    reader_type = ResponsesReader
    text_type = "input_text"

    def _opening(self, prompt: Prompt) -> bytes:
        fields: JsonObject = {"model": self._endpoint.model}
        if system := self._system_text(prompt):
            fields["instructions"] = system
        if prompt.tools:
            fields["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": clean_text(tool.description),
                    "parameters": tool_schema(tool, self._profile),
                    "strict": False,
                }
                for tool in prompt.tools
            ]
        return self._open_list(fields, "input")

    def _fields(
        self, prompt: Prompt, messages: tuple[Message, ...], head: bytes, fragments: list[bytes]
    ) -> JsonObject:
        fields: JsonObject = {"store": False, "prompt_cache_key": _cache_key(head)}
        if prompt.tools:
            choice = "none" if prompt.text_only else "auto"
            fields |= {"tool_choice": choice, "parallel_tool_calls": True}
        if (limit := self._output_limit(prompt)) is not None:
            fields["max_output_tokens"] = limit
        return fields

    def _fragment(self, message: Message) -> bytes:
        match message:
            case UserMessage(parts=parts):
                items = [{"type": "message", "role": "user", "content": self._content(parts)}]
            case AssistantMessage():
                items = self._parts_in_order(message, _text)
            case ToolMessage(results=results):
                items = [self._result(result) for result in results]
        return b",".join(self._json(item) for item in items)

    def _result(self, result: ToolResult) -> JsonObject:
        output = self._result_content(result)
        return {"type": "function_call_output", "call_id": result.call_id, "output": output}

    def _call(self, call: ToolCall) -> JsonObject:
        arguments = sorted_text(call.arguments)
        return {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments,
        }

    def _image(self, media_type: str, data: str) -> JsonObject:
        url = f"data:{media_type};base64,{data}"
        return {"type": "input_image", "detail": "auto", "image_url": url}


def _text(text: str) -> JsonObject:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}
