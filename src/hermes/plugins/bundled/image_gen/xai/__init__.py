"""Generates images with xAI. The URLs in its responses soon expire."""

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

    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        wanted = str(self.options.get("resolution") or RESOLUTIONS[0]).lower()
        body: JsonObject = {
            "model": request.model,
            "prompt": request.prompt,
            "n": 1,
            "aspect_ratio": RATIOS[request.aspect],
            "resolution": wanted if wanted in RESOLUTIONS else RESOLUTIONS[0],
        }
        if not request.sources:
            return first_image(await client.post("images/generations", body), self.LABEL)
        images = [{"type": "image_url", "url": url} for url in await source_urls(request)]
        body |= {"image": images[0]} if len(images) == 1 else {"images": images}
        return first_image(await client.post("images/edits", body), self.LABEL)
