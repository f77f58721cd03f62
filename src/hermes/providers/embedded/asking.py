"""Sends prompts to the model of one file: starts its engine and fits prompts to its window."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ProviderError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.core.world import World
from hermes.providers.direct import EndpointProvider
from hermes.providers.embedded.engines import Engine, EnginePool, crash_error
from hermes.providers.embedded.fitting import PromptFitter
from hermes.providers.embedded.weights import ModelFile, format_size
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import LOCAL_TIMEOUTS, HttpClient
from hermes.providers.profile import ModelProfile
from hermes.providers.repairs import AdaptiveProfile
from hermes.providers.retrying import RetryingProvider

NAME = "embedded"

_MAX_OVERFLOWS = 4
_MAX_CRASHES = 1
_MAX_DISCONNECTS = 2
# A process ends a moment after its connections.
_DYING_SECONDS = 0.1


class GenerationSettings(Value):
    """Generation settings. `most_tokens` limits replies that have no other limit."""

    max_tokens: int
    sampling: JsonObject = {}


class EngineClient:
    """One per session. A crashed engine is restarted once per reply. A request on a connection that
    the engine just closed is repeated at once."""

    def __init__(
        self,
        weights: ModelFile,
        *,
        http: HttpClient,
        world: World,
        engines: EnginePool,
        threads: int | None,
        fitting: PromptFitter,
        manner: GenerationSettings,
    ) -> None:
        self._weights = weights
        self._http = http
        self._world = world
        self._engines = engines
        self._threads = threads
        self._fitting = fitting
        self._manner = manner
        self._current: tuple[str, JsonObject | None, Provider] | None = None
        self._reported_cut = False

    async def reply(
        self, prompt: Prompt, *, schema: JsonObject | None = None
    ) -> AsyncGenerator[Delta | Reply]:
        """With a schema the reply is JSON of that form."""
        streamed, overflows, crashes, disconnects = False, 0, 0, 0
        while True:
            if self._engines.find_running(self._weights) is None:
                size = format_size(self._weights.size)
                yield Notice(text=f"Loading {self._weights.path.name} ({size})…")
            engine = await self._engines.start(self._weights, threads=self._threads)
            sent = self._fitting.fit(prompt, most_tokens=self._manner.max_tokens)
            if notice := self._cut_notice():
                yield notice
            try:
                async with aclosing(self._provider(engine, schema).reply(sent)) as stream:
                    async for item in stream:
                        streamed |= not isinstance(item, Notice | Reply)
                        if isinstance(item, Reply):
                            self._fitting.learn(sent, item.usage.prompt)
                        yield item
                return
            except ProviderError as error:
                if error.reason == "context_overflow" and overflows < _MAX_OVERFLOWS:
                    overflows += 1
                    self._fitting.learn_refusal(sent, error.body)
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

    def _cut_notice(self) -> Notice | None:
        """Reported once, when the first messages are cut."""
        if self._reported_cut or not self._fitting.is_cut:
            return None
        self._reported_cut = True
        return Notice(
            text=f"The conversation is longer than the model's window ({self._fitting.window}"
            " tokens); it sees only the newest part.",
            kind="warn",
        )

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
        extra = dict(self._manner.sampling)
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
        fit = AdaptiveProfile(profile)
        direct = EndpointProvider(
            endpoint, http=self._http, clock=self._world.clock, fit=fit, timeouts=LOCAL_TIMEOUTS
        )
        # Our own process refuses the same request every time.
        return RetryingProvider(direct, self._world, fit=fit, attempts=1)
