"""Every bundled provider fulfils what a plugin's must."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.codec.values import JsonObject
from hermes.images.hosted import HostedProvider
from hermes.images.provider import ImageGenProvider
from hermes.images.registry import ImageProviders
from hermes.testing.image_provider import NOWHERE, ImageGenProviderContract, plain_studio, studio

KEYS = ("FAL_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "REPLICATE_API_TOKEN", "XAI_API_KEY")
ENV = dict.fromkeys(KEYS, "a-real-looking-key")


def unreachable(folder: Path, name: str, **more: object) -> ImageGenProvider:
    settings: JsonObject = {"provider": name, "timeout": 20, **more}
    found = ImageProviders(
        plain_studio(folder, env=ENV, settings=settings, private=True)
    ).get_provider(name)
    assert found is not None
    if isinstance(found, HostedProvider):
        found.url = NOWHERE
    return found


class TestOpenAI(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "openai")


class TestCodex(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "openai-codex")


class TestXai(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "xai")


class TestFal(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "fal")


class TestOpenRouter(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "openrouter")


class TestCompatible(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "openai-compatible", openai_compatible={"base_url": NOWHERE})


class TestReplicate(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "replicate")


class TestComfy(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "comfyui")


class TestWebUi(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "sdwebui")


class TestLocal(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "local-test")

    def works(self, tmp_path: Path) -> ImageGenProvider:
        return unreachable(tmp_path, "local-test")


class Broken(ImageGenProvider):
    @property
    def name(self) -> str:
        return "Broken Name"

    def list_models(self) -> list[JsonObject]:
        return [{"id": "a"}, {"id": "a"}]

    def capabilities(self) -> JsonObject:
        return {"modalities": ["text", "image"], "max_reference_images": 0}

    def generate(self, prompt: str, aspect_ratio: str = "landscape", **kwargs: Any) -> Any:
        if aspect_ratio == "landscape":
            raise RuntimeError("no network")
        return {"success": True, "image": "relative.png"}


class OfBroken(ImageGenProviderContract):
    def provider(self, tmp_path: Path) -> ImageGenProvider:
        return Broken()

    def works(self, tmp_path: Path) -> ImageGenProvider:
        return Broken()


CHECKS = [name for name in dir(OfBroken) if name.startswith("test_")]
FINE = ("test_is_available_returns_at_once",)


@pytest.mark.parametrize("check", [name for name in CHECKS if name not in FINE])
async def test_the_contract_finds_what_is_wrong_with_a_provider(tmp_path: Path, check: str) -> None:
    more = ("square",) if check == "test_every_aspect_ratio_becomes_a_valid_one" else ()
    with studio(tmp_path), pytest.raises((AssertionError, RuntimeError)):
        result = getattr(OfBroken(), check)(tmp_path, *more)
        if result is not None:
            await result
