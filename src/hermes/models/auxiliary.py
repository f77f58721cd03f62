"""Models for side work: who does it, within which time, and what happens when nobody can."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing

from hermes.codec.values import Value, replace
from hermes.config.model_settings import AuxiliaryTaskSettings
from hermes.config.settings import Settings
from hermes.core.errors import HermesError, ProviderError
from hermes.core.messages import Usage
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt, Reply
from hermes.models.choice import CUSTOM, OFFLINE, WITHIN, Wish
from hermes.models.models import Models, wish_of
from hermes.providers.endpoint import Endpoint
from hermes.providers.fallback import PASSED_ON, Link, is_excuse
from hermes.providers.prices import Price
from hermes.providers.wire.usage import guessed_tokens

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


class Hopeful(Value):
    """Someone who may do the work. `listed` by the user for it means: whatever it costs."""

    wish: Wish
    listed: bool = False


class Auxiliary:
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
        own = self._own(task)
        if own.reasoning_effort:
            prompt = replace(prompt, effort=own.reasoning_effort)
        first: ProviderError | None = None
        for link in self.links(task, prompt, meter):
            if self._models.unwell.left(link.who):
                continue
            try:
                reply = await self._asked(link, prompt, own.timeout or seconds_for(task))
            except ProviderError as error:
                first = first or error
                self._note(link, error)
                if error.reason not in PASSED_ON:
                    break
            else:
                self._say_who(task, link)
                return reply
        why = first or ProviderError(f"No model is there for {_words(task)}.", reason="unknown")
        self._say(task, "failed", f"{_words(task).capitalize()} did not work: {why}")
        raise why

    def links(self, task: str, prompt: Prompt, meter: Meter) -> Iterator[Link]:
        """Who can be asked for this task as things are, best first."""
        tokens = guessed_tokens(prompt)
        attempts = self._settings.auxiliary.transient_retries + 1
        main = self._main_endpoint()
        seen: set[str] = set()
        for each in self._hopefuls(task):
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

    def _hopefuls(self, task: str) -> Iterator[Hopeful]:
        """The task's own settings first; `auto` stays with the main model's vendor, then goes on
        to what the user listed, then to what costs nothing."""
        own, (model, provider) = self._own(task), self._main()
        main = self._models.wish(model, provider)
        chain = [Hopeful(wish=wish_of(entry), listed=True) for entry in own.fallback_chain]
        if own.base_url:
            given = Wish(provider=CUSTOM, base_url=own.base_url, api_key=own.api_key)
            yield Hopeful(wish=replace(given, model=own.model or model), listed=True)
            yield from chain
        elif own.provider not in ("", AUTO, MAIN) or own.model:
            yield Hopeful(wish=self._named(own, provider), listed=True)
            yield from chain
        else:
            if own.provider != MAIN and (small := self._small(provider)):
                yield Hopeful(wish=small)
            if provider != OFFLINE:
                yield Hopeful(wish=main, listed=True)
            yield from chain
            if own.provider != MAIN:
                yield from (Hopeful(wish=wish_of(e)) for e in self._settings.fallback_providers)
                yield from self._declared()

    def _declared(self) -> Iterator[Hopeful]:
        for name, own in self._settings.providers.items():
            if own.default_model:
                yield Hopeful(wish=Wish(provider=name, model=own.default_model))

    def _named(self, own: AuxiliaryTaskSettings, main: str) -> Wish:
        named = self._models.resolver.names.read(own.model)
        given = own.provider if own.provider not in ("", AUTO, MAIN) else ""
        provider = given or named.provider or main
        model = own.model if given and named.provider != given else named.model
        place = self._models.resolver.places.get(provider)
        model = model or place.vendor.aux_model or place.default_model
        return Wish(provider=provider, model=model, extra_body=own.extra_body)

    def _small(self, provider: str) -> Wish | None:
        """The small model of the main model's vendor."""
        place = self._models.resolver.places.find(provider)
        small = place.vendor.aux_model if place is not None else ""
        return Wish(provider=provider, model=small) if small else None

    def _fits(self, task: str, each: Hopeful, main: Endpoint | None) -> bool:
        if each.wish.provider in WITHIN:
            return task != "vision" and each.wish.provider != OFFLINE
        endpoint = self._models.resolver.endpoint(each.wish)
        if task == "vision" and not endpoint.profile.images:
            return False
        return each.listed or _is_not_dearer(endpoint, main)

    def _main_endpoint(self) -> Endpoint | None:
        model, provider = self._main()
        if provider in WITHIN:
            return None
        try:
            return self._models.endpoint(model, provider)
        except HermesError:
            return None

    async def _asked(self, link: Link, prompt: Prompt, seconds: float) -> Reply:
        try:
            async with (
                asyncio.timeout(seconds),
                aclosing(link.way.patient.reply(prompt)) as stream,
            ):
                async for item in stream:
                    if isinstance(item, Reply):
                        if is_excuse(item):
                            raise ProviderError(f"{link} gave no answer.", reason="unknown")
                        return item
        except TimeoutError:
            words = f"{link} did not answer within {seconds:g} s."
            raise ProviderError(words, reason="timeout") from None
        raise ProviderError(f"The answer of {link} had no end.", reason="cut")

    def _note(self, link: Link, error: ProviderError) -> None:
        locked = error.reason in ("auth", "auth_permanent")
        seconds = LOCKED_OUT_SECONDS if locked else UNWELL_SECONDS
        if error.reason in PASSED_ON:
            self._models.unwell.rest(link.who, seconds, error.reason)

    def _say_who(self, task: str, link: Link) -> None:
        if self._own(task).provider in ("", AUTO) and link.provider != self._main()[1]:
            self._say(task, link.who, f"{link} does {_words(task)} instead of the main model.")

    def _say(self, task: str, what: str, text: str) -> None:
        if (task, what) not in self._told:
            self._told.add((task, what))
            self._tell(text)

    def _own(self, task: str) -> AuxiliaryTaskSettings:
        own = getattr(self._settings.auxiliary, task, None)
        return own if isinstance(own, AuxiliaryTaskSettings) else AuxiliaryTaskSettings()


def seconds_for(task: str) -> float:
    return SECONDS.get(task, USUAL_SECONDS)


def _is_not_dearer(endpoint: Endpoint, main: Endpoint | None) -> bool:
    """Nothing is chosen that could cost more than the model the user chose; what the price of
    either is not known is not compared."""
    if endpoint.profile.included:
        return True
    if main is None or main.profile.included:
        return False
    price, limit = endpoint.profile.price, main.profile.price
    return price is not None and limit is not None and _typical(price) <= _typical(limit)


def _typical(price: Price) -> float:
    return price.cost(_TYPICAL)


def _words(task: str) -> str:
    return NAMES.get(task) or task.replace("_", " ")
