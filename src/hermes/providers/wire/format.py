"""The protocol of the three wire formats and the parts of a request they share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple, Protocol

from hermes.codec.json import encode_sorted
from hermes.codec.values import JsonObject
from hermes.core.messages import AssistantMessage, Message, Reasoning, Usage
from hermes.core.prompt import Delta, Prompt
from hermes.providers.endpoint import Endpoint
from hermes.providers.profile import MarkLife, ModelProfile
from hermes.providers.scrub import clean_text
from hermes.providers.sse import SseEvent
from hermes.providers.wire.draft import ReplyBuilder
from hermes.providers.wire.fragments import Fragments, json_bytes

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
