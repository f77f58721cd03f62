"""Sends requests to one endpoint, and builds the provider stack around it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from hermes.codec.values import Value, replace
from hermes.core.errors import ProviderError, Reason
from hermes.core.messages import AssistantMessage, Usage
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.core.world import Clock, World
from hermes.net.http import LOCAL_TIMEOUTS, HttpClient, HttpResponse, Timeouts
from hermes.net.sse import SseParser
from hermes.providers.completion import OUTPUT_CAP, CompletingProvider
from hermes.providers.context_window import WindowLearner
from hermes.providers.endpoint import Endpoint
from hermes.providers.failures import build_error, classify, malformed_response
from hermes.providers.keys import Credential, KeyPool, KeyRotatingProvider
from hermes.providers.normalization import ConversationNormalizer
from hermes.providers.profile import MarkLife, MarkStyle, WireName
from hermes.providers.retry import EAGER_ATTEMPTS, AdaptiveProfile, RetryingProvider, RetryVariants
from hermes.providers.wire.chat import ChatWire
from hermes.providers.wire.events import coalesce, parse_json
from hermes.providers.wire.format import ImageLoader, ReplyReader, WireFormat
from hermes.providers.wire.messages import MessagesWire
from hermes.providers.wire.responses import ResponsesWire
from hermes.providers.wire.usage import estimate_usage

WIRE_FORMATS: dict[WireName, type[ChatWire] | type[ResponsesWire] | type[MessagesWire]] = {
    "chat": ChatWire,
    "responses": ResponsesWire,
    "messages": MessagesWire,
}

# After one of these errors a retry may succeed, so partial output is worth keeping.
_TRANSIENT: tuple[Reason, ...] = (
    "cut",
    "timeout",
    "overloaded",
    "server_error",
    "rate_limit",
    "upstream_rate_limit",
    "unknown",
)


class EndpointProvider:
    """One per session, because it caches encoded messages. A reply that breaks off after visible
    output ends in a Reply with stop "cut"; otherwise the error is raised."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        http: HttpClient,
        clock: Clock,
        fit: AdaptiveProfile,
        timeouts: Timeouts,
        life: MarkLife = "5m",
    ) -> None:
        self._endpoint = endpoint
        self._http = http
        self._clock = clock
        self._fit = fit
        self._timeouts = timeouts
        self._life: MarkLife = life
        self._grammar = ConversationNormalizer()
        self._pictures = ImageLoader()
        self._profile = fit.profile
        self._wire = self._new_wire()

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        body = await self._encode(prompt)
        reader = self._wire.reader(taken=self._grammar.ids, place=len(prompt.messages))
        try:
            async with aclosing(self._ask(body, reader)) as deltas:
                async for delta in deltas:
                    yield delta
        except ProviderError as error:
            if error.reason not in _TRANSIENT or not reader.draft.has_visible_output:
                raise
        for delta in reader.draft.finish():
            yield delta
        message = reader.message()
        if message.stop == "cut" and not (message.text or message.calls):
            raise build_error(self._endpoint, "cut")
        yield Reply(
            message=message,
            usage=_usage(prompt, reader, message),
            model=reader.model or self._endpoint.model,
            provider=self._endpoint.name,
        )

    async def _encode(self, prompt: Prompt) -> bytes:
        if self._fit.profile is not self._profile:
            self._profile = self._fit.profile
            self._wire = self._new_wire()
        messages = self._grammar.normalize(prompt.messages)
        await self._pictures.load(self._wire.fragments.missing(messages))
        body = self._wire.encode(prompt, messages)
        self._pictures.clear()
        return body

    def _new_wire(self) -> WireFormat:
        kind = WIRE_FORMATS[self._endpoint.wire]
        return kind(self._endpoint, self._profile, life=self._life, pictures=self._pictures)

    async def _ask(self, body: bytes, reader: ReplyReader) -> AsyncGenerator[Delta]:
        wire, streams = self._wire, self._profile.streams
        timeouts = self._timeouts if streams else self._timeouts.for_unstreamed()
        exchange = self._http.post(wire.url, body=body, headers=wire.headers, timeouts=timeouts)
        async with exchange as answer:
            if not 200 <= answer.status < 300:
                raise await self._refusal(answer)
            read = self._read_stream if _is_stream(answer, streams) else self._read_whole
            async with aclosing(read(answer, reader)) as deltas:
                async for delta in deltas:
                    yield delta

    async def _refusal(self, answer: HttpResponse) -> ProviderError:
        return classify(
            self._endpoint,
            status=answer.status,
            body=await answer.read_error(),
            headers=answer.headers,
            now=self._clock.now(),
        )

    async def _read_stream(
        self, answer: HttpResponse, reader: ReplyReader
    ) -> AsyncGenerator[Delta]:
        events = SseParser()
        newest = self._clock.monotonic()
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                found = events.feed(chunk)
                now = self._clock.monotonic()
                quiet = 0.0 if found or self._timeouts.patience else now - newest
                if quiet > self._timeouts.stale:
                    raise build_error(self._endpoint, "timeout", detail="only keep-alives arrived")
                newest = now if found else newest
                for delta in coalesce(reader, found):
                    yield delta
                if reader.closed:
                    break
            else:
                for delta in coalesce(reader, events.finish()):
                    yield delta
                reader.run_out()
        await answer.drain()

    async def _read_whole(self, answer: HttpResponse, reader: ReplyReader) -> AsyncGenerator[Delta]:
        body = await answer.read()
        value = parse_json(body)
        if not isinstance(value, dict):
            shown = body[:4_000].decode("utf-8", "replace")
            page = shown.lstrip().startswith("<")
            detail = (
                "the response is a web page, so the base URL may be wrong"
                if page
                else "the response is not JSON"
            )
            raise malformed_response(self._endpoint, detail, body=shown)
        for delta in reader.read(value):
            yield delta


def _is_stream(answer: HttpResponse, asked: bool) -> bool:
    """Servers may stream unasked, or not stream when asked; most say which."""
    if answer.media_type == "text/event-stream":
        return True
    if answer.media_type in ("application/json", "text/html"):
        return False
    return asked


def _usage(prompt: Prompt, reader: ReplyReader, message: AssistantMessage) -> Usage:
    return reader.usage or estimate_usage(prompt, message)


RequestWrapper = Callable[[Provider, Endpoint], Provider]
"""Wraps every single request, including retries and other keys: the meter."""


class ConnectSettings(Value):
    """User settings for requests. `marks=None` leaves cache marks to the model's profile;
    `timeouts=None` chooses by whether the endpoint is local."""

    attempts: int = 3
    silences: int = 5
    output_cap: int = OUTPUT_CAP
    marks: MarkStyle | None = None
    mark_life: MarkLife = "5m"
    timeouts: Timeouts | None = None


class KeyChoice:
    """Several keys for one endpoint; `at` returns the endpoint with one of them."""

    def __init__(self, keys: KeyPool, at: Callable[[Credential], Endpoint]) -> None:
        self.keys = keys
        self.at = at


def build_variants(
    endpoint: Endpoint,
    *,
    http: HttpClient,
    world: World,
    settings: ConnectSettings | None = None,
    gate: RequestWrapper | None = None,
    ring: KeyChoice | None = None,
    lessons: WindowLearner | None = None,
) -> RetryVariants:
    """The stack, innermost first: the request, truncation checks for local servers, tool calls in
    text, the meter, key rotation, retries, completion. Both variants share encoded messages."""
    settings = settings or ConnectSettings()
    profile = endpoint.profile
    if settings.marks is not None:
        profile = replace(profile, marks=settings.marks)
    fit = AdaptiveProfile(profile)

    def build(target: Endpoint) -> Provider:
        timeouts = settings.timeouts or (LOCAL_TIMEOUTS if target.is_local else Timeouts())
        provider: Provider = EndpointProvider(
            target,
            http=http,
            clock=world.clock,
            fit=fit,
            timeouts=timeouts,
            life=settings.mark_life,
        )
        if target.is_local:
            provider = _wrap_local(provider, target, http, lessons)
        if profile.tool_calls:
            provider = _wrap_text_calls(provider, profile.tool_calls)
        return gate(provider, target) if gate is not None else provider

    inner = (
        build(endpoint)
        if ring is None
        else KeyRotatingProvider(ring.keys, lambda key: build(ring.at(key)))
    )

    def complete(retrying: RetryingProvider) -> Provider:
        return CompletingProvider(retrying, world, output_cap=settings.output_cap)

    attempts, silences = settings.attempts, settings.silences
    return RetryVariants(
        eager=complete(
            RetryingProvider(
                inner, world, fit=fit, attempts=attempts, silences=silences, fewer=EAGER_ATTEMPTS
            )
        ),
        patient=complete(
            RetryingProvider(inner, world, fit=fit, attempts=attempts, silences=silences)
        ),
    )


def _wrap_local(
    inner: Provider, endpoint: Endpoint, http: HttpClient, lessons: WindowLearner | None
) -> Provider:
    from hermes.providers.local.server import LocalServerProvider

    return LocalServerProvider(
        inner, endpoint, http=http, learned=lessons.record_reported if lessons else None
    )


def _wrap_text_calls(inner: Provider, style: str) -> Provider:
    # Imported on demand: few models need it, and it has many styles.
    from hermes.providers.textcalls.provider import TextCallProvider

    return TextCallProvider(inner, style)
