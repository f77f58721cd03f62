"""What the three wire formats have in common: their protocol and the frame of a request."""

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
from hermes.providers.wire.draft import Draft
from hermes.providers.wire.fragments import Fragments, json_bytes

MESSAGES_VERSION = "2023-06-01"


class Reader(Protocol):
    """Reads one answer, as a stream of events or as a whole."""

    draft: Draft

    @property
    def ended(self) -> bool:
        """The server said that the answer is complete."""
        ...

    @property
    def closed(self) -> bool:
        """The server said that nothing more will come."""
        ...

    @property
    def model(self) -> str:
        """Who answered, in the server's words; "" when it did not say."""
        ...

    @property
    def usage(self) -> Usage | None: ...

    def words(self, event: SseEvent) -> str | None:
        """What the draft is to say of an event that tells nothing else; None when there may be
        more to it, and it must be fed."""
        ...

    def feed(self, event: SseEvent) -> Iterator[Delta]:
        """Raises ProviderError when the event tells of one or cannot be read."""
        ...

    def run_out(self) -> None:
        """The stream is over in good order, whether its end was announced or not."""
        ...

    def read(self, body: JsonObject) -> Iterator[Delta]:
        """A whole answer that was not streamed."""
        ...

    def message(self) -> AssistantMessage:
        """What came so far; its stop is "cut" unless the answer has ended."""
        ...


class Wire(Protocol):
    """Encodes prompts and reads answers. Lives as long as the session: fragments are kept."""

    fragments: Fragments

    @property
    def url(self) -> str: ...

    @property
    def headers(self) -> dict[str, str]: ...

    def encode(self, prompt: Prompt, messages: tuple[Message, ...]) -> bytes:
        """The request body. `messages` are those of the prompt, made valid."""
        ...

    def reader(self, *, taken: set[str], place: int) -> Reader: ...


class _Made(NamedTuple):
    """A beginning, and all that it was made of."""

    endpoint: Endpoint
    profile: ModelProfile
    life: MarkLife
    prompt: Prompt
    data: bytes


class Head:
    """The beginning of a request, encoded anew only when system text or tools change. Sessions that
    begin alike share it."""

    _newest: ClassVar[deque[_Made]] = deque(maxlen=4)

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
        self._made: _Made | None = None

    def __call__(self, prompt: Prompt) -> bytes:
        made = self._made
        if made is None or not _alike(made.prompt, prompt):
            made = self._made = self._shared(prompt) or self._new(prompt)
        return made.data

    def _shared(self, prompt: Prompt) -> _Made | None:
        for made in self._newest:
            if (
                made.endpoint is self._endpoint
                and made.profile is self._profile
                and made.life == self._life
                and _alike(made.prompt, prompt)
            ):
                return made
        return None

    def _new(self, prompt: Prompt) -> _Made:
        data = self._build(prompt)
        bare = Prompt(system=prompt.system, messages=(), tools=prompt.tools)
        made = _Made(self._endpoint, self._profile, self._life, bare, data)
        self._newest.append(made)
        return made


def _alike(one: Prompt, other: Prompt) -> bool:
    return one.system == other.system and one.tools == other.tools


def opening(fields: JsonObject, list_name: str, first: bytes, profile: ModelProfile) -> bytes:
    """A JSON object with these fields, left open inside a list that may have a first item."""
    start = json_bytes(fields, ascii=profile.ascii)[:-1]
    comma = b"," if first else b""
    return start + b',"' + list_name.encode() + b'":[' + first + comma


def closing(fields: JsonObject, profile: ModelProfile) -> bytes:
    """The end of the list and of the object, with these fields and those of the profile."""
    wanted = {**fields, **profile.extra}
    kept = {name: value for name, value in wanted.items() if name not in profile.omit}
    if not kept:
        return b"]}"
    return b"]," + json_bytes(kept, ascii=profile.ascii)[1:]


def output_limit(prompt: Prompt, profile: ModelProfile) -> int | None:
    """How long the answer may be; None leaves it to the provider."""
    wanted = prompt.max_tokens or profile.usual_output
    if wanted is None or profile.max_output is None:
        return wanted
    return min(wanted, profile.max_output)


def system_text(prompt: Prompt, endpoint: Endpoint, profile: ModelProfile) -> str:
    """The system text, with the model's name where it would tell a wrong one by itself."""
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


def is_own(part: Reasoning, endpoint: Endpoint) -> bool:
    """The endpoint sealed this thought and may see it again."""
    return part.sealed is not None and part.issuer == endpoint.issuer


def is_worth_sending(part: JsonObject) -> bool:
    """Everything but text of white space only, which some endpoints refuse as empty."""
    text = part.get("text")
    return not isinstance(text, str) or bool(text.strip())


def sorted_text(arguments: JsonObject) -> str:
    """Arguments as the string that two of the formats hold, always with the same bytes."""
    return encode_sorted(arguments).decode()
