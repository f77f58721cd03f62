"""Encodes prompts for the chat completions API."""

from __future__ import annotations

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.core.prompt import Prompt, ToolSpec
from hermes.providers.endpoint import Endpoint
from hermes.providers.normalization import clean_text
from hermes.providers.profile import MarkLife, ModelProfile
from hermes.providers.wire.chat_reader import ChatReader
from hermes.providers.wire.format import (
    TEXT_PART_END,
    Fragments,
    ImageLoader,
    RequestHead,
    add_cache_marks,
    cache_mark,
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
from hermes.providers.wire.reply_builder import ReplyBuilder
from hermes.providers.wire.vendor_fields import ConversationFields, effort_fields, tool_schema


class ChatWire:
    def __init__(
        self, endpoint: Endpoint, profile: ModelProfile, *, life: MarkLife, pictures: ImageLoader
    ) -> None:
        self.fragments = Fragments(self._fragment)
        self._endpoint = endpoint
        self._profile = profile
        self._life: MarkLife = life
        self._pictures = pictures
        self._head = RequestHead(self._opening, endpoint, profile, life)
        self._conversation = ConversationFields(endpoint, profile)
        # A cache mark needs a part to sit on, so with marks every content is a list of parts.
        self._marks = profile.marks != "off"

    @property
    def url(self) -> str:
        return f"{self._endpoint.url.rstrip('/')}/chat/completions"

    @property
    def headers(self) -> dict[str, str]:
        return request_headers(self._endpoint) | self._conversation.headers

    def encode(self, prompt: Prompt, messages: tuple[Message, ...]) -> bytes:
        self._conversation.update(prompt, messages)
        fragments = self.fragments.of(messages)
        if self._marks:
            fragments = add_cache_marks(fragments, self._life, on=TEXT_PART_END)
        end = closing(self._fields(prompt), self._profile)
        return join_request(self._head(prompt), fragments, end)

    def reader(self, *, taken: set[str], place: int) -> ChatReader:
        draft = ReplyBuilder(issuer=self._endpoint.issuer, taken=taken, place=place)
        return ChatReader(self._endpoint, draft)

    def _opening(self, prompt: Prompt) -> bytes:
        fields: JsonObject = {"model": self._endpoint.model}
        if prompt.tools:
            fields["tools"] = [self._tool(tool) for tool in prompt.tools]
        system = self._system(system_text(prompt, self._endpoint, self._profile))
        return opening(fields, "messages", system, self._profile)

    def _system(self, text: str) -> bytes:
        if not text.strip():
            return b""
        role = "developer" if self._profile.developer else "system"
        content: JsonValue = text
        if self._marks:
            content = [{"type": "text", "text": text, "cache_control": cache_mark(self._life)}]
        return self._bytes({"role": role, "content": content})

    def _tool(self, tool: ToolSpec) -> JsonObject:
        function = {
            "name": tool.name,
            "description": clean_text(tool.description),
            "parameters": tool_schema(tool, self._profile),
        }
        return {"type": "function", "function": function}

    def _fields(self, prompt: Prompt) -> JsonObject:
        fields: JsonObject = {}
        if prompt.tools:
            fields["tool_choice"] = "none" if prompt.words_only else "auto"
        if (limit := output_limit(prompt, self._profile)) is not None:
            fields[self._profile.output_field] = limit
        fields |= effort_fields(self._profile, prompt.effort)
        fields |= self._conversation.fields
        if self._profile.streams:
            fields |= {"stream": True, "stream_options": {"include_usage": True}}
        return fields

    def _fragment(self, message: Message) -> bytes:
        match message:
            case UserMessage(parts=parts):
                return self._bytes({"role": "user", "content": self._content(parts)})
            case AssistantMessage():
                return self._bytes(self._assistant(message))
            case ToolMessage(results=results):
                return b",".join(self._bytes(self._result(result)) for result in results)

    def _assistant(self, message: AssistantMessage) -> JsonObject:
        """`content` comes last, so that a cache mark can be appended to the encoded fragment."""
        reasoning = self._reasoning(message)
        # Signatures belong to single calls, by position, not to the message.
        signatures = reasoning.pop("extra_content", {})
        encoded: JsonObject = {"role": "assistant", **reasoning}
        if message.calls:
            encoded["tool_calls"] = [
                _call(call) | _signature(signatures, place)
                for place, call in enumerate(message.calls)
            ]
        text = message.text.strip()
        encoded["content"] = self._content((Text(text=text),)) if text else None
        return encoded

    def _reasoning(self, message: AssistantMessage) -> JsonObject:
        field = self._profile.replay
        if field in ("none", "sealed"):
            return {}
        own = [
            p for p in message.parts if isinstance(p, Reasoning) and is_sealed_by(p, self._endpoint)
        ]
        held = [part.sealed[field] for part in own if part.sealed and field in part.sealed]
        return {field: held[0]} if held else {}

    def _result(self, result: ToolResult) -> JsonObject:
        content: JsonValue = result.text
        pictures = any(isinstance(part, Image) for part in result.parts)
        if pictures and not self._profile.image_results:
            content = "\n".join(self._text_of_part(part) for part in result.parts)
        elif pictures or self._marks:
            content = self._content(result.parts)
        return {"role": "tool", "tool_call_id": result.call_id, "content": content}

    def _content(self, parts: tuple[Text | Image, ...]) -> JsonValue:
        encoded = [self._part(part) for part in parts]
        if not self._marks and all(part["type"] == "text" for part in encoded):
            return "".join(part["text"] for part in encoded)
        return [part for part in encoded if is_worth_sending(part)] or ""

    def _part(self, part: Text | Image) -> JsonObject:
        if isinstance(part, Image) and self._profile.images:
            url = self._pictures.url_of(part)
            if url is not None:
                return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "text", "text": self._text_of_part(part)}

    def _text_of_part(self, part: Text | Image) -> str:
        return part.text if isinstance(part, Text) else image_placeholder(part)

    def _bytes(self, value: JsonObject) -> bytes:
        return json_bytes(value, ascii=self._profile.ascii)


def _signature(signatures: JsonObject, place: int) -> JsonObject:
    signature = signatures.get(str(place))
    return {"extra_content": signature} if signature else {}


def _call(call: ToolCall) -> JsonObject:
    function = {"name": call.name, "arguments": sorted_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}
