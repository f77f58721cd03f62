"""A key that somebody gives where the name of a model belongs is refused, and kept nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.commands.registry import ShowText
from hermes.core.commands import SwitchModel
from hermes.core.errors import UsageError
from hermes.testing.steps import says
from tests.commands.conftest import Talk
from tests.secrecy.canaries import FORMATS, RECOGNISED, Canary
from tests.secrecy.conftest import Open

OWN = "correct-horse-battery-77"
ALONE = [
    canary
    for canary in RECOGNISED
    # What only its surroundings give away is a name like any other without them.
    if canary.name in FORMATS[:8] or canary.name in ("npm", "pypi", "stripe", "sendgrid", "hf")
]


@pytest.mark.parametrize("canary", ALONE, ids=lambda canary: canary.name)
async def test_no_session_begins_with_a_key_for_a_name(here: Open, canary: Canary) -> None:
    with pytest.raises(UsageError, match="looks like a key") as refused:
        await here([says("hi")], settings={"model.default": canary.value})
    assert canary.value not in str(refused.value)


async def test_a_value_of_ones_own_is_no_name_either(here: Open, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="looks like a key"):
        await here([says("hi")], env={"DB_PASSWORD": OWN}, settings={"model.default": OWN})
    assert not any(OWN.encode() in each.read_bytes() for each in _files(tmp_path / "home"))


async def test_no_session_goes_on_with_a_key_for_a_name(here: Open, tmp_path: Path) -> None:
    run = await here([says("hi"), says("ho")], env={"DB_PASSWORD": OWN})
    await run.say("one")
    talk = Talk(run.app, run.session)
    for name in (OWN, ALONE[0].value):
        with pytest.raises(UsageError, match="looks like a key"):
            await run.session.send(SwitchModel(model=name, provider="custom"))
        told = await talk.registry.run(f"/model {name}", talk)
        assert isinstance(told, ShowText)
        assert "looks like a key" in told.text and name not in told.text
    await run.say("two")
    assert run.session.transcript.model == "test"
    secrets = (OWN.encode(), ALONE[0].value.encode())
    for each in _files(tmp_path / "home"):
        assert not any(secret in each.read_bytes() for secret in secrets), each


@pytest.mark.parametrize(
    "name",
    [
        "ft:gpt-4o-mini-2024-07-18:acme::AbC123xY",
        "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abcd1234efgh",
        "accounts/fireworks/models/llama-v3p1-405b-instruct",
        "owner/model:5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93c72c9bf15ccaa9",
        "hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M",
        "ep-20250117153212-x7k2p",
    ],
)
async def test_long_names_of_models_are_no_keys(here: Open, name: str) -> None:
    run = await here([says("hi")], settings={"model.default": name})
    assert run.session.transcript.model == name


def _files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]
