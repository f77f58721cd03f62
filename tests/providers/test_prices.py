from __future__ import annotations

import pytest

from hermes.core.messages import Usage
from hermes.providers.model_catalogue import shipped_catalogue
from hermes.providers.model_listing import ModelInfo
from hermes.providers.profile import FREE, ModelPrice, Rates

VENDORS = shipped_catalogue().vendors


def test_each_kind_of_token_has_its_rate() -> None:
    price = ModelPrice(input=4, output=20, cache_read=0.4, cache_write=5)
    usage = Usage(input=1_000, output=500, cache_read=10_000, cache_write=2_000, reasoning=400)
    assert price.cost(usage) == pytest.approx(0.004 + 0.01 + 0.004 + 0.01)


def test_tokens_without_a_rate_of_their_own_cost_as_much_as_input() -> None:
    price = ModelPrice(input=2, output=3)
    assert price.cost(Usage(cache_read=1_000_000, cache_write=1_000_000)) == 4


def test_long_prompts_cost_more_as_a_whole() -> None:
    price = ModelPrice(input=1, output=1, above=200_000, beyond=Rates(input=2, output=3))
    assert price.cost(Usage(input=150_000, cache_read=50_000)) == pytest.approx(0.2)
    assert price.cost(Usage(input=150_000, cache_read=50_001)) == pytest.approx(0.400002)


@pytest.mark.parametrize(
    ("vendor", "model", "rates"),
    [
        ("anthropic", "claude-opus-4-6", (5, 25)),
        ("anthropic", "claude-sonnet-4-5-20250929", (3, 15)),
        ("openrouter", "anthropic/claude-opus-4.6", (5, 25)),
        ("openrouter", "google/gemini-2.5-pro", (1.25, 10)),
        ("openrouter", "qwen/qwen3-coder:free", (0, 0)),
        ("openrouter", "anthropic/claude-opus-4.6:nitro", None),
        ("openrouter", "claude-opus-4.6", None),
        ("openai-api", "gpt-5.2", (1.75, 14)),
        ("openai-api", "gpt-4.1-2025-04-14", (2, 8)),
        ("openai-api", "gpt-9", None),
        ("ai-gateway", "anthropic/claude-opus-4.6", None),
        ("custom", "claude-opus-4-6", None),
    ],
)
def test_published_prices_belong_to_a_vendor_and_a_model(
    vendor: str, model: str, rates: tuple[float, float] | None
) -> None:
    found = shipped_catalogue().price(VENDORS[vendor], model)
    assert (found and (found.input, found.output)) == rates


def test_every_published_price_is_dated_and_cheaper_from_the_cache() -> None:
    for sheet in shipped_catalogue().sheets:
        assert sheet.version >= "2026"
        assert all(name in VENDORS for name in sheet.vendors)
        for price in sheet.models.values():
            assert 0 < price.input <= price.output
            assert (price.cache_read or 0) < price.input
            assert (price.beyond is None) == (price.above == 0)


def test_the_nearest_source_of_a_price_wins() -> None:
    router = VENDORS["openrouter"]
    name = "anthropic/claude-opus-4.6"
    info = ModelInfo(id=name, price=ModelPrice(input=6, output=30))
    shown = [
        shipped_catalogue().endpoint(router, name).profile,
        shipped_catalogue().endpoint(router, name, info=info).profile,
        shipped_catalogue()
        .endpoint(router, name, info=info, overrides={"price_output": 1.0})
        .profile,
        shipped_catalogue().endpoint(router, "qwen/qwen3-coder").profile,
    ]
    assert [profile.price_source for profile in shown] == [
        "official_docs_snapshot", "provider_models_api", "user_override", "none",
    ]  # fmt: skip
    assert [p.price and (p.price.input, p.price.output) for p in shown] == [
        (5, 25), (6, 30), (6, 1), None,
    ]  # fmt: skip
    assert shown[0].price is not None and shown[0].price.version == "2026-11-15"


@pytest.mark.parametrize(
    ("vendor", "url"),
    [
        ("openai-codex", ""),
        ("copilot", ""),
        ("alibaba-coding-plan", ""),
        ("zai", "https://api.z.ai/api/coding/paas/v4"),
        ("custom", "http://127.0.0.1:8000/v1"),
        ("custom", "http://box.local:8000/v1"),
        ("lmstudio", ""),
    ],
)
def test_subscriptions_and_machines_of_ones_own_cost_nothing(vendor: str, url: str) -> None:
    profile = shipped_catalogue().endpoint(VENDORS[vendor], "glm-5.2", url=url).profile
    assert (profile.price, profile.included) == (FREE, True)


def test_a_metered_address_is_not_included() -> None:
    profile = shipped_catalogue().endpoint(VENDORS["zai"], "glm-5.2").profile
    assert profile.price is not None and profile.price.input == 1.4 and not profile.included
