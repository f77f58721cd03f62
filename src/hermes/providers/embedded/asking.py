"""Asks the model of one file: starts its engine, keeps the prompt inside its window."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ProviderError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.core.world import World
from hermes.providers.direct import Direct
from hermes.providers.embedded.engines import Engine, Engines, died
from hermes.providers.embedded.fitting import Fitting
from hermes.providers.embedded.weights import Weights, size_words
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import LOCAL_TIMEOUTS, Http
from hermes.providers.profile import ModelProfile
from hermes.providers.repairs import Fit
from hermes.providers.retrying import Retrying

NAME = "embedded"

_MOST_REFUSALS = 4
_MOST_DEATHS = 1
_MOST_LOSSES = 2
# The end of a process is seen a moment after the end of its connections.
_DYING_SECONDS = 0.1


class Manner(Value):
    """How a model is asked. `most_tokens` limits an answer that nothing else limits."""

    most_tokens: int
    sampling: JsonObject = {}


class Asking:
    """One per session. An engine that dies is started again once per reply. One that closes an idle
    connection just when it is used is asked again at once: that costs nobody anything."""

    def __init__(
        self,
        weights: Weights,
        *,
        http: Http,
        world: World,
        engines: Engines,
        threads: int | None,
        fitting: Fitting,
        manner: Manner,
    ) -> None:
        self._weights = weights
        self._http = http
        self._world = world
        self._engines = engines
        self._threads = threads
        self._fitting = fitting
        self._manner = manner
        self._made: tuple[str, JsonObject | None, Provider] | None = None
        self._told_short = False

    async def reply(
        self, prompt: Prompt, *, schema: JsonObject | None = None
    ) -> AsyncGenerator[Delta | Reply]:
        """A schema makes the answer JSON of that form."""
        shown, refusals, deaths, losses = False, 0, 0, 0
        while True:
            if self._engines.running(self._weights) is None:
                size = size_words(self._weights.size)
                yield Notice(text=f"Loading {self._weights.path.name} ({size})…")
            engine = await self._engines.start(self._weights, threads=self._threads)
            sent = self._fitting.fit(prompt, most_tokens=self._manner.most_tokens)
            if notice := self._shortness():
                yield notice
            try:
                async with aclosing(self._provider(engine, schema).reply(sent)) as stream:
                    async for item in stream:
                        shown |= not isinstance(item, Notice | Reply)
                        if isinstance(item, Reply):
                            self._fitting.learn(sent, item.usage.prompt)
                        yield item
                return
            except ProviderError as error:
                if error.reason == "context_overflow" and refusals < _MOST_REFUSALS:
                    refusals += 1
                    self._fitting.learn_refusal(sent, error.body)
                    continue
                if await self._is_dead(engine, error):
                    if deaths >= _MOST_DEATHS:
                        raise died(self._weights, engine.ending()) from error
                    deaths += 1
                elif error.reason == "cut" and losses < _MOST_LOSSES:
                    losses += 1
                else:
                    raise
            if shown:
                shown = False
                yield Restarted()

    def _shortness(self) -> Notice | None:
        """Told once, when the first messages go out of sight."""
        if self._told_short or not self._fitting.shortened:
            return None
        self._told_short = True
        return Notice(
            text=f"The conversation is longer than the model's window ({self._fitting.window}"
            " tokens); it sees the newest part.",
            kind="warn",
        )

    async def _is_dead(self, engine: Engine, error: ProviderError) -> bool:
        if engine.alive and error.reason in ("cut", "timeout"):
            await self._world.clock.sleep(_DYING_SECONDS)
        return not engine.alive

    def _provider(self, engine: Engine, schema: JsonObject | None) -> Provider:
        if self._made is None or self._made[:2] != (engine.url, schema):
            self._made = (engine.url, schema, self._connected(engine, schema))
        return self._made[2]

    def _connected(self, engine: Engine, schema: JsonObject | None) -> Provider:
        weights = self._weights
        extra = dict(self._manner.sampling)
        if schema is not None:
            form = {"name": "answer", "schema": schema, "strict": True}
            extra["response_format"] = {"type": "json_schema", "json_schema": form}
            if weights.switchable:
                # The form leaves no place for a thought; an open one would swallow the answer.
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
        fit = Fit(profile)
        direct = Direct(
            endpoint, http=self._http, clock=self._world.clock, fit=fit, timeouts=LOCAL_TIMEOUTS
        )
        # What a process of our own refuses once it refuses again.
        return Retrying(direct, self._world, fit=fit, attempts=1)
