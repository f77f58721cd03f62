"""Every vendor's models answer over real HTTP; what is sent is judged by the vendors' types."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.providers.model_catalogue import load_catalogue, shipped_catalogue
from hermes.providers.pipeline import build_pipeline
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.providers.asking import HI, KEY, answered, ask, then


@pytest.mark.parametrize("name", list(shipped_catalogue().vendors))
async def test_a_vendor_is_asked_and_its_call_is_answered(name: str, http: HttpClient) -> None:
    vendor = shipped_catalogue().vendors[name]
    made = shipped_catalogue().endpoint(
        vendor, vendor.default_model or "m", key=KEY, url=vendor.url or "https://x.test/v1"
    )
    async with ScriptedServer([calls("look", at="here"), says("A wall.")]) as server:
        path = "" if made.wire == "messages" else "/v1"
        provider = build_pipeline(replace(made, url=server.url + path), http=http, world=World())
        prompt = replace(HI, effort="high")
        first = await ask(provider, prompt)
        last = await ask(provider, then(prompt, *answered(first.whole)))
    assert [call.name for call in first.whole.message.calls] == ["look"]
    assert last.whole.message.text == "A wall."
    assert last.whole.provider == name


async def test_a_vendor_of_ones_own_is_asked_like_any_other(
    tmp_path: Path, http: HttpClient
) -> None:
    async with ScriptedServer([says("Acme here.")]) as server:
        path = tmp_path / "vendors.toml"
        path.write_text(f'[vendors.acme]\nurl = "{server.url}/v1"\nkeys = ["ACME_API_KEY"]\n')
        catalogue = load_catalogue(path)
        acme = catalogue.vendors["acme"]
        made = catalogue.endpoint(acme, "m", key=KEY, key_source="ACME_API_KEY")
        heard = await ask(build_pipeline(made, http=http, world=World()))
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert heard.whole.message.text == "Acme here."
