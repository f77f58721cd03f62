"""Models for side work: who does it, within which time, and what happens when nobody can."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing

from hermes.codec.values import Value, replace
from hermes.config.provider_settings import AuxiliaryTaskSettings
from hermes.config.settings import Settings
from hermes.core.errors import HermesError, ProviderError
from hermes.core.messages import Usage
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt, Reply
from hermes.models.model_ref import CUSTOM, IN_PROCESS, OFFLINE, ModelRef
from hermes.models.models import Models, ref_of
from hermes.providers.endpoint import Endpoint
from hermes.providers.fallback import FALLBACK_REASONS, FallbackLink, is_empty_reply
from hermes.providers.profile import ModelPrice
from hermes.providers.wire.usage import estimate_prompt_tokens

AUTO = "auto"
MAIN = "main"
SECONDS = {
    "vision": 120.0,
    "web_extract": 360.0,
    "compression": 120.0,
    "background_review": 120.0,
    "curator": 600.0,
    "session_search": 60.0,
}
# What a task is called in the accounts, where that is another word.
CAUSES = {"compression": "compaction"}
# What a task is called on the screen, where its own name says something else.
NAMES = {"session_search": "recapping past sessions"}
USUAL_SECONDS = 30.0
UNWELL_SECONDS = 600.0
LOCKED_OUT_SECONDS = 60.0
# What a typical side task costs is weighed by: much to read, little to write.
_TYPICAL = Usage(input=3_000, output=1_000, requests=1)


class SideCandidate(Value):
    """Someone who may do the work. `listed` by the user for it means: whatever it costs."""

    wish: ModelRef
    listed: bool = False


class SideModel:
    """For one session. `main` is the model that answers in it now, `tell` shows a person a line;
    that a task cannot be done, or that another vendor does it, is told once per task."""

    def __init__(
        self,
        models: Models,
        settings: Settings,
        *,
        main: Callable[[], tuple[str, str]],
        tell: Callable[[str], None],
    ) -> None:
        self._models = models
        self._settings = settings
        self._main = main
        self._tell = tell
        self._told: set[tuple[str, str]] = set()

    async def ask(self, task: str, prompt: Prompt, meter: Meter) -> Reply:
        """The answer of the first model that can give one; ProviderError when none can. Spending
        caps hold as for everything else, and what it costs is booked under the task."""
        own = self._task_settings(task)
        if own.reasoning_effort:
            prompt = replace(prompt, effort=own.reasoning_effort)
        first: ProviderError | None = None
        for link in self.links(task, prompt, meter):
            if self._models.unwell.remaining_seconds(link.who):
                continue
            try:
                reply = await self._request(link, prompt, own.timeout or timeout_for(task))
            except ProviderError as error:
                first = first or error
                self._note(link, error)
                if error.reason not in FALLBACK_REASONS:
                    break
            else:
                self._report_model(task, link)
                return reply
        why = first or ProviderError(f"No model is there for {_describe(task)}.", reason="unknown")
        self._report(task, "failed", f"{_describe(task).capitalize()} did not work: {why}")
        raise why

    def links(self, task: str, prompt: Prompt, meter: Meter) -> Iterator[FallbackLink]:
        """Who can be asked for this task as things are, best first."""
        tokens = estimate_prompt_tokens(prompt)
        attempts = self._settings.auxiliary.transient_retries + 1
        main = self._main_endpoint()
        seen: set[str] = set()
        for each in self._candidates(task):
            try:
                if not self._fits(task, each, main):
                    continue
                cause = CAUSES.get(task, task)
                link = self._models.link(each.wish, meter, cause=cause, attempts=attempts)
            except HermesError:
                continue
            if link.who not in seen and not 0 < link.window < tokens:
                seen.add(link.who)
                yield link

    def _candidates(self, task: str) -> Iterator[SideCandidate]:
        """The task's own settings first; `auto` stays with the main model's vendor, then goes on
        to what the user listed, then to what costs nothing."""
        own, (model, provider) = self._task_settings(task), self._main()
        main = self._models.ref(model, provider)
        chain = [SideCandidate(wish=ref_of(entry), listed=True) for entry in own.fallback_chain]
        if own.base_url:
            given = ModelRef(provider=CUSTOM, base_url=own.base_url, api_key=own.api_key)
            yield SideCandidate(wish=replace(given, model=own.model or model), listed=True)
            yield from chain
        elif own.provider not in ("", AUTO, MAIN) or own.model:
            yield SideCandidate(wish=self._explicit(own, provider), listed=True)
            yield from chain
        else:
            if own.provider != MAIN and (small := self._small(provider)):
                yield SideCandidate(wish=small)
            if provider != OFFLINE:
                yield SideCandidate(wish=main, listed=True)
            yield from chain
            if own.provider != MAIN:
                yield from (
                    SideCandidate(wish=ref_of(e)) for e in self._settings.fallback_providers
                )
                yield from self._configured()

    def _configured(self) -> Iterator[SideCandidate]:
        for name, own in self._settings.providers.items():
            if own.default_model:
                yield SideCandidate(wish=ModelRef(provider=name, model=own.default_model))

    def _explicit(self, own: AuxiliaryTaskSettings, main: str) -> ModelRef:
        named = self._models.resolver.names.read(own.model)
        given = own.provider if own.provider not in ("", AUTO, MAIN) else ""
        provider = given or named.provider or main
        model = own.model if given and named.provider != given else named.model
        place = self._models.resolver.places.get(provider)
        model = model or place.vendor.aux_model or place.default_model
        return ModelRef(provider=provider, model=model, extra_body=own.extra_body)

    def _small(self, provider: str) -> ModelRef | None:
        """The small model of the main model's vendor."""
        place = self._models.resolver.places.find(provider)
        small = place.vendor.aux_model if place is not None else ""
        return ModelRef(provider=provider, model=small) if small else None

    def _fits(self, task: str, each: SideCandidate, main: Endpoint | None) -> bool:
        if each.wish.provider in IN_PROCESS:
            return task != "vision" and each.wish.provider != OFFLINE
        endpoint = self._models.resolver.endpoint(each.wish)
        if task == "vision" and not endpoint.profile.images:
            return False
        return each.listed or _is_not_dearer(endpoint, main)

    def _main_endpoint(self) -> Endpoint | None:
        model, provider = self._main()
        if provider in IN_PROCESS:
            return None
        try:
            return self._models.endpoint(model, provider)
        except HermesError:
            return None

    async def _request(self, link: FallbackLink, prompt: Prompt, seconds: float) -> Reply:
        try:
            async with (
                asyncio.timeout(seconds),
                aclosing(link.variants.patient.reply(prompt)) as stream,
            ):
                async for item in stream:
                    if isinstance(item, Reply):
                        if is_empty_reply(item):
                            raise ProviderError(f"{link} gave no answer.", reason="unknown")
                        return item
        except TimeoutError:
            words = f"{link} did not answer within {seconds:g} s."
            raise ProviderError(words, reason="timeout") from None
        raise ProviderError(f"The answer of {link} had no end.", reason="cut")

    def _note(self, link: FallbackLink, error: ProviderError) -> None:
        locked = error.reason in ("auth", "auth_permanent")
        seconds = LOCKED_OUT_SECONDS if locked else UNWELL_SECONDS
        if error.reason in FALLBACK_REASONS:
            self._models.unwell.start(link.who, seconds, error.reason)

    def _report_model(self, task: str, link: FallbackLink) -> None:
        if self._task_settings(task).provider in ("", AUTO) and link.provider != self._main()[1]:
            self._report(
                task, link.who, f"{link} does {_describe(task)} instead of the main model."
            )

    def _report(self, task: str, what: str, text: str) -> None:
        if (task, what) not in self._told:
            self._told.add((task, what))
            self._tell(text)

    def _task_settings(self, task: str) -> AuxiliaryTaskSettings:
        own = getattr(self._settings.auxiliary, task, None)
        return own if isinstance(own, AuxiliaryTaskSettings) else AuxiliaryTaskSettings()


def timeout_for(task: str) -> float:
    return SECONDS.get(task, USUAL_SECONDS)


def _is_not_dearer(endpoint: Endpoint, main: Endpoint | None) -> bool:
    """Nothing is chosen that could cost more than the model the user chose; what the price of
    either is not known is not compared."""
    if endpoint.profile.included:
        return True
    if main is None or main.profile.included:
        return False
    price, limit = endpoint.profile.price, main.profile.price
    return price is not None and limit is not None and _typical_cost(price) <= _typical_cost(limit)


def _typical_cost(price: ModelPrice) -> float:
    return price.cost(_TYPICAL)


def _describe(task: str) -> str:
    return NAMES.get(task) or task.replace("_", " ")
