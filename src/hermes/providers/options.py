"""Turns user options for an endpoint into request headers and fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hermes.codec.values import JsonObject, Value, replace
from hermes.providers.profile import ModelProfile

OptionName = Literal["routing", "response_cache", "service_tier", "num_ctx"]


# Price factor of a service tier; never below what is charged.
TIERS = {"priority": 2.0}


class RequestOptions(Value):
    """Options that an endpoint does not support are dropped silently, except `body`, which is
    always sent. `routing` holds the fields of `provider_routing`; `session` is the conversation id
    for endpoints that key their caches by it."""

    routing: JsonObject = {}
    response_cache_seconds: int | None = None
    service_tier: str = ""
    temperature: float | None = None
    num_ctx: int | None = None
    session: str = ""
    body: JsonObject = {}


def option_headers(takes: Iterable[OptionName], options: RequestOptions) -> dict[str, str]:
    seconds = options.response_cache_seconds
    if seconds is None or "response_cache" not in takes:
        return {}
    return {"X-OpenRouter-Cache": "true", "X-OpenRouter-Cache-TTL": str(seconds)}


def with_options(
    profile: ModelProfile,
    takes: Iterable[OptionName],
    options: RequestOptions,
    *,
    temperature: bool,
) -> ModelProfile:
    """The profile with the option fields. `temperature` is true if the model accepts one."""
    extra = dict(profile.extra)
    if "routing" in takes and (routing := _drop_empty(options.routing)):
        extra["provider"] = routing
    price = profile.price
    if "service_tier" in takes and options.service_tier:
        extra["service_tier"] = options.service_tier
        price = price and price.scaled_by(TIERS.get(options.service_tier, 1.0))
    if "num_ctx" in takes and options.num_ctx:
        extra["options"] = {"num_ctx": options.num_ctx}
    if temperature and options.temperature is not None:
        extra["temperature"] = options.temperature
    extra |= options.body
    return replace(profile, extra=extra, price=price, conversation=options.session)


def _drop_empty(routing: JsonObject) -> JsonObject:
    """Empty values are not sent."""
    kept = {name: value for name, value in routing.items() if value}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in kept.items()}
