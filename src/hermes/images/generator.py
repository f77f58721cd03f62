"""Generates one image: chooses provider and model, books the cost, and validates the answer."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeGuard

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.errors import BudgetReached
from hermes.core.events import CallSettled, ModelCalled
from hermes.core.messages import Usage
from hermes.core.ports import Meter
from hermes.core.world import World
from hermes.images.provider import ImageGenProvider, error_response
from hermes.images.registry import ImageProviders, choose_model, models_of
from hermes.images.storage import ImageFault, media_type
from hermes.images.studio import use_studio

_PRICE = re.compile(r"\$\s*(\d+(?:\.\d+)?)\s*(?:/|per)?\s*(image|picture|mp|megapixel)?\s*$", re.I)
_TEXTS = ("model", "prompt", "aspect_ratio", "provider")
# Sizes charged by the megapixel are rounded up, and no preset has more than two.
_MOST_MEGAPIXELS = 2


class ImagePrice(Value):
    """The price of one image in dollars."""

    usd: float
    estimated: bool = False  # the price is the maximum


def validate_answer(answer: object, *, provider: str, prompt: str, aspect_ratio: str) -> JsonObject:
    """Check a provider's answer. Return it with missing fields filled in, or an error response that
    names the fault."""
    known = {"provider": provider, "prompt": prompt, "aspect_ratio": aspect_ratio, "model": ""}
    if fault := _find_fault(answer):
        return error_response(
            error=f"{provider} returned an invalid answer: {fault}.",
            error_type="invalid_provider_response",
            provider=provider,
            prompt=prompt,
            aspect_ratio=aspect_ratio,
        )
    assert isinstance(answer, dict)
    if answer["success"]:
        return {"modality": "text", **known, **answer}
    return {"error_type": "provider_error", **known, **answer, "image": None}


def _find_fault(answer: object) -> str:
    if not isinstance(answer, dict):
        return "it is not a dict"
    if not all(isinstance(key, str) for key in answer):
        return "its keys are not all text"
    if not isinstance(answer.get("success"), bool):
        return "`success` is neither true nor false"
    if any(not isinstance(answer.get(key, ""), str) for key in _TEXTS):
        return f"one of {', '.join(_TEXTS)} is not text"
    try:
        encode(answer)
    except TypeError:
        return "it cannot be written as JSON"
    if answer["success"]:
        return _find_image_fault(answer.get("image"))
    if not isinstance(answer.get("error"), str) or not answer["error"]:
        return "`error` says nothing"
    return "" if isinstance(answer.get("error_type", ""), str) else "`error_type` is not text"


def _find_image_fault(image: object) -> str:
    if not isinstance(image, str) or not image:
        return "`image` is neither a URL nor a path"
    if image.startswith(("http://", "https://")):
        return ""
    if not Path(image).is_absolute():
        return "`image` is not an absolute path"
    try:
        with Path(image).open("rb") as file:
            return "" if media_type(file.read(16)) else "the file of `image` is not an image"
    except OSError:
        return "the file of `image` does not exist"


def price_of(models: list[JsonObject], model: str) -> ImagePrice | None:
    """Return the price of an image of this model; None when its list does not say exactly."""
    row = next((each for each in models if each.get("id") == model), {})
    price = row.get("price")
    if isinstance(price, int | float) and not isinstance(price, bool) and price >= 0:
        return ImagePrice(usd=float(price))
    match = _PRICE.match(price.strip()) if isinstance(price, str) else None
    if match is None:
        return ImagePrice(usd=0.0) if price == "free" else None
    usd, unit = float(match[1]), (match[2] or "image").lower()
    if unit in ("image", "picture"):
        return ImagePrice(usd=usd)
    return ImagePrice(usd=usd * _MOST_MEGAPIXELS, estimated=True)


log = logging.getLogger(__name__)

CAUSE = "image"
# Failures for which certainly nothing is charged.
# No image costs more.
_MOST_USD = 1_000.0
_FREE = (
    "auth_required", "invalid_argument", "rate_limited", "content_policy", "missing_dependency",
)  # fmt: skip


class ImageRequest(Value):
    prompt: str
    aspect: str
    upscale: bool = False


class ImageGenerator:
    """Generates the images of one session. `meter` books the cost, `clean` redacts what is sent;
    `slots` limits how many images are generated at once in the process."""

    def __init__(
        self,
        providers: ImageProviders,
        *,
        meter: Callable[[], Meter | None],
        slots: asyncio.Semaphore,
        seconds: float = 300,
        clean: Callable[[str], str] = str,
    ) -> None:
        self._providers = providers
        self._meter = meter
        self._slots = slots
        self._seconds = seconds
        self._clean = clean

    async def generate(self, request: ImageRequest, sources: tuple[str, ...] = ()) -> JsonObject:
        """Return an answer in the agreed form, whatever happens."""
        prompt, studio = self._clean(request.prompt), self._providers.studio
        failure = partial(error_response, prompt=prompt, aspect_ratio=request.aspect)
        try:
            provider = self._providers.get_active_provider()
        except ImageFault as fault:
            return failure(error=str(fault), error_type=fault.kind)
        failure = partial(failure, provider=provider.name)
        able = capabilities_of(provider)
        most = able.get("max_prompt_chars")
        if isinstance(most, int) and 0 < most < len(prompt):
            message = f"The prompt has {len(prompt)} characters; {provider.name} takes {most}."
            return failure(error=message, error_type="invalid_argument")
        most, note = able.get("max_reference_images"), ""
        if isinstance(most, int) and 0 < most < len(sources):
            note = f"Only the first {most} of {len(sources)} images were used."
            sources = sources[:most]
        model = choose_model(provider, studio)
        price = price_of(models_of(provider.list_models()), model)
        names = (model or provider.name, provider.name)
        cost = ImageCost(self._meter(), studio.world, *names, price=price)
        async with self._slots:
            answer: JsonObject = {}
            try:
                await cost.reserve()
                try:
                    answer = await self._call_provider(provider, prompt, request, sources, model)
                finally:
                    cost.settle(answer)
            except BudgetReached as reached:
                answer = failure(error=str(reached), error_type="BudgetReached", model=model)
        return {"note": note, **answer} if note else answer

    async def _call_provider(
        self,
        provider: ImageGenProvider,
        prompt: str,
        request: ImageRequest,
        sources: tuple[str, ...],
        model: str,
    ) -> JsonObject:
        options: JsonObject = {"upscale": True} if request.upscale else {}
        if model:
            options["model"] = model
        known = {"provider": provider.name, "prompt": prompt, "aspect_ratio": request.aspect}
        try:
            with use_studio(self._providers.studio):
                async with asyncio.timeout(self._seconds + 5):
                    answer = await provider.agenerate(
                        prompt,
                        request.aspect,
                        image_url=sources[0] if sources else None,
                        reference_image_urls=list(sources[1:]) or None,
                        **options,
                    )
        except ImageFault as fault:
            return error_response(error=str(fault), error_type=fault.kind, **known)
        except TimeoutError:
            message = f"{provider.display_name} did not finish within {self._seconds:g} s."
            return error_response(error=message, error_type="timeout", **known)
        except Exception as error:
            log.exception("an image provider failed", extra={"provider": provider.name})
            message = self._clean(f"{provider.display_name} failed: {error}")
            return error_response(error=message, error_type=type(error).__name__, **known)
        return validate_answer(answer, **known)


class ImageCost:
    """The cost of one image in the session: reserved before, settled after."""

    def __init__(
        self,
        meter: Meter | None,
        world: World,
        model: str,
        provider: str,
        *,
        price: ImagePrice | None,
    ) -> None:
        self._meter = meter
        self._most = Usage(requests=1, cost=None if price is None else price.usd)
        self._estimated = price is not None and price.estimated
        self._call = ModelCalled(
            model=model,
            provider=provider,
            call=world.new_id("call"),
            cause=CAUSE,
            reserved=self._most,
        )

    async def reserve(self) -> None:
        if self._meter is not None:
            await self._meter.reserve(self._call, self._most)

    def settle(self, answer: JsonObject) -> None:
        """Book the cost of an image: its price, or what the server says. A request that certainly
        failed costs nothing."""
        if self._meter is None:
            return
        reported = answer.get("cost_usd")
        usage, certain = self._most, True
        if _is_plausible(reported) and (reported or not self._most.cost):
            usage = Usage(requests=1, cost=float(reported))
        elif answer.get("success"):
            usage = Usage(requests=1, cost=self._most.cost, estimated=self._estimated)
        elif answer.get("error_type") in _FREE:
            usage = Usage(requests=1, cost=0.0)
        else:
            certain = False
        id, model, provider = self._call.call, self._call.model, self._call.provider
        self._meter.settle(
            CallSettled(call=id, usage=usage, certain=certain, model=model, provider=provider)
        )


def _is_plausible(cost: JsonValue) -> TypeGuard[float]:
    """Return whether a reported cost is an amount that one image can cost."""
    return isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= _MOST_USD


def capabilities_of(provider: ImageGenProvider) -> JsonObject:
    """Return {} where the provider raises."""
    try:
        found: object = provider.capabilities()
    except Exception:
        log.exception("an image provider failed to list its capabilities")
        return {}
    return found if isinstance(found, dict) else {}
