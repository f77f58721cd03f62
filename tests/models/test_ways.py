"""The whole way to a model as the settings describe it, against real servers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hermes.core.errors import ConfigError, ProviderError
from hermes.core.prompt import Notice
from hermes.models.models import Models
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import fails, says
from tests.models.ledger import Ledger
from tests.providers.asking import ask

Open = Callable[..., Models]


async def test_another_key_is_tried_before_another_model(opened: Open) -> None:
    async with (
        ScriptedServer([fails(402), says("second key")]) as server,
        ScriptedServer([says("spare")]) as spare,
    ):
        models = opened(
            "providers:\n"
            f"  box: {{base_url: '{server.url}/v1', key_env: BOX_KEY}}\n"
            f"  spare: {{base_url: '{spare.url}/v1'}}\n"
            "fallback_providers: [{provider: spare, model: s}]\n",
            BOX_KEY="first-0123456789",
            BOX_KEY_2="second-0123456789",
        )
        heard = await ask(models.connect("m", "box", Ledger())[0])
        keys = [request.headers["authorization"] for request in server.requests]
    assert (heard.shown, heard.whole.provider) == ("second key", "box")
    assert keys == ["Bearer first-0123456789", "Bearer second-0123456789"]
    assert spare.requests == []


@pytest.mark.parametrize(
    ("variables", "stored"), [(("sk-one-111111", "sk-two-222222"), ""), ((), "sk-added-333333")]
)
async def test_keys_of_a_pool_go_to_the_address_that_the_environment_names(
    opened: Open, variables: tuple[str, ...], stored: str
) -> None:
    async with ScriptedServer([says("ok")]) as server:
        names = ("OPENAI_API_KEY", "OPENAI_API_KEY_2")
        keys = dict(zip(names, variables, strict=False))
        models = opened("", OPENAI_BASE_URL=f"{server.url}/v1", **keys)
        if stored:
            await models.accounts.admin("openai-api").add_key(stored)
        await ask(models.connect("m", "openai-api", Ledger())[0])
    assert server.requests[0].headers["authorization"] == f"Bearer {stored or variables[0]}"


async def test_the_chain_leaves_out_what_cannot_be_used_and_the_model_itself(opened: Open) -> None:
    async with (
        ScriptedServer([fails(404)]) as server,
        ScriptedServer([says("from the last")]) as last,
    ):
        models = opened(
            f"providers: {{box: {{base_url: '{server.url}/v1'}}}}\n"
            "fallback_providers:\n"
            "  - {provider: nobody, model: x}\n"
            "  - {provider: anthropic, model: claude-x}\n"
            "  - {provider: box, model: m}\n"
            f"  - {{base_url: '{last.url}/v1', model: l, context_length: 9000}}\n"
        )
        heard = await ask(models.connect("m", "box", Ledger())[0])
    notices = [delta.text for delta in heard.deltas if isinstance(delta, Notice)]
    assert notices == ["m (box) does not know the model; continuing with l (custom)."]
    assert heard.shown == "from the last"
    assert len(server.requests) == 1


async def test_sessions_of_a_run_share_what_they_know_of_limits(opened: Open) -> None:
    async with (
        ScriptedServer([fails(429)]) as server,
        ScriptedServer([says("one"), says("two")]) as spare,
    ):
        models = opened(
            f"providers: {{box: {{base_url: '{server.url}/v1'}},"
            f" spare: {{base_url: '{spare.url}/v1'}}}}\n"
            "fallback_providers: [{provider: spare, model: s}]\n"
        )
        for _ in range(2):
            await ask(models.connect("m", "box", Ledger())[0])
    assert (len(server.requests), len(spare.requests)) == (1, 2)


async def test_without_a_chain_the_error_comes_as_it_is(opened: Open) -> None:
    async with ScriptedServer([fails(404)]) as server:
        models = opened(f"providers: {{box: {{base_url: '{server.url}/v1'}}}}\n")
        with pytest.raises(ProviderError, match="does not know the model"):
            await ask(models.connect("m", "box", Ledger())[0])


async def test_the_offline_assistant_may_be_the_last_resort(opened: Open) -> None:
    async with ScriptedServer([fails(401)]) as server:
        models = opened(
            f"providers: {{box: {{base_url: '{server.url}/v1'}}}}\n"
            "fallback_providers: [{provider: offline, model: offline-assistant}]\n"
        )
        heard = await ask(models.connect("m", "box", Ledger())[0])
    assert heard.whole.provider == "offline"


async def test_a_provider_without_a_model_is_no_way(opened: Open) -> None:
    models = opened("providers: {box: {base_url: 'http://10.0.0.1/v1'}}\n")
    with pytest.raises(ConfigError, match="No model is named for box"):
        models.connect("", "box", Ledger())
