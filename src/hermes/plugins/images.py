"""An image provider of an isolated plugin."""

from __future__ import annotations

import asyncio
from typing import Any

from hermes.codec.values import JsonObject
from hermes.plugins.plugins import PluginRegistry
from hermes.plugins.running import PluginFault
from hermes.plugins.serving import NO_CALLER
from hermes.plugins.surface import ImageOffer

IMAGE_SECONDS = 300.0


class RemoteImageProvider:
    """Serves facts recorded at load time; only `generate` calls the plugin. Thread-safe; use
    `agenerate` on the event loop."""

    def __init__(self, offer: ImageOffer, plugins: PluginRegistry, key: str) -> None:
        self._offer = offer
        self._plugins = plugins
        self._key = key
        self._loop = asyncio.get_running_loop()

    @property
    def name(self) -> str:
        return self._offer.name

    @property
    def display_name(self) -> str:
        return self._offer.display_name

    def is_available(self) -> bool:
        return self._offer.available

    def list_models(self) -> list[JsonObject]:
        return list(self._offer.models)

    def default_model(self) -> str | None:
        return self._offer.default_model

    def get_setup_schema(self) -> JsonObject:
        return self._offer.setup

    def capabilities(self) -> JsonObject:
        return self._offer.capabilities

    def generate(self, prompt: str, aspect_ratio: str = "landscape", **named: Any) -> JsonObject:
        work = self.agenerate(prompt, aspect_ratio, **named)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def agenerate(
        self, prompt: str, aspect_ratio: str = "landscape", **named: Any
    ) -> JsonObject:
        given = {"positional": [prompt, aspect_ratio], "named": named}
        try:
            answer = await self._plugins.running(self._key).call(
                "image", f"{self.name}:generate", given, seconds=IMAGE_SECONDS, caller=NO_CALLER
            )
        except PluginFault as fault:
            return {"success": False, "image": None, "error": str(fault), "provider": self.name,
                    "error_type": "provider_error"}  # fmt: skip
        return answer if isinstance(answer, dict) else {"success": False, "image": None}
