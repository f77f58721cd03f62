"""Pictures by xAI: JSON for generations and edits, and addresses that soon end."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.images.client import ImageServerClient
from hermes.images.hosted import (
    RATIOS,
    GeneratedImage,
    HostedProvider,
    HostedRequest,
    first_image,
    model_row,
    source_urls,
)
from hermes.images.registry import BundledContext

RESOLUTIONS = ("1k", "2k")


class XaiProvider(HostedProvider):
    NAME = "xai"
    LABEL = "xAI"
    URL = "https://api.x.ai/v1"
    KEY = "XAI_API_KEY"
    SIGNUP = "https://console.x.ai"
    TAG = "Grok Imagine"
    SECONDS = 120
    MOST_SOURCES = 3
    MODELS = (
        model_row(
            "grok-imagine-image",
            "Grok Imagine",
            speed="about 10 s",
            strengths="fast, many styles",
            price="$0.02/image",
        ),
        model_row(
            "grok-imagine-image-quality",
            "Grok Imagine (quality)",
            speed="about 20 s",
            strengths="finer details",
        ),
    )

    async def draw(self, order: HostedRequest, line: ImageServerClient) -> GeneratedImage:
        wanted = str(self.options.get("resolution") or RESOLUTIONS[0]).lower()
        body: JsonObject = {
            "model": order.model,
            "prompt": order.prompt,
            "n": 1,
            "aspect_ratio": RATIOS[order.aspect],
            "resolution": wanted if wanted in RESOLUTIONS else RESOLUTIONS[0],
        }
        if not order.sources:
            return first_image(await line.post("images/generations", body), self.LABEL)
        images = [{"type": "image_url", "url": url} for url in await source_urls(order)]
        body |= {"image": images[0]} if len(images) == 1 else {"images": images}
        return first_image(await line.post("images/edits", body), self.LABEL)


def register(ctx: BundledContext) -> None:
    ctx.register_image_gen_provider(XaiProvider(ctx.studio))
