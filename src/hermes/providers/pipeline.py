"""The provider stack of one model, and its lowest layer, which sends the requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple, assert_never

from hermes.core.errors import ProviderError
from hermes.core.ports import Middleware, Provider, wrap_provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.core.world import Clock, World
from hermes.net.http import LOCAL_TIMEOUTS, HttpClient, HttpResponse, Timeouts
from hermes.net.sse import SseParser
from hermes.providers.completion import CompletingProvider
from hermes.providers.context_window import WindowLearner
from hermes.providers.endpoint import AWS_PREFIX, Endpoint
from hermes.providers.failure_patterns import RETRYABLE
from hermes.providers.failures import WEB_PAGE, build_error, classify, malformed_response
from hermes.providers.keys import Credential, KeyPool, KeyRotatingProvider
from hermes.providers.normalization import ConversationNormalizer
from hermes.providers.profile import CacheTtl, WireName
from hermes.providers.retry import AdaptiveProfile, RetryingProvider, RetryMode
from hermes.providers.stray_calls import StrayCallProvider
from hermes.providers.wire.events import coalesce, parse_json
from hermes.providers.wire.format import ImageLoader, ReplyReader, WireFormat
from hermes.providers.wire.usage import estimate_usage

# More than any model writes in one reply. An event of a stream has a hundred times the size of its
# text.
MAX_REPLY_CHARACTERS = 8_000_000
MAX_STREAM_BYTES = 512 * 1024 * 1024
MAX_WHOLE_BYTES = 32 * 1024 * 1024


def wire_format(name: WireName) -> type[WireFormat]:
    # Imported on demand: most runs need one of them.
    match name:
        case "chat":
            from hermes.providers.wire.chat import ChatWire

            return ChatWire
        case "responses":
            from hermes.providers.wire.responses import ResponsesWire

            return ResponsesWire
        case "messages":
            from hermes.providers.wire.messages import MessagesWire

            return MessagesWire
        case _:
            assert_never(name)


class KeyChoice(NamedTuple):
    """Several keys for one endpoint; `at` returns the endpoint with one of them."""

    keys: KeyPool
    at: Callable[[Credential], Endpoint]


def build_pipeline(
    endpoint: Endpoint,
    *,
    http: HttpClient,
    world: World,
    redact: Middleware | None = None,
    advise: Middleware | None = None,
    meter: Callable[[Endpoint], Middleware] | None = None,
    keys: KeyChoice | None = None,
    window_learner: WindowLearner | None = None,
    attempts: int = 3,
    max_timeouts: int = 5,
    mode: RetryMode | None = None,
    cache_ttl: CacheTtl = "5m",
    timeouts: Timeouts | None = None,
) -> Provider:
    """Build the stack of one model, from the caller to the socket: each entry wraps those below it.
    `meter` wraps every single request, including retries and requests with other keys. `timeouts`
    None chooses by whether the endpoint is local."""
    profile = endpoint.profile
    # Shared by the retries, which adapt it, and the requests.
    adaptive = AdaptiveProfile(profile)

    def request(target: Endpoint) -> Provider:
        """Build the lower half, which exists once per key."""
        lower = (
            meter(target) if meter else None,
            _text_calls(profile.tool_calls) if profile.tool_calls else StrayCallProvider,
            _local_server(target, http, window_learner) if target.is_local else None,
        )
        endpoint_provider = EndpointProvider(
            target,
            http=http,
            clock=world.clock,
            adaptive=adaptive,
            timeouts=timeouts or (LOCAL_TIMEOUTS if target.is_local else Timeouts()),
            cache_ttl=cache_ttl,
        )
        return wrap_provider(lower, endpoint_provider)

    upper = (
        redact,
        advise,
        lambda inner: CompletingProvider(inner, world),
        lambda inner: RetryingProvider(
            inner, world, adaptive=adaptive, attempts=attempts, max_timeouts=max_timeouts, mode=mode
        ),
    )
    if keys is None:
        return wrap_provider(upper, request(endpoint))
    return wrap_provider(upper, KeyRotatingProvider(keys.keys, lambda key: request(keys.at(key))))


def _text_calls(style: str) -> Middleware:
    """Return the middleware for models that write tool calls as text."""
    # Imported on demand: few models need it, and it has many styles.
    from hermes.providers.textcalls.provider import TextCallProvider

    return lambda inner: TextCallProvider(inner, style)


def _local_server(
    endpoint: Endpoint, http: HttpClient, window_learner: WindowLearner | None
) -> Middleware:
    """Return the middleware that reports truncation and refusals of local servers."""
    from hermes.providers.local_server import LocalServerProvider

    learned = window_learner.record_reported if window_learner else None
    return lambda inner: LocalServerProvider(inner, endpoint, http=http, learned=learned)


class EndpointProvider:
    """Sends one request to an endpoint and decodes the reply. There is one per session, because it
    caches encoded messages. A reply that breaks off after visible output ends in a Reply with stop
    "cut"; otherwise the error is raised."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        http: HttpClient,
        clock: Clock,
        adaptive: AdaptiveProfile,
        timeouts: Timeouts,
        cache_ttl: CacheTtl = "5m",
    ) -> None:
        self._endpoint = endpoint
        self._http = http
        self._clock = clock
        self._adaptive = adaptive
        self._timeouts = timeouts
        self._cache_ttl: CacheTtl = cache_ttl
        self._normalizer = ConversationNormalizer()
        self._pictures = ImageLoader()
        self._profile = adaptive.profile
        self._wire = self._new_wire()

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        body = await self._encode(prompt)
        reader = self._wire.reader(
            used_ids=self._normalizer.ids, message_count=len(prompt.messages)
        )
        try:
            async with aclosing(self._ask(body, reader)) as deltas:
                async for delta in deltas:
                    yield delta
        except ProviderError as error:
            # When a retry may succeed, partial output is worth keeping.
            if error.reason not in RETRYABLE or not reader.builder.has_visible_output:
                raise
        for delta in reader.builder.finish():
            yield delta
        message = reader.message()
        if message.stop == "cut" and not (message.text or message.calls):
            raise build_error(self._endpoint, "cut")
        yield Reply(
            message=message,
            usage=reader.usage or estimate_usage(prompt, message),
            model=reader.model or self._endpoint.model,
            provider=self._endpoint.name,
        )

    async def _encode(self, prompt: Prompt) -> bytes:
        if self._adaptive.profile is not self._profile:
            self._profile = self._adaptive.profile
            self._wire = self._new_wire()
        messages = self._normalizer.normalize(prompt.messages)
        await self._pictures.load(self._wire.fragments.missing(messages))
        body = self._wire.encode(prompt, messages)
        self._pictures.clear()
        return body

    def _new_wire(self) -> WireFormat:
        kind = wire_format(self._endpoint.wire)
        return kind(
            self._endpoint, self._profile, cache_ttl=self._cache_ttl, pictures=self._pictures
        )

    async def _ask(self, body: bytes, reader: ReplyReader) -> AsyncGenerator[Delta]:
        wire, streams = self._wire, self._profile.streams
        timeouts = self._timeouts if streams else self._timeouts.for_unstreamed()
        headers = wire.headers
        if self._endpoint.key.startswith(AWS_PREFIX):
            headers |= self._signature(wire.url, headers["content-type"], body)
        exchange = self._http.post(wire.url, body=body, headers=headers, timeouts=timeouts)
        async with exchange as response:
            if not 200 <= response.status < 300:
                raise classify(
                    self._endpoint,
                    status=response.status,
                    body=await response.read_error(),
                    headers=response.headers,
                    now=self._clock.now(),
                )
            read = self._read_stream if _is_stream(response, streams) else self._read_whole
            async with aclosing(read(response, reader)) as deltas:
                async for delta in deltas:
                    yield delta

    def _signature(self, url: str, content_type: str, body: bytes) -> dict[str, str]:
        from hermes.providers.aws_signature import parse_credentials, sign

        credentials = parse_credentials(self._endpoint.key)
        assert credentials is not None
        signed = {"content-type": content_type}
        return sign(credentials, "POST", url, signed, body, at=self._clock.now())

    async def _read_stream(
        self, response: HttpResponse, reader: ReplyReader
    ) -> AsyncGenerator[Delta]:
        events = SseParser()
        begun = newest = self._clock.monotonic()
        received = 0
        async with aclosing(response.chunks()) as chunks:
            async for chunk in chunks:
                received += len(chunk)
                new_events = events.feed(chunk)
                now = self._clock.monotonic()
                self._check_bounds(received, reader.builder.size, now - begun)
                quiet = 0.0 if new_events or self._timeouts.stall_policy else now - newest
                if quiet > self._timeouts.stale:
                    raise build_error(self._endpoint, "timeout", detail="only keep-alives arrived")
                newest = now if new_events else newest
                for delta in coalesce(reader, new_events):
                    yield delta
                if reader.closed:
                    break
            else:
                for delta in coalesce(reader, events.finish()):
                    yield delta
                reader.run_out()
        await response.drain()

    def _check_bounds(self, received: int, size: int, seconds: float) -> None:
        """Raise an error for a reply that does not end. It is not worth another attempt."""
        detail = ""
        if size > MAX_REPLY_CHARACTERS:
            detail = f"its reply has more than {MAX_REPLY_CHARACTERS:,} characters"
        elif received > MAX_STREAM_BYTES:
            detail = f"its reply has more than {MAX_STREAM_BYTES:,} bytes"
        elif seconds > self._timeouts.total and not self._timeouts.stall_policy:
            detail = f"its reply did not end within {self._timeouts.total:.0f} seconds"
        if detail:
            raise build_error(self._endpoint, "endless_reply", detail=detail)

    async def _read_whole(
        self, response: HttpResponse, reader: ReplyReader
    ) -> AsyncGenerator[Delta]:
        body = await response.read(MAX_WHOLE_BYTES + 1)
        if len(body) > MAX_WHOLE_BYTES:
            detail = f"its reply has more than {MAX_WHOLE_BYTES:,} bytes"
            raise build_error(self._endpoint, "endless_reply", detail=detail)
        value = parse_json(body)
        if not isinstance(value, dict):
            shown = body[:4_000].decode("utf-8", "replace")
            is_page = shown.lstrip().startswith("<")
            detail = WEB_PAGE if is_page else "the response is not JSON"
            raise malformed_response(self._endpoint, detail, body=shown)
        for delta in reader.read(value):
            yield delta


def _is_stream(response: HttpResponse, asked: bool) -> bool:
    """Return whether a response is a stream. Servers may stream unasked, or not stream when asked;
    most say which."""
    if response.media_type == "text/event-stream":
        return True
    if response.media_type in ("application/json", "text/html"):
        return False
    return asked
