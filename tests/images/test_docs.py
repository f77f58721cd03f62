"""The provider of the documentation works as it is printed there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from hermes.images.generator import ImageGenerator, ImageRequest
from hermes.images.provider import ImageGenProvider
from hermes.images.registry import ImageProviders
from hermes.testing.image_provider import ImageGenProviderContract
from tests.images.asking import drawn
from tests.images.conftest import MakeStudio
from tests.images.fakes import B64, PNG, Fake, Reply

PAGE = Path(__file__).parents[2] / "docs" / "image-generation.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


def printed() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in blocks():
        exec(compile(block, str(PAGE), "exec"), names)
    return names


NAMES = printed()
TestPrinted: type[ImageGenProviderContract] = NAMES["TestMyBackend"]


class Registrar:
    """What a plugin's `register` is given, as far as it needs it here."""

    def __init__(self, providers: ImageProviders) -> None:
        self._providers = providers

    def register_image_gen_provider(self, provider: ImageGenProvider) -> None:
        self._providers.register_provider(provider, source="user")


async def test_it_draws(make: MakeStudio, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_BACKEND_API_KEY", "mine-0123456789")
    fake.on("POST /v1/pictures", Reply({"b64": B64}))
    providers = ImageProviders(make())
    NAMES["register"](Registrar(providers))
    active: Any = providers.get_active_provider()
    active.url = f"{fake.url}/v1/pictures"
    drawing = ImageGenerator(providers, meter=lambda: None, slots=asyncio.Semaphore(1))
    answer = await drawing.generate(ImageRequest(prompt="a corgi", aspect="portrait"))
    assert drawn(answer) == PNG
    assert (answer["provider"], answer["model"]) == ("my-backend", "pastel")
    assert fake.asked[0].json == {"prompt": "a corgi", "size": "768x1024"}
    assert fake.asked[0].headers["authorization"] == "Bearer mine-0123456789"
    fake.on("POST /v1/pictures", Reply({"error": "no"}, 500))
    answer = await drawing.generate(ImageRequest(prompt="a corgi", aspect="portrait"))
    assert answer["error_type"] == "api_error"
