"""The protocol of the wire formats, and the parts of a request they share."""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from hermes.codec.json import encode, encode_sorted
from hermes.codec.values import JsonObject
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    ToolMessage,
    Usage,
    UserMessage,
)
from hermes.core.prompt import Delta, Prompt
from hermes.net.sse import SseEvent
from hermes.providers.endpoint import Endpoint
from hermes.providers.normalization import ascii_json, clean_text
from hermes.providers.profile import MarkLife, ModelProfile
from hermes.providers.wire.reply_builder import ReplyBuilder

_MAX_MARKS = 3
"""Number of messages at the end with a cache mark, besides the system text."""

# A fragment with this end closes an object inside the list that is its last field; a mark is
# inserted before the end.
_MARKABLE = b"}]}"
TEXT_PART_END = b'"}]}'
"""The same for an object that ends with a string: a text part does, an image does not."""

Encode = Callable[[Message], bytes]


class Fragments:
    """Encoded messages of the latest prompt, keyed by identity. A prompt that only grew costs only
    its new messages."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._messages: tuple[Message, ...] = ()
        self._bytes: list[bytes] = []

    def missing(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages that are not encoded yet."""
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


def join_request(head: bytes, fragments: list[bytes], end: bytes) -> bytes:
    """Joins the request in one copy: requests of long sessions are large."""
    if len(fragments) == 1:
        return head + fragments[0] + end
    return b",".join((head + fragments[0], *fragments[1:-1], fragments[-1] + end))


def json_bytes(value: object, *, ascii: bool) -> bytes:
    encoded = encode(value)
    return ascii_json(encoded) if ascii else encoded


def cache_mark(life: MarkLife) -> JsonObject:
    return {"type": "ephemeral"} if life == "5m" else {"type": "ephemeral", "ttl": life}


def add_cache_marks(
    fragments: list[bytes], life: MarkLife, *, on: bytes = _MARKABLE
) -> list[bytes]:
    """Adds cache marks to the last fragments that end with `on`."""
    addition = b',"cache_control":' + encode(cache_mark(life))
    result = list(fragments)
    left = _MAX_MARKS
    for place in range(len(result) - 1, -1, -1):
        if not left:
            break
        if result[place].endswith(on):
            result[place] = result[place][: -len(_MARKABLE)] + addition + _MARKABLE
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
        """None when the file is missing or too large to send."""
        return self._data.get(image.file)

    def url_of(self, image: Image) -> str | None:
        data = self._data.get(image.file)
        return None if data is None else f"data:{image.media_type};base64,{data}"


def image_placeholder(image: Image) -> str:
    """Replaces an image that is not sent."""
    return f"[picture: {Path(image.file).name}, not shown]"


def images_in(messages: Iterable[Message]) -> Iterator[Image]:
    for message in messages:
        if isinstance(message, UserMessage):
            yield from (part for part in message.parts if isinstance(part, Image))
        elif isinstance(message, ToolMessage):
            for result in message.results:
                yield from (part for part in result.parts if isinstance(part, Image))


def _read_all(files: list[str]) -> dict[str, str]:
    return {file: data for file in files if (data := _read(Path(file))) is not None}


def _read(path: Path) -> str | None:
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        return base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError:
        return None


MESSAGES_VERSION = "2023-06-01"


class ReplyReader(Protocol):
    """Decodes one reply, streamed or whole."""

    draft: ReplyBuilder

    @property
    def ended(self) -> bool:
        """The server marked the reply as complete."""
        ...

    @property
    def closed(self) -> bool:
        """The server announced that no more data follows."""
        ...

    @property
    def model(self) -> str:
        """The model that replied, as named by the server; "" if it did not say."""
        ...

    @property
    def usage(self) -> Usage | None: ...

    def words(self, event: SseEvent) -> str | None:
        """Visible text of an event that holds nothing else; None if the event needs `feed`."""
        ...

    def feed(self, event: SseEvent) -> Iterator[Delta]:
        """Raises ProviderError when the event reports an error or cannot be parsed."""
        ...

    def run_out(self) -> None:
        """Called when the stream ended cleanly, with or without an announced end."""
        ...

    def read(self, body: JsonObject) -> Iterator[Delta]:
        """Decodes a reply that was not streamed."""
        ...

    def message(self) -> AssistantMessage:
        """The reply so far; its stop is "cut" unless the reply has ended."""
        ...


class WireFormat(Protocol):
    """Encodes prompts and decodes replies. Lives as long as the session and caches fragments."""

    fragments: Fragments

    @property
    def url(self) -> str: ...

    @property
    def headers(self) -> dict[str, str]: ...

    def encode(self, prompt: Prompt, messages: tuple[Message, ...]) -> bytes:
        """The request body. `messages` are the repaired messages of the prompt."""
        ...

    def reader(self, *, taken: set[str], place: int) -> ReplyReader: ...


class _CachedHead(NamedTuple):
    """An encoded head and the inputs it was built from."""

    endpoint: Endpoint
    profile: ModelProfile
    life: MarkLife
    prompt: Prompt
    data: bytes


class RequestHead:
    """Encodes the head of a request again only when system text or tools change. Sessions with the
    same head share it."""

    _cache: ClassVar[deque[_CachedHead]] = deque(maxlen=4)

    def __init__(
        self,
        build: Callable[[Prompt], bytes],
        endpoint: Endpoint,
        profile: ModelProfile,
        life: MarkLife,
    ) -> None:
        self._build = build
        self._endpoint = endpoint
        self._profile = profile
        self._life = life
        self._cached: _CachedHead | None = None

    def __call__(self, prompt: Prompt) -> bytes:
        cached = self._cached
        if cached is None or not _has_same_head(cached.prompt, prompt):
            cached = self._cached = self._find_shared(prompt) or self._build_cached(prompt)
        return cached.data

    def _find_shared(self, prompt: Prompt) -> _CachedHead | None:
        for cached in self._cache:
            if (
                cached.endpoint is self._endpoint
                and cached.profile is self._profile
                and cached.life == self._life
                and _has_same_head(cached.prompt, prompt)
            ):
                return cached
        return None

    def _build_cached(self, prompt: Prompt) -> _CachedHead:
        data = self._build(prompt)
        bare = Prompt(system=prompt.system, messages=(), tools=prompt.tools)
        cached = _CachedHead(self._endpoint, self._profile, self._life, bare, data)
        self._cache.append(cached)
        return cached


def _has_same_head(one: Prompt, other: Prompt) -> bool:
    return one.system == other.system and one.tools == other.tools


def opening(fields: JsonObject, list_name: str, first: bytes, profile: ModelProfile) -> bytes:
    """A JSON object with these fields, left open inside a list that may have a first item."""
    start = json_bytes(fields, ascii=profile.ascii)[:-1]
    comma = b"," if first else b""
    return start + b',"' + list_name.encode() + b'":[' + first + comma


def closing(fields: JsonObject, profile: ModelProfile) -> bytes:
    """Closes list and object, with these fields and the profile's extra fields."""
    wanted = {**fields, **profile.extra}
    sent = {name: value for name, value in wanted.items() if name not in profile.omit}
    if not sent:
        return b"]}"
    return b"]," + json_bytes(sent, ascii=profile.ascii)[1:]


def output_limit(prompt: Prompt, profile: ModelProfile) -> int | None:
    """The output limit; None leaves it to the provider."""
    wanted = prompt.max_tokens or profile.usual_output
    if wanted is None or profile.max_output is None:
        return wanted
    return min(wanted, profile.max_output)


def system_text(prompt: Prompt, endpoint: Endpoint, profile: ModelProfile) -> str:
    """The system text, plus the model's name if the profile says the model misreports it."""
    text = clean_text(prompt.system)
    if not profile.says_name:
        return text
    return f"{text}\n\nYou are the model {endpoint.model}, served by {endpoint.name}.".lstrip()


def request_headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    if endpoint.wire == "messages":
        headers["anthropic-version"] = MESSAGES_VERSION
    if endpoint.key and endpoint.auth == "x-api-key":
        headers["x-api-key"] = endpoint.key
    elif endpoint.key and endpoint.auth == "api-key":
        headers["x-api-key" if endpoint.wire == "messages" else "api-key"] = endpoint.key
    elif endpoint.key:
        headers["authorization"] = f"Bearer {endpoint.key}"
    return headers | {name.lower(): value for name, value in endpoint.headers.items()}


def is_sealed_by(part: Reasoning, endpoint: Endpoint) -> bool:
    """True if this endpoint sealed the reasoning and may receive it again."""
    return part.sealed is not None and part.issuer == endpoint.issuer


def is_worth_sending(part: JsonObject) -> bool:
    """False for white-space-only text, which some endpoints refuse as empty."""
    text = part.get("text")
    return not isinstance(text, str) or bool(text.strip())


def sorted_text(arguments: JsonObject) -> str:
    """Arguments as a JSON string with sorted keys, so that the bytes are stable."""
    return encode_sorted(arguments).decode()
