"""What a person reads when a call has failed for good."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hermes.core.errors import ProviderError
from hermes.models.models import Models
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, fails
from tests.models.ledger import Ledger
from tests.providers.asking import ask

KEY = "sk-ant-0123456789"
Fail = Callable[..., object]


async def words(models: Models, model: str, provider: str) -> str:
    with pytest.raises(ProviderError) as raised:
        await ask(models.connect(model, provider, Ledger())[0])
    return str(raised.value)


@pytest.mark.parametrize(
    ("step", "ending"),
    [
        (
            fails(401, message="invalid x-api-key"),
            "refused the key (HTTP 401): invalid x-api-key. Correct ANTHROPIC_API_KEY "
            "(`hermes config set ANTHROPIC_API_KEY …`), or add a fallback model with "
            "`hermes fallback add NAME`.",
        ),
        (
            fails(402, message="no credit"),
            "reports that the account has no credit (HTTP 402): no credit. Add credits at "
            "https://platform.claude.com/settings/keys, or add a fallback model with "
            "`hermes fallback add NAME`.",
        ),
        (
            fails(404, message="model: claude-opus-55"),
            "does not know the model (HTTP 404): model: claude-opus-55. Similar: ",
        ),
        (
            fails(429, message="slow down", retry_after=300),
            "limits the request rate (HTTP 429): slow down. Wait 5 minutes, or add a "
            "fallback model with `hermes fallback add NAME`.",
        ),
    ],
    ids=["auth", "billing", "model", "limit"],
)
async def test_the_cause_is_followed_by_the_next_steps(
    opened: Callable[..., Models], step: Step, ending: str
) -> None:
    async with ScriptedServer([step], loop=True) as server:
        models = opened("", ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=server.url)
        said = await words(models, "claude-opus-55", "anthropic")
    assert said.startswith(f"anthropic (127.0.0.1, claude-opus-55) {ending}")
    assert KEY not in said
    assert "\n" not in said


async def test_three_near_names_are_given_for_a_model_that_is_not_there(
    opened: Callable[..., Models],
) -> None:
    async with ScriptedServer([fails(404)]) as server:
        models = opened("", ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=server.url)
        said = await words(models, "claude-opus-55", "anthropic")
    near = said.partition("Similar: ")[2].partition(";")[0].split(", ")
    assert len(near) == 3
    assert all("claude" in name for name in near)


async def test_a_server_that_is_not_there_is_named_with_its_port(
    opened: Callable[..., Models],
) -> None:
    models = opened("providers: {box: {base_url: 'http://127.0.0.1:9/v1'}}\n")
    assert await words(models, "m", "box") == (
        "box (127.0.0.1, m): No connection to 127.0.0.1. Start the server at 127.0.0.1:9, "
        "or choose another model with /model."
    )


async def test_a_long_answer_of_a_server_is_cut(opened: Callable[..., Models]) -> None:
    page = "<html>" + "x" * 5_000
    async with ScriptedServer([fails(401, body=page), fails(401, message="y" * 5_000)]) as server:
        config = f"providers: {{box: {{base_url: '{server.url}/v1', api_key: {KEY}}}}}\n"
        models = opened(config)
        for _ in range(2):
            said = await words(models, "m", "box")
            assert len(said) < 600
            assert said.endswith(
                "Correct the key of box in config.yaml, or add a fallback model with "
                "`hermes fallback add NAME`."
            )
