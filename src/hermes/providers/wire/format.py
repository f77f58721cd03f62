"""The protocol of the wire formats, and the parts of a request they share."""

from __future__ import annotations

import asyncio
import base64
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, NamedTuple

from hermes.codec.json import encode, encode_sorted
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
from hermes.providers.endpoint import AWS_PREFIX, Endpoint
from hermes.providers.normalization import ascii_json, clean_text
from hermes.providers.profile import CacheTtl, ModelProfile
from hermes.providers.wire.reply_builder import ReplyBuilder
from hermes.providers.wire.vendor_fields import ConversationFields, effort_fields

_MAX_MARKS = 3
"""Number of messages at the end with a cache mark, besides the system text."""

PART_END = b"}]}"
"""The end of a fragment that closes an object inside the list that is its last field; a mark is
inserted before it."""
TEXT_PART_END = b'"}]}'
"""The same for an object that ends with a string: a text part does, an image does not."""

Encode = Callable[[Message], bytes]


class Fragments:
    """Encoded messages of the latest prompt, keyed by identity. When a prompt grows, only its new
    messages are encoded."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._messages: tuple[Message, ...] = ()
        self._bytes: list[bytes] = []

    def missing(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages that are not encoded yet."""
        if self._extends(messages):
            return messages[len(self._messages) :]
        held = set(map(id, self._messages))
        return tuple(message for message in messages if id(message) not in held)

    def of(self, messages: tuple[Message, ...]) -> list[bytes]:
        if self._extends(messages):
            self._bytes += [self._encode(m) for m in messages[len(self._messages) :]]
        else:
            held = dict(zip(map(id, self._messages), self._bytes, strict=True))
            self._bytes = [held.get(id(m)) or self._encode(m) for m in messages]
        self._messages = messages
        return self._bytes

    def _extends(self, messages: tuple[Message, ...]) -> bool:
        return messages[: len(self._messages)] == self._messages


def cache_mark(cache_ttl: CacheTtl) -> JsonObject:
    return {"type": "ephemeral"} if cache_ttl == "5m" else {"type": "ephemeral", "ttl": cache_ttl}


def _add_cache_marks(fragments: list[bytes], cache_ttl: CacheTtl, *, on: bytes) -> list[bytes]:
    """Add cache marks to the last fragments that end with `on`."""
    addition = b',"cache_control":' + encode(cache_mark(cache_ttl))
    result = list(fragments)
    left = _MAX_MARKS
    for index in range(len(result) - 1, -1, -1):
        if not left:
            break
        if result[index].endswith(on):
            result[index] = result[index][: -len(PART_END)] + addition + PART_END
            left -= 1
    return result


MAX_BYTES = 20 * 1024 * 1024


class ImageLoader:
    """Image data for the duration of one request."""

    def __init__(self) -> None:
        self._data: dict[str, str] = {}

    async def load(self, messages: Iterable[Message]) -> None:
        files = {image.file for image in images_in(messages)} - self._data.keys()
        if files:
            self._data |= await asyncio.to_thread(_read_all, sorted(files))

    def clear(self) -> None:
        self._data.clear()

    def base64_of(self, image: Image) -> str | None:
        """Return the image as base64; None when the file is missing or too large to send."""
        return self._data.get(image.file)


def images_in(messages: Iterable[Message]) -> Iterator[Image]:
    for message in messages:
        if isinstance(message, UserMessage):
            yield from (part for part in message.parts if isinstance(part, Image))
        elif isinstance(message, ToolMessage):
            for result in message.results:
                yield from (part for part in result.parts if isinstance(part, Image))


def _read_all(files: list[str]) -> dict[str, str]:
    data: dict[str, str] = {}
    for file in files:
        with suppress(OSError):
            if Path(file).stat().st_size <= MAX_BYTES:
                data[file] = base64.b64encode(Path(file).read_bytes()).decode("ascii")
    return data


MESSAGES_VERSION = "2023-06-01"
REASONING_TYPES = ("reasoning", "thinking", "redacted_thinking")


class ReplyReader(ABC):
    """Decodes one reply, streamed or whole."""

    def __init__(self, endpoint: Endpoint, builder: ReplyBuilder) -> None:
        self.builder = builder
        self.model = ""  # the name that the server gave
        self.usage: Usage | None = None
        self.ended = False  # the server marked the reply as complete
        self.closed = False  # the server announced that no more data follows
        self._endpoint = endpoint
        self._stop: StopReason = "done"

    @abstractmethod
    def plain_text(self, event: SseEvent) -> str | None:
        """Return the visible text of an event that holds nothing else; None if the event needs
        `feed`."""

    @abstractmethod
    def feed(self, event: SseEvent) -> Iterator[Delta]:
        """Decode an event. Raise ProviderError when it reports an error or cannot be parsed."""

    def run_out(self) -> None:  # noqa: B027
        """Handle a clean end of the stream. By default, only an explicit end counts."""

    @abstractmethod
    def read(self, body: JsonObject) -> Iterator[Delta]:
        """Decode a reply that was not streamed."""

    def message(self) -> AssistantMessage:
        """Return the reply so far; its stop is "cut" unless the reply has ended."""
        return self.builder.message(self._stop if self.ended else "cut")


def request_headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    if endpoint.wire == "messages":
        headers["anthropic-version"] = MESSAGES_VERSION
    if endpoint.key and endpoint.auth == "x-api-key":
        headers["x-api-key"] = endpoint.key
    elif endpoint.key and endpoint.auth == "api-key":
        headers["x-api-key" if endpoint.wire == "messages" else "api-key"] = endpoint.key
    elif endpoint.key and not endpoint.key.startswith(AWS_PREFIX):
        headers["authorization"] = f"Bearer {endpoint.key}"
    return headers | {name.lower(): value for name, value in endpoint.headers.items()}


def sorted_text(arguments: JsonObject) -> str:
    """Encode arguments as a JSON string with sorted keys, so that the bytes are stable."""
    return encode_sorted(arguments).decode()


class _Head(NamedTuple):
    """The encoded start of a request and the inputs it was built from."""

    endpoint: Endpoint
    profile: ModelProfile
    cache_ttl: CacheTtl
    system: str
    tools: tuple[ToolSpec, ...]
    data: bytes

    def fits(self, prompt: Prompt) -> bool:
        return self.system == prompt.system and self.tools == prompt.tools


class WireFormat(ABC):
    """Encodes prompts and decodes replies. Lives as long as the session and caches fragments.
    `mark_end` is the end of fragments that can carry a cache mark; b"" if none can."""

    path: ClassVar[str]
    reader_type: ClassVar[type[ReplyReader]]
    text_type: ClassVar[str] = "text"
    stream_fields: ClassVar[JsonObject] = {"stream": True}
    mark_end: ClassVar[bytes] = b""
    _heads: ClassVar[deque[_Head]] = deque(maxlen=4)

    def __init__(
        self,
        endpoint: Endpoint,
        profile: ModelProfile,
        *,
        cache_ttl: CacheTtl,
        pictures: ImageLoader,
    ) -> None:
        self.fragments = Fragments(self._fragment)
        self._endpoint = endpoint
        self._profile = profile
        self._cache_ttl: CacheTtl = cache_ttl
        self._pictures = pictures
        self._latest_head: _Head | None = None
        self._conversation = ConversationFields(endpoint, profile)

    @property
    def url(self) -> str:
        return self._endpoint.url.rstrip("/") + self.path

    @property
    def headers(self) -> dict[str, str]:
        return request_headers(self._endpoint) | self._conversation.headers

    def reader(self, *, used_ids: set[str], message_count: int) -> ReplyReader:
        builder = ReplyBuilder(
            issuer=self._endpoint.issuer, used_ids=used_ids, message_count=message_count
        )
        return self.reader_type(self._endpoint, builder)

    def encode(self, prompt: Prompt, messages: tuple[Message, ...]) -> bytes:
        """Encode the request body. `messages` are the repaired messages of the prompt."""
        profile = self._profile
        self._conversation.update(prompt, messages)
        head = self._head(prompt)
        fragments = self.fragments.of(messages)
        if self._marks:
            fragments = _add_cache_marks(fragments, self._cache_ttl, on=self.mark_end)
        fields = self._fields(prompt, messages, head, fragments)
        fields |= effort_fields(profile, prompt.effort) | self._conversation.fields
        if profile.streams:
            fields |= self.stream_fields
        fields |= profile.extra
        sent = {name: value for name, value in fields.items() if name not in profile.omit}
        end = b"]," + self._json(sent)[1:] if sent else b"]}"
        first, *others = self._merge(messages, fragments)
        # One copy: requests of long sessions are large.
        if not others:
            return head + first + end
        return b",".join((head + first, *others[:-1], others[-1] + end))

    @abstractmethod
    def _opening(self, prompt: Prompt) -> bytes:
        """Return the request up to the messages: model, tools and system text."""

    @abstractmethod
    def _fields(
        self, prompt: Prompt, messages: tuple[Message, ...], head: bytes, fragments: list[bytes]
    ) -> JsonObject:
        """Return the fields after the messages, without those that all formats share."""

    @abstractmethod
    def _fragment(self, message: Message) -> bytes:
        """Encode one message."""

    @abstractmethod
    def _call(self, call: ToolCall) -> JsonObject: ...

    @abstractmethod
    def _image(self, media_type: str, data: str) -> JsonObject:
        """Return an image part; `data` is base64."""

    def _merge(self, messages: tuple[Message, ...], fragments: list[bytes]) -> list[bytes]:
        """Join messages, in formats that send several as one."""
        return fragments

    @property
    def _marks(self) -> bool:
        return bool(self.mark_end) and self._profile.marks != "off"

    def _head(self, prompt: Prompt) -> bytes:
        """Return the encoded opening. It is encoded again only when system text or tools change;
        sessions with the same head share it."""
        head = self._latest_head
        if head is None or not head.fits(prompt):
            head = next((head for head in self._heads if self._shares(head, prompt)), None)
        if head is None:
            data = self._opening(prompt)
            inputs = (self._endpoint, self._profile, self._cache_ttl, prompt.system, prompt.tools)
            head = _Head(*inputs, data)
            self._heads.append(head)
        self._latest_head = head
        return head.data

    def _shares(self, head: _Head, prompt: Prompt) -> bool:
        return (
            head.endpoint is self._endpoint
            and head.profile is self._profile
            and head.cache_ttl == self._cache_ttl
            and head.fits(prompt)
        )

    def _open_list(self, fields: JsonObject, list_name: str, first: bytes = b"") -> bytes:
        """Return a JSON object with these fields, left open inside a list that may have a first
        item."""
        comma = b"," if first else b""
        return self._json(fields)[:-1] + b',"' + list_name.encode() + b'":[' + first + comma

    def _system_text(self, prompt: Prompt) -> str:
        """Return the system text, plus the model's name if the profile says the model misreports
        it; "" if there is only white space."""
        text = clean_text(prompt.system)
        if self._profile.says_name:
            model, server = self._endpoint.model, self._endpoint.name
            text = f"{text}\n\nYou are the model {model}, served by {server}.".lstrip()
        return text if text.strip() else ""

    def _output_limit(self, prompt: Prompt) -> int | None:
        """Return the output limit; None leaves it to the provider."""
        wanted, ceiling = prompt.max_tokens or self._profile.usual_output, self._profile.max_output
        return wanted if wanted is None or ceiling is None else min(wanted, ceiling)

    def _parts_in_order(
        self, message: AssistantMessage, encode_text: Callable[[str], JsonObject]
    ) -> list[JsonObject]:
        """Order the parts. Reasoning must be followed by what it led to, so it is never last."""
        parts: list[JsonObject] = []
        for part in message.parts:
            match part:
                case Reasoning() if self._profile.replay == "sealed" and self._sealed(part):
                    parts.append(part.sealed or {})
                case Text(text=text) if text.strip():
                    parts.append(encode_text(text.strip()))
                case ToolCall():
                    parts.append(self._call(part))
        while parts and parts[-1].get("type") in REASONING_TYPES:
            parts.pop()
        return parts

    def _sealed(self, part: Reasoning) -> bool:
        """Return whether this endpoint sealed the reasoning and may receive it again."""
        return part.sealed is not None and part.issuer == self._endpoint.issuer

    def _result_content(self, result: ToolResult) -> JsonValue:
        if not any(isinstance(part, Image) for part in result.parts):
            return result.text
        if self._profile.image_results:
            return self._content(result.parts)
        return "\n".join(_text_of_part(part) for part in result.parts)

    def _content(self, parts: tuple[Text | Image, ...]) -> JsonValue:
        """Return the encoded parts without text that is only white space, which some endpoints
        refuse."""
        encoded = [self._part(part) for part in parts]
        return [part for part in encoded if "text" not in part or part["text"].strip()]

    def _part(self, part: Text | Image) -> JsonObject:
        if isinstance(part, Image) and self._profile.images:
            data = self._pictures.base64_of(part)
            if data is not None:
                return self._image(part.media_type, data)
        return {"type": self.text_type, "text": _text_of_part(part)}

    def _json(self, value: object) -> bytes:
        encoded = encode(value)
        return ascii_json(encoded) if self._profile.ascii else encoded


def _text_of_part(part: Text | Image) -> str:
    """Return the text of a part; an image that is not sent is replaced by its name."""
    if isinstance(part, Text):
        return part.text
    return f"[picture: {Path(part.file).name}, not shown]"
