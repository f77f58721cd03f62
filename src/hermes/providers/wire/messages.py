"""Encodes prompts and decodes replies of the Anthropic messages API."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hermes.codec.json import encode_sorted
from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import JsonObject, JsonValue
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
    messages_words,
    object_of,
    objects_of,
    text_of,
)
from hermes.providers.wire.format import (
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
    request_headers,
    system_text,
)
from hermes.providers.wire.reply_builder import CallBuilder, ReasoningBuilder, ReplyBuilder
from hermes.providers.wire.usage import messages_usage
from hermes.providers.wire.vendor_fields import (
    ANSWER_TOKENS,
    ConversationFields,
    effort_fields,
    reasoning_budget,
    tool_schema,
)

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


class MessagesReader:
    def __init__(self, endpoint: Endpoint, draft: ReplyBuilder) -> None:
        self.draft = draft
        self.model = ""
        self.ended = False
        self.closed = False
        self._endpoint = endpoint
        self._stop: StopReason = "done"
        self._counts: JsonObject = {}
        self._blocks: dict[str, CallBuilder | ReasoningBuilder] = {}
        self._signatures: dict[str, str] = {}

    @property
    def usage(self) -> Usage | None:
        return messages_usage(self._counts)

    def words(self, event: SseEvent) -> str | None:
        return messages_words(event.data)

    def feed(self, event: SseEvent) -> Iterator[Delta]:
        for document in event_objects(event):
            yield from self._event(text_of(document.get("type")) or event.name, document)

    def run_out(self) -> None:
        """Only an explicit end marks the reply as complete."""

    def read(self, body: JsonObject) -> Iterator[Delta]:
        if error := body.get("error"):
            raise classify_event(self._endpoint, error)
        if not isinstance(body.get("content"), list):
            raise malformed_response(self._endpoint, "the reply has no content")
        self._begin(body)
        for place, block in enumerate(objects_of(body.get("content"))):
            yield from self._start(str(place), block)
            yield from self._close(str(place))
        self._finish(body)
        self.ended = True

    def message(self) -> AssistantMessage:
        return self.draft.message(self._stop if self.ended else "cut")

    def _event(self, kind: str, event: JsonObject) -> Iterator[Delta]:
        place = str(event.get("index"))
        match kind:
            case "content_block_delta":
                yield from self._delta(place, object_of(event.get("delta")))
            case "content_block_start":
                yield from self._start(place, object_of(event.get("content_block")))
            case "content_block_stop":
                yield from self._close(place)
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
        """Later counts are totals and replace earlier ones; null is ignored."""
        given = object_of(usage)
        self._counts |= {name: value for name, value in given.items() if value is not None}

    def _start(self, place: str, block: JsonObject) -> Iterator[Delta]:
        match block.get("type"):
            case "text":
                yield from self.draft.add_text(text_of(block.get("text")))
            case "thinking":
                self._blocks[place] = self.draft.add_reasoning_part()
                self._signatures[place] = text_of(block.get("signature"))
                yield from self.draft.add_reasoning(text_of(block.get("thinking")))
            case "redacted_thinking":
                self.draft.add_reasoning_part().sealed = block
            case "tool_use":
                yield from self.draft.flush()
                wish = self.draft.add_call(text_of(block.get("id")), text_of(block.get("name")))
                self._blocks[place] = wish
                given = block.get("input")
                if isinstance(given, dict) and given:
                    wish.given_arguments = given
                elif isinstance(given, str):
                    wish.append(given)
                yield from self.draft.announce(wish)

    def _delta(self, place: str, delta: JsonObject) -> Iterator[Delta]:
        block = self._blocks.get(place)
        match delta.get("type"):
            case "text_delta":
                yield from self.draft.add_text(text_of(delta.get("text")))
            case "thinking_delta":
                yield from self.draft.add_reasoning(text_of(delta.get("thinking")))
            case "signature_delta":
                signature = self._signatures.get(place, "") + text_of(delta.get("signature"))
                self._signatures[place] = signature
            case "input_json_delta" if isinstance(block, CallBuilder):
                self._write(block, delta.get("partial_json"))

    def _write(self, wish: CallBuilder, piece: JsonValue) -> None:
        if isinstance(piece, dict):
            wish.given_arguments = piece
        elif isinstance(piece, str) and piece:
            wish.given_arguments = None
            wish.append(piece)

    def _close(self, place: str) -> Iterator[Delta]:
        """Ends a block. Reasoning without a signature cannot be sent back."""
        block = self._blocks.get(place)
        signature = self._signatures.get(place, "")
        if isinstance(block, ReasoningBuilder) and signature:
            thinking = "".join(block.pieces)
            block.sealed = {"type": "thinking", "thinking": thinking, "signature": signature}
        yield from self.draft.flush()

    def _finish(self, delta: JsonObject) -> None:
        if reason := text_of(delta.get("stop_reason")):
            self._stop = _STOPS.get(reason, "done")
            self.ended = True


_OUTPUT = 8_192
"""Output limit when neither prompt nor profile has one."""
_LEAST_OUTPUT = 1_024

_THOUGHTS = ("thinking", "redacted_thinking")
_USER = b'{"role":"user","content":['
_END = b"]}"


class MessagesWire:
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

    @property
    def url(self) -> str:
        start = self._endpoint.url.rstrip("/")
        return f"{start}/messages" if start.endswith("/v1") else f"{start}/v1/messages"

    @property
    def headers(self) -> dict[str, str]:
        return request_headers(self._endpoint) | self._conversation.headers

    def encode(self, prompt: Prompt, messages: tuple[Message, ...]) -> bytes:
        self._conversation.update(prompt, messages)
        head = self._head(prompt)
        fragments = self.fragments.of(messages)
        if self._profile.marks != "off":
            fragments = add_cache_marks(fragments, self._life)
        size = len(head) + sum(map(len, fragments))
        end = closing(self._fields(prompt, messages, size), self._profile)
        return join_request(head, _merge_user_turns(messages, fragments), end)

    def reader(self, *, taken: set[str], place: int) -> MessagesReader:
        draft = ReplyBuilder(issuer=self._endpoint.issuer, taken=taken, place=place)
        return MessagesReader(self._endpoint, draft)

    def _opening(self, prompt: Prompt) -> bytes:
        fields: JsonObject = {"model": self._endpoint.model}
        if prompt.tools:
            fields["tools"] = [self._tool(tool) for tool in prompt.tools]
        system = system_text(prompt, self._endpoint, self._profile)
        if system.strip():
            block: JsonObject = {"type": "text", "text": system}
            if self._profile.marks != "off":
                block["cache_control"] = cache_mark(self._life)
            fields["system"] = [block]
        return opening(fields, "messages", b"", self._profile)

    def _tool(self, tool: ToolSpec) -> JsonObject:
        return {
            "name": tool.name,
            "description": clean_text(tool.description),
            "input_schema": tool_schema(tool, self._profile),
        }

    def _fields(self, prompt: Prompt, messages: tuple[Message, ...], size: int) -> JsonObject:
        limit = self._limit(prompt, size)
        fields: JsonObject = {"max_tokens": limit}
        if prompt.tools:
            fields["tool_choice"] = {"type": "none" if prompt.words_only else "auto"}
        tokens = reasoning_budget(self._profile, prompt.effort, prompt.max_tokens)
        if tokens and self._may_think(messages):
            fields["max_tokens"] = max(limit, tokens + ANSWER_TOKENS)
            fields["thinking"] = {"type": "enabled", "budget_tokens": tokens}
        fields |= effort_fields(self._profile, prompt.effort)
        fields |= self._conversation.fields
        if self._profile.streams:
            fields["stream"] = True
        return fields

    def _limit(self, prompt: Prompt, size: int) -> int:
        """The requested or maximum output, reduced to what fits in the window."""
        ceiling = self._profile.max_output
        wanted = prompt.max_tokens or self._profile.usual_output or ceiling or _OUTPUT
        wanted = min(wanted, ceiling) if ceiling else wanted
        available = self._profile.window - tokens_of_size(size)
        return wanted if wanted <= available else max(min(wanted, _LEAST_OUTPUT), available)

    def _may_think(self, messages: tuple[Message, ...]) -> bool:
        """With a reasoning budget, calls that are being answered must start with their reasoning
        block; user text after the results counts as part of the answer."""
        answered = [m for m in messages[-2:] if isinstance(m, ToolMessage)]
        if not answered:
            return True
        asked = messages[messages.index(answered[0], -2) - 1]
        blocks = self._assistant(asked) if isinstance(asked, AssistantMessage) else []
        return bool(blocks) and blocks[0].get("type") in _THOUGHTS

    def _fragment(self, message: Message) -> bytes:
        match message:
            case UserMessage(parts=parts):
                return self._bytes("user", [self._part(part) for part in parts])
            case AssistantMessage():
                return self._bytes("assistant", self._assistant(message))
            case ToolMessage(results=results):
                return self._bytes("user", [self._result(result) for result in results])

    def _assistant(self, message: AssistantMessage) -> list[JsonObject]:
        """Keeps the original order; a reasoning block is never last."""
        blocks: list[JsonObject] = []
        for part in message.parts:
            match part:
                case Reasoning() if self._replays(part):
                    blocks.append(part.sealed or {})
                case Text(text=text) if text.strip():
                    blocks.append({"type": "text", "text": text.strip()})
                case ToolCall():
                    blocks.append(_call(part))
        while blocks and blocks[-1].get("type") in _THOUGHTS:
            blocks.pop()
        return blocks

    def _replays(self, part: Reasoning) -> bool:
        return self._profile.replay == "sealed" and is_sealed_by(part, self._endpoint)

    def _result(self, result: ToolResult) -> JsonObject:
        pictures = any(isinstance(part, Image) for part in result.parts)
        content: JsonValue = result.text
        if pictures and self._profile.image_results:
            blocks = [self._part(part) for part in result.parts]
            content = [block for block in blocks if is_worth_sending(block)]
        elif pictures:
            content = "\n".join(_text_of_part(part) for part in result.parts)
        encoded = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
        return encoded | {"is_error": True} if result.failed else encoded

    def _part(self, part: Text | Image) -> JsonObject:
        if isinstance(part, Image) and self._profile.images:
            data = self._pictures.base64_of(part)
            if data is not None:
                source = {"type": "base64", "media_type": part.media_type, "data": data}
                return {"type": "image", "source": source}
        return {"type": "text", "text": _text_of_part(part)}

    def _bytes(self, role: str, blocks: list[JsonObject]) -> bytes:
        return json_bytes({"role": role, "content": blocks}, ascii=self._profile.ascii)


def _merge_user_turns(messages: tuple[Message, ...], fragments: list[bytes]) -> list[bytes]:
    """Merges tool results and the user text after them into one user message."""
    users = [n for n, message in enumerate(messages) if type(message) is UserMessage]
    merged = [n for n in users if n and isinstance(messages[n - 1], ToolMessage)]
    if not merged:
        return fragments
    joined: list[bytes] = []
    start = 0
    for n in merged:
        joined += fragments[start:n]
        joined[-1] = joined[-1][: -len(_END)] + b"," + fragments[n][len(_USER) :]
        start = n + 1
    return joined + fragments[start:]


def _text_of_part(part: Text | Image) -> str:
    return part.text if isinstance(part, Text) else image_placeholder(part)


def _call(call: ToolCall) -> JsonObject:
    arguments = msgspec.Raw(encode_sorted(call.arguments))
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}
