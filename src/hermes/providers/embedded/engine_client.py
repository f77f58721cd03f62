"""Fits prompts to the window of one model file and sends them to its engine."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import ProviderError
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolMessage,
    UserMessage,
    user_says,
)
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.core.world import World
from hermes.net.http import LOCAL_TIMEOUTS, HttpClient
from hermes.providers.embedded.engines import Engine, EnginePool, crash_error
from hermes.providers.embedded.model_file import ModelFile, format_size
from hermes.providers.endpoint import Endpoint
from hermes.providers.pipeline import EndpointProvider
from hermes.providers.profile import ModelProfile
from hermes.providers.retry import AdaptiveProfile, RetryingProvider

CUT = "\n[… left out …]\n"

# Before the model has counted a prompt: few texts need more than one token per three bytes.
_FIRST_BYTES_PER_TOKEN = 3.0
_LEAST_BYTES_PER_TOKEN = 0.5
_MOST_BYTES_PER_TOKEN = 5.0
# Token density varies between texts; a little less is better than a refusal.
_CAUTION = 0.95
_MESSAGE_TOKENS = 8
_ANSWER_SHARE = 4
_MOST_ANSWER = 1_024
_LEAST_ANSWER = 64
# After a cut the conversation may grow for a while before the next one, so that the prompt prefix
# stays stable for the cache.
_KEPT_SHARE = 0.6
SYSTEM_SHARE = 0.75
"""The maximum share of a prompt for instructions and tools."""
_COUNTED = re.compile(r'"n_prompt_tokens"\s*:\s*(\d+)')


class PromptFitter:
    """Shortens prompts to the context window of a local model. There is one per session, because it
    remembers where the visible part of the conversation starts."""

    def __init__(self, window: int) -> None:
        self.window = window
        self._bytes_per_token = _FIRST_BYTES_PER_TOKEN
        self._start = 0
        self._first: Message | None = None

    @property
    def budget(self) -> int:
        """The maximum tokens of a prompt; the rest is for the reply."""
        return self.window - min(_MOST_ANSWER, self.window // _ANSWER_SHARE)

    @property
    def is_cut(self) -> bool:
        """Earlier messages are cut."""
        return self._start > 0

    def fit(self, prompt: Prompt, *, most_tokens: int) -> Prompt:
        """Return the prompt to send, with an output limit: the prompt's own or `most_tokens`, at
        most what the window leaves."""
        system = self.clip(prompt.system, int(self.budget * SYSTEM_SHARE))
        messages = self._visible(prompt.messages, self.budget - self.tokens(system))
        used = self.tokens(system) + sum(map(self._size, messages))
        available = max(_LEAST_ANSWER, self.window - used)
        return replace(
            prompt,
            system=system,
            messages=messages,
            max_tokens=min(prompt.max_tokens or most_tokens, available),
        )

    def tokens(self, text: str) -> int:
        return int(len(text.encode("utf-8", "replace")) / self._bytes_per_token) + 1

    def clip(self, text: str, tokens: int) -> str:
        """Keep the beginning and the end of a text."""
        if self.tokens(text) <= tokens:
            return text
        characters = int(len(text) * tokens / self.tokens(text)) - len(CUT)
        head, tail = max(0, characters * 2 // 3), max(0, characters // 3)
        return text[:head] + CUT + (text[-tail:] if tail else "")

    def learn(self, prompt: Prompt, counted: int) -> None:
        """Adjust the estimate to the model's token count of this prompt."""
        texts = [prompt.system, *map(_text_of, prompt.messages)]
        size = sum(len(text.encode("utf-8", "replace")) for text in texts)
        net = max(1, counted - _MESSAGE_TOKENS * len(texts))
        found = size / net * _CAUTION
        self._bytes_per_token = min(_MOST_BYTES_PER_TOKEN, max(_LEAST_BYTES_PER_TOKEN, found))

    def learn_refusal(self, prompt: Prompt, error_body: str) -> None:
        """Adjust the estimate after the prompt turned out too long."""
        counted = _COUNTED.search(error_body)
        before = self._bytes_per_token
        if counted:
            self.learn(prompt, int(counted[1]))
        # A second refusal must not lead to the same prompt.
        self._bytes_per_token = min(self._bytes_per_token, before * _CAUTION)

    def _visible(self, messages: tuple[Message, ...], available: int) -> tuple[Message, ...]:
        start = self._start
        if start >= len(messages) or messages[start] != self._first:
            # The conversation was rewound or compacted since.
            self._start = 0
        if sum(map(self._size, messages[self._start :])) > available:
            self._start = self._find_start(messages, int(available * _KEPT_SHARE))
        kept = messages[self._start :]
        self._first = kept[0] if kept else None
        if len(kept) == 1 and self._size(kept[0]) > available:
            clipped = self.clip(_text_of(kept[0]), available - _MESSAGE_TOKENS)
            if isinstance(kept[0], AssistantMessage):
                return (replace(kept[0], parts=(Text(text=clipped),)),)
            return (user_says(clipped),)
        return kept

    def _find_start(self, messages: tuple[Message, ...], available: int) -> int:
        """Return the start of the longest tail that fits; at least the last message stays."""
        start = len(messages) - 1
        used = self._size(messages[start])
        while start > 0 and used + self._size(messages[start - 1]) <= available:
            start -= 1
            used += self._size(messages[start])
        return start

    def _size(self, message: Message) -> int:
        return self.tokens(_text_of(message)) + _MESSAGE_TOKENS


def _text_of(message: Message) -> str:
    match message:
        case UserMessage(text=text) | AssistantMessage(text=text):
            return text
        case ToolMessage(results=results):
            return "\n".join(result.text for result in results)


NAME = "embedded"

_MAX_OVERFLOWS = 4
_MAX_CRASHES = 1
_MAX_DISCONNECTS = 2
# A process ends a moment after its connections.
_DYING_SECONDS = 0.1


class GenerationSettings(Value):
    """The settings of a request to a local engine."""

    max_tokens: int  # limits replies that have no other limit
    sampling: JsonObject = {}


class EngineClient:
    """Sends the requests of one session to an engine. It restarts a crashed engine once per reply,
    and repeats at once a request on a connection that the engine just closed."""

    def __init__(
        self,
        weights: ModelFile,
        *,
        http: HttpClient,
        world: World,
        engines: EnginePool,
        threads: int | None,
        fitter: PromptFitter,
        generation: GenerationSettings,
    ) -> None:
        self._weights = weights
        self._http = http
        self._world = world
        self._engines = engines
        self._threads = threads
        self._fitter = fitter
        self._generation = generation
        self._current: tuple[str, JsonObject | None, Provider] | None = None
        self._reported_cut = False

    async def reply(
        self, prompt: Prompt, schema: JsonObject | None = None
    ) -> AsyncGenerator[Delta | Reply]:
        """Stream a reply. With a schema the reply is JSON of that form."""
        streamed, overflows, crashes, disconnects = False, 0, 0, 0
        while True:
            if self._engines.find_running(self._weights) is None:
                size = format_size(self._weights.size)
                yield Notice(text=f"Loading {self._weights.path.name} ({size})…")
            engine = await self._engines.start(self._weights, threads=self._threads)
            sent = self._fitter.fit(prompt, most_tokens=self._generation.max_tokens)
            if self._fitter.is_cut and not self._reported_cut:
                self._reported_cut = True
                window = self._fitter.window
                text = (
                    f"The conversation is longer than the model's window ({window} tokens); it sees"
                    " only the newest part."
                )
                yield Notice(text=text, kind="warn")
            try:
                async with aclosing(self._provider(engine, schema).reply(sent)) as stream:
                    async for item in stream:
                        streamed |= not isinstance(item, Notice | Reply)
                        if isinstance(item, Reply):
                            self._fitter.learn(sent, item.usage.prompt)
                        yield item
                return
            except ProviderError as error:
                if error.reason == "context_overflow" and overflows < _MAX_OVERFLOWS:
                    overflows += 1
                    self._fitter.learn_refusal(sent, error.body)
                    continue
                if await self._is_dead(engine, error):
                    if crashes >= _MAX_CRASHES:
                        raise crash_error(self._weights, engine.describe_exit()) from error
                    crashes += 1
                elif error.reason == "cut" and disconnects < _MAX_DISCONNECTS:
                    disconnects += 1
                else:
                    raise
            if streamed:
                streamed = False
                yield Restarted()

    async def _is_dead(self, engine: Engine, error: ProviderError) -> bool:
        if engine.alive and error.reason in ("cut", "timeout"):
            await self._world.clock.sleep(_DYING_SECONDS)
        return not engine.alive

    def _provider(self, engine: Engine, schema: JsonObject | None) -> Provider:
        if self._current is None or self._current[:2] != (engine.url, schema):
            self._current = (engine.url, schema, self._build_provider(engine, schema))
        return self._current[2]

    def _build_provider(self, engine: Engine, schema: JsonObject | None) -> Provider:
        weights = self._weights
        extra = dict(self._generation.sampling)
        if schema is not None:
            form = {"name": "answer", "schema": schema, "strict": True}
            extra["response_format"] = {"type": "json_schema", "json_schema": form}
            if weights.switchable:
                # The schema has no place for reasoning; open reasoning would swallow the reply.
                extra["chat_template_kwargs"] = {"enable_thinking": False}
        profile = ModelProfile(
            window=weights.window,
            effort="template" if weights.switchable else "none",
            images=False,
            image_results=False,
            extra=extra,
        )
        endpoint = Endpoint(
            name=NAME,
            wire="chat",
            url=engine.url,
            model=weights.path.stem,
            key=engine.key,
            profile=profile,
        )
        adaptive = AdaptiveProfile(profile)
        direct = EndpointProvider(
            endpoint,
            http=self._http,
            clock=self._world.clock,
            adaptive=adaptive,
            timeouts=LOCAL_TIMEOUTS,
        )
        # Our own process refuses the same request every time.
        return RetryingProvider(direct, self._world, adaptive=adaptive, attempts=1)
