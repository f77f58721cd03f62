"""Encodes prompts and decodes replies of the OpenAI responses API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from hermes.codec.values import IdentityCache, JsonObject, JsonValue
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from hermes.core.prompt import Delta, Prompt, ToolSpec
from hermes.net.sse import SseEvent
from hermes.providers.endpoint import Endpoint
from hermes.providers.failures import classify_event, malformed_response
from hermes.providers.normalization import clean_text
from hermes.providers.profile import MarkLife, ModelProfile
from hermes.providers.wire.events import (
    event_objects,
    object_of,
    objects_of,
    responses_words,
    text_of,
)
from hermes.providers.wire.format import (
    Fragments,
    ImageLoader,
    RequestHead,
    closing,
    image_placeholder,
    is_sealed_by,
    is_worth_sending,
    join_request,
    json_bytes,
    opening,
    output_limit,
    request_headers,
    sorted_text,
    system_text,
)
from hermes.providers.wire.reply_builder import CallBuilder, ReplyBuilder
from hermes.providers.wire.usage import responses_usage
from hermes.providers.wire.vendor_fields import ConversationFields, effort_fields, tool_schema

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS = ("response.completed", "response.incomplete", "response.done")


class ResponsesReader:
    """Deltas are only for display; the whole item at its end is authoritative."""

    def __init__(self, endpoint: Endpoint, draft: ReplyBuilder) -> None:
        self.draft = draft
        self.model = ""
        self.usage: Usage | None = None
        self.ended = False
        self.closed = False
        self._endpoint = endpoint
        self._stop: StopReason = "done"
        self._wishes: dict[str, CallBuilder] = {}
        self._spoken: set[str] = set()
        self._thought: set[str] = set()
        self._open: set[str] = set()

    def words(self, event: SseEvent) -> str | None:
        found = responses_words(event.data)
        return found[0] if found is not None and found[1] in self._spoken else None

    def feed(self, event: SseEvent) -> Iterator[Delta]:
        for document in event_objects(event):
            yield from self._event(text_of(document.get("type")) or event.name, document)

    def run_out(self) -> None:
        """Every item announces its end; when all have ended, the reply is complete."""
        self.ended = self.ended or (bool(self.draft.parts) and not self._open)

    def read(self, body: JsonObject) -> Iterator[Delta]:
        if error := body.get("error"):
            raise classify_event(self._endpoint, error)
        if not isinstance(body.get("output"), list):
            raise malformed_response(self._endpoint, "the reply has no output")
        for place, item in enumerate(objects_of(body.get("output"))):
            yield from self._item(str(place), item)
        self._end(body)

    def message(self) -> AssistantMessage:
        return self.draft.message(self._stop if self.ended else "cut")

    def _event(self, kind: str, event: JsonObject) -> Iterator[Delta]:
        place = str(event.get("output_index", event.get("item_id")))
        if kind in _TEXT:
            self._spoken.add(place)
            yield from self.draft.add_text(text_of(event.get("delta")))
        elif kind in _THOUGHT:
            self._thought.add(place)
            yield from self.draft.add_reasoning(text_of(event.get("delta")))
        elif kind == "response.output_item.added":
            self._open.add(place)
            yield from self._begin(place, object_of(event.get("item")))
        elif kind == "response.function_call_arguments.delta" and place in self._wishes:
            self._wishes[place].append(text_of(event.get("delta")))
        elif kind == "response.function_call_arguments.done" and place in self._wishes:
            self._wishes[place].replace(text_of(event.get("arguments")))
        elif kind == "response.output_item.done":
            self._open.discard(place)
            yield from self._item(place, object_of(event.get("item")))
        elif kind in _ENDS:
            self._end(object_of(event.get("response")))
        elif kind in ("response.failed", "error"):
            held = object_of(event.get("response"))
            raise classify_event(self._endpoint, held.get("error") or event.get("error") or event)

    def _begin(self, place: str, item: JsonObject) -> Iterator[Delta]:
        if item.get("type") == "function_call":
            yield from self.draft.flush()
            wish = self._wish(place, item)
            yield from self.draft.announce(wish)

    def _wish(self, place: str, item: JsonObject) -> CallBuilder:
        if place not in self._wishes:
            self._wishes[place] = self.draft.add_call()
        wish = self._wishes[place]
        wish.id = text_of(item.get("call_id")) or wish.id
        wish.name = text_of(item.get("name")) or wish.name
        return wish

    def _item(self, place: str, item: JsonObject) -> Iterator[Delta]:
        match item.get("type"):
            case "message":
                yield from self._words(place, item)
            case "function_call":
                yield from self._begin(place, item)
                arguments = item.get("arguments")
                if isinstance(arguments, dict):
                    self._wish(place, item).given_arguments = arguments
                elif isinstance(arguments, str) and arguments:
                    self._wish(place, item).replace(arguments)
            case "reasoning":
                yield from self._reasoning(place, item)

    def _words(self, place: str, item: JsonObject) -> Iterator[Delta]:
        parts = objects_of(item.get("content"))
        if any(part.get("type") == "refusal" for part in parts):
            self._stop = "filtered"
        if place not in self._spoken:
            for part in parts:
                yield from self.draft.add_text(
                    text_of(part.get("text")) or text_of(part.get("refusal"))
                )
        yield from self.draft.flush()

    def _reasoning(self, place: str, item: JsonObject) -> Iterator[Delta]:
        if place not in self._thought:
            yield from self.draft.add_reasoning(
                "\n".join(text_of(part.get("text")) for part in objects_of(item.get("summary")))
            )
        if item.get("encrypted_content"):
            # The item id is left out: the server was asked not to store the item.
            self.draft.open_reasoning().sealed = {
                "type": "reasoning",
                "summary": objects_of(item.get("summary")),
                "encrypted_content": item["encrypted_content"],
            }

    def _end(self, response: JsonObject) -> None:
        self.model = text_of(response.get("model"))
        self.usage = responses_usage(response.get("usage"))
        status = response.get("status")
        if status in ("failed", "cancelled"):
            raise classify_event(self._endpoint, response.get("error") or f"response {status}")
        if status == "incomplete":
            why = object_of(response.get("incomplete_details")).get("reason")
            self._stop = "filtered" if why == "content_filter" else "length"
        self.ended = self.closed = True


# Requests with the same key are routed to the machine that caches their prefix.
_cache_key: IdentityCache[bytes, str] = IdentityCache(lambda head: hashlib.sha256(head).hexdigest())


class ResponsesWire:
    def __init__(
        self, endpoint: Endpoint, profile: ModelProfile, *, life: MarkLife, pictures: ImageLoader
    ) -> None:
        self.fragments = Fragments(self._fragment)
        self._endpoint = endpoint
        self._profile = profile
        self._pictures = pictures
        self._head = RequestHead(self._opening, endpoint, profile, life)
        self._conversation = ConversationFields(endpoint, profile)

    @property
    def url(self) -> str:
        return f"{self._endpoint.url.rstrip('/')}/responses"

    @property
    def headers(self) -> dict[str, str]:
        return request_headers(self._endpoint) | self._conversation.headers

    def encode(self, prompt: Prompt, messages: tuple[Message, ...]) -> bytes:
        self._conversation.update(prompt, messages)
        head = self._head(prompt)
        fragments = self.fragments.of(messages)
        return join_request(head, fragments, closing(self._fields(prompt, head), self._profile))

    def reader(self, *, taken: set[str], place: int) -> ResponsesReader:
        draft = ReplyBuilder(issuer=self._endpoint.issuer, taken=taken, place=place)
        return ResponsesReader(self._endpoint, draft)

    def _opening(self, prompt: Prompt) -> bytes:
        system = system_text(prompt, self._endpoint, self._profile)
        tools = [self._tool(tool) for tool in prompt.tools]
        fields: JsonObject = {"model": self._endpoint.model}
        if system.strip():
            fields["instructions"] = system
        if tools:
            fields["tools"] = tools
        return opening(fields, "input", b"", self._profile)

    def _tool(self, tool: ToolSpec) -> JsonObject:
        return {
            "type": "function",
            "name": tool.name,
            "description": clean_text(tool.description),
            "parameters": tool_schema(tool, self._profile),
            "strict": False,
        }

    def _fields(self, prompt: Prompt, head: bytes) -> JsonObject:
        fields: JsonObject = {"store": False, "prompt_cache_key": _cache_key(head)}
        if prompt.tools:
            choice = "none" if prompt.words_only else "auto"
            fields |= {"tool_choice": choice, "parallel_tool_calls": True}
        if (limit := output_limit(prompt, self._profile)) is not None:
            fields["max_output_tokens"] = limit
        fields |= effort_fields(self._profile, prompt.effort)
        fields |= self._conversation.fields
        if self._profile.streams:
            fields["stream"] = True
        return fields

    def _fragment(self, message: Message) -> bytes:
        return b",".join(
            json_bytes(item, ascii=self._profile.ascii) for item in self._items(message)
        )

    def _items(self, message: Message) -> list[JsonObject]:
        match message:
            case UserMessage(parts=parts):
                return [{"type": "message", "role": "user", "content": self._content(parts)}]
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage(results=results):
                return [self._result(result) for result in results]

    def _assistant(self, message: AssistantMessage) -> list[JsonObject]:
        """Keeps the original order. A reasoning item must be followed by the item it led to."""
        items: list[JsonObject] = []
        for part in message.parts:
            match part:
                case Reasoning() if self._replays(part):
                    items.append(part.sealed or {})
                case Text(text=text) if text.strip():
                    content = [{"type": "output_text", "text": text.strip()}]
                    items.append({"type": "message", "role": "assistant", "content": content})
                case ToolCall():
                    items.append(_call(part))
        while items and items[-1].get("type") == "reasoning":
            items.pop()
        return items

    def _replays(self, part: Reasoning) -> bool:
        return self._profile.replay == "sealed" and is_sealed_by(part, self._endpoint)

    def _result(self, result: ToolResult) -> JsonObject:
        output: JsonValue = result.text
        if any(isinstance(part, Image) for part in result.parts):
            output = (
                self._content(result.parts)
                if self._profile.image_results
                else "\n".join(_text_of_part(part) for part in result.parts)
            )
        return {"type": "function_call_output", "call_id": result.call_id, "output": output}

    def _content(self, parts: tuple[Text | Image, ...]) -> list[JsonObject]:
        encoded = [self._part(part) for part in parts]
        return [part for part in encoded if is_worth_sending(part)]

    def _part(self, part: Text | Image) -> JsonObject:
        if isinstance(part, Image) and self._profile.images:
            url = self._pictures.url_of(part)
            if url is not None:
                return {"type": "input_image", "detail": "auto", "image_url": url}
        return {"type": "input_text", "text": _text_of_part(part)}


def _text_of_part(part: Text | Image) -> str:
    return part.text if isinstance(part, Text) else image_placeholder(part)


def _call(call: ToolCall) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": sorted_text(call.arguments),
    }
