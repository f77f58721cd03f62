"""A provider for tests and demonstrations: draws the prompt as text, on this machine."""

from __future__ import annotations

from typing import Any

from hermes.codec.values import JsonObject
from hermes.images.provider import (
    DEFAULT_ASPECT_RATIO,
    ImageGenProvider,
    error_response,
    normalize_reference_images,
    resolve_aspect_ratio,
    success_response,
)
from hermes.images.registry import BundledContext
from hermes.images.storage import ImageFault
from hermes.images.studio import Studio, run_sync
from hermes.plugins.bundled.image_gen.local_test.drawing import picture

MODEL = "checker"
SIZES = {"landscape": (384, 256), "square": (256, 256), "portrait": (256, 384)}


class LocalTestProvider(ImageGenProvider):
    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    @property
    def name(self) -> str:
        return "local-test"

    @property
    def display_name(self) -> str:
        return "Local test"

    def is_available(self) -> bool:
        """Nobody wants its pictures who has not asked for them."""
        return self._studio.wanted == self.name

    def list_models(self) -> list[JsonObject]:
        return [
            {
                "id": MODEL,
                "display": "Checker",
                "speed": "at once",
                "strengths": "needs nothing",
                "price": "free",
                "modalities": ["text", "image"],
            }
        ]

    def get_setup_schema(self) -> JsonObject:
        tag = "chequers with the prompt on them, for tests"
        return {"name": self.display_name, "badge": "local", "tag": tag, "env_vars": []}

    def capabilities(self) -> JsonObject:
        return {"modalities": ["text", "image"], "max_reference_images": 4}

    def generate(
        self,
        prompt: str,
        aspect_ratio: str = DEFAULT_ASPECT_RATIO,
        *,
        image_url: str | None = None,
        reference_image_urls: list[str] | None = None,
        **kwargs: Any,
    ) -> JsonObject:
        aspect = resolve_aspect_ratio(aspect_ratio)
        text = str(prompt or "").strip()
        sources = [
            *(normalize_reference_images(image_url) or ()),
            *(normalize_reference_images(reference_image_urls) or ()),
        ]
        try:
            if not text:
                raise ImageFault("There is no prompt.", kind="invalid_argument")
            seen = sum(len(run_sync(self._studio.source(each))[0]) for each in sources)
            words = f"{text} + {len(sources)} ({seen} bytes)" if sources else text
            path = self._studio.cache.keep(picture(words, *SIZES[aspect]), prefix=self.name)
        except ImageFault as fault:
            return error_response(
                error=str(fault),
                error_type=fault.kind,
                provider=self.name,
                model=MODEL,
                prompt=text,
                aspect_ratio=aspect,
            )
        return success_response(
            image=path,
            model=MODEL,
            prompt=text,
            aspect_ratio=aspect,
            provider=self.name,
            modality="image" if sources else "text",
        )


def register(ctx: BundledContext) -> None:
    ctx.register_image_gen_provider(LocalTestProvider(ctx.studio))
