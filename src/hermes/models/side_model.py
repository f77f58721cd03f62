"""Runs side tasks on a suitable model: selection, timeouts and fallback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Protocol

from hermes.codec.json import DecodeError
from hermes.codec.values import replace
from hermes.config.provider_settings import AuxiliaryTaskSettings
from hermes.config.settings import Settings
from hermes.core.errors import HermesError, ProviderError, ToolError
from hermes.core.messages import ToolCall, ToolMessage, ToolResult, Usage
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt, Reply
from hermes.core.tools import ToolOutput
from hermes.models.model_ref import CUSTOM, IN_PROCESS, OFFLINE, ModelRef
from hermes.models.models import Models, ref_of
from hermes.providers.endpoint import Endpoint
from hermes.providers.fallback import FALLBACK_REASONS, FallbackLink, is_empty_reply
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
    "planning": 300.0,
}
# Cause names in the spending records that differ from the task name.
CAUSES = {"compression": "compaction"}
# Display names that differ from the task name.
NAMES = {"session_search": "recapping past sessions"}
DEFAULT_SECONDS = 30.0
FAILURE_COOLDOWN_SECONDS = 600.0
AUTH_COOLDOWN_SECONDS = 60.0
# A typical side task for cost estimates: long input, short output.
_TYPICAL = Usage(input=3_000, output=1_000, requests=1)


class MainModel(Protocol):
    """The current model of a session: a `Transcript` is one."""

    @property
    def model(self) -> str: ...

    @property
    def provider(self) -> str: ...


class SideModel:
    """The auxiliary models of one session with this main model. `tell` shows the user a line. A
    failure, or the use of another vendor, is reported once per task."""

    def __init__(
        self,
        models: Models,
        settings: Settings,
        main: MainModel,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._models = models
        self._settings = settings
        self._main = main
        self._tell = tell
        self._reported: set[tuple[str, str]] = set()

    async def ask(self, task: str, prompt: Prompt, meter: Meter) -> Reply:
        """Return the reply of the first model that gives one; raise ProviderError when none does.
        Spending caps apply, and the cost is recorded under the task."""
        own = self._task_settings(task)
        if own.reasoning_effort:
            prompt = replace(prompt, effort=own.reasoning_effort)
        first_error: ProviderError | None = None
        for link in self.links(task, prompt, meter):
            if self._models.side_cooldowns.remaining_seconds(link.who):
                continue
            try:
                reply = await request_reply(link, prompt, own.timeout or timeout_for(task))
            except ProviderError as error:
                first_error = first_error or error
                if error.reason not in FALLBACK_REASONS:
                    break
                is_auth = error.reason in ("auth", "auth_permanent")
                seconds = AUTH_COOLDOWN_SECONDS if is_auth else FAILURE_COOLDOWN_SECONDS
                self._models.side_cooldowns.start(link.who, seconds, error.reason)
            else:
                if own.provider in ("", AUTO) and link.provider != self._main.provider:
                    text = f"{link} is used for {_describe(task)} instead of the main model."
                    self._report(task, link.who, text)
                return reply
        failure = first_error or ProviderError(
            f"No model is available for {_describe(task)}.", reason="unknown"
        )
        self._report(task, "failed", f"{_describe(task).capitalize()} failed: {failure}")
        raise failure

    async def ask_with_tools(
        self,
        task: str,
        prompt: Prompt,
        meter: Meter,
        execute: Callable[[int, ToolCall], Awaitable[ToolOutput]],
        *,
        rounds: int,
    ) -> None:
        """Let the model call the tools of the prompt until it has nothing more to do. `execute`
        gets the number of the round and the call; the model sees its errors."""
        names = [tool.name for tool in prompt.tools]
        for number in range(rounds):
            reply = await self.ask(task, prompt, meter)
            if not reply.message.calls:
                return
            results: list[ToolResult] = []
            for call in reply.message.calls:
                try:
                    if call.broken or call.name not in names:
                        raise ToolError(f"Only {', '.join(names)} can be called now.")
                    output = await execute(number, call)
                except (HermesError, DecodeError) as error:
                    output = ToolOutput.text(str(error), failed=True)
                results.append(
                    ToolResult(
                        call_id=call.id, name=call.name, parts=output.parts, failed=output.failed
                    )
                )
            answered = (reply.message, ToolMessage(results=tuple(results)))
            prompt = replace(prompt, messages=(*prompt.messages, *answered))

    def links(self, task: str, prompt: Prompt, meter: Meter) -> Iterator[FallbackLink]:
        """Yield the models that can run this task now, best first."""
        tokens = estimate_prompt_tokens(prompt)
        attempts = self._settings.auxiliary.transient_retries + 1
        main = self._models.find_endpoint(self._main.model, self._main.provider)
        seen: set[str] = set()
        for ref, listed in self._candidates(task):
            try:
                if not self._fits(task, ref, main, listed=listed):
                    continue
                cause = CAUSES.get(task, task)
                link = self._models.link(ref, meter, cause=cause, attempts=attempts)
            except HermesError:
                continue
            if link.who not in seen and not 0 < link.window < tokens:
                seen.add(link.who)
                yield link

    def _candidates(self, task: str) -> Iterator[tuple[ModelRef, bool]]:
        """Yield models, and whether they are listed: configured for the task, and used regardless
        of cost. The task's own settings come first. `auto` tries the main model's vendor, then the
        models the user listed, then free ones."""
        own, model, provider = self._task_settings(task), self._main.model, self._main.provider
        main = self._models.ref(model, provider)
        chain = [(ref_of(entry), True) for entry in own.fallback_chain]
        if own.base_url:
            model = own.model or model
            ref = ModelRef(provider=CUSTOM, model=model, base_url=own.base_url, api_key=own.api_key)
            yield ref, True
            yield from chain
        elif own.provider not in ("", AUTO, MAIN) or own.model:
            yield self._explicit(own, provider), True
            yield from chain
        else:
            entry = self._models.resolver.providers.find(provider)
            if own.provider != MAIN and entry is not None and entry.vendor.aux_model:
                yield ModelRef(provider=provider, model=entry.vendor.aux_model), False
            if provider != OFFLINE:
                yield main, True
            yield from chain
            if own.provider != MAIN:
                yield from ((ref_of(entry), False) for entry in self._settings.fallback_providers)
                for name, provider_settings in self._settings.providers.items():
                    if provider_settings.default_model:
                        yield ModelRef(provider=name, model=provider_settings.default_model), False

    def _explicit(self, own: AuxiliaryTaskSettings, main: str) -> ModelRef:
        named = self._models.resolver.names.read(own.model)
        own_provider = own.provider if own.provider not in ("", AUTO, MAIN) else ""
        provider = own_provider or named.provider or main
        model = own.model if own_provider and named.provider != own_provider else named.model
        entry = self._models.resolver.providers.get(provider)
        model = model or entry.vendor.aux_model or entry.default_model
        return ModelRef(provider=provider, model=model, extra_body=own.extra_body)

    def _fits(self, task: str, ref: ModelRef, main: Endpoint | None, *, listed: bool) -> bool:
        if ref.provider in IN_PROCESS:
            return task != "vision" and ref.provider != OFFLINE
        endpoint = self._models.resolver.endpoint(ref)
        if task == "vision" and not endpoint.profile.images:
            return False
        return listed or _costs_no_more(endpoint, main)

    def _report(self, task: str, what: str, text: str) -> None:
        if (task, what) not in self._reported:
            self._reported.add((task, what))
            self._tell(text)

    def _task_settings(self, task: str) -> AuxiliaryTaskSettings:
        own = getattr(self._settings.auxiliary, task, None)
        return own if isinstance(own, AuxiliaryTaskSettings) else AuxiliaryTaskSettings()


def timeout_for(task: str) -> float:
    return SECONDS.get(task, DEFAULT_SECONDS)


def _costs_no_more(endpoint: Endpoint, main: Endpoint | None) -> bool:
    """Return whether a model cannot cost more than the user's model. A model without a known price
    is not chosen."""
    if endpoint.profile.included:
        return True
    if main is None or main.profile.included:
        return False
    price, limit = endpoint.profile.price, main.profile.price
    if price is None or limit is None:
        return False
    return price.cost(_TYPICAL) <= limit.cost(_TYPICAL)


def _describe(task: str) -> str:
    return NAMES.get(task) or task.replace("_", " ")


async def request_reply(link: FallbackLink, prompt: Prompt, seconds: float) -> Reply:
    """Make one request. Raise ProviderError if no text comes in time."""
    try:
        async with (
            asyncio.timeout(seconds),
            aclosing(link.connect().reply(prompt)) as stream,
        ):
            async for item in stream:
                if isinstance(item, Reply):
                    if is_empty_reply(item):
                        raise ProviderError(f"{link} returned an empty reply.", reason="unknown")
                    return item
    except TimeoutError:
        message = f"{link} did not answer within {seconds:g} s."
        raise ProviderError(message, reason="timeout") from None
    raise ProviderError(f"The reply of {link} ended early.", reason="cut")
