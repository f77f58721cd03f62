"""Pictures by xAI: JSON for generations and edits, and addresses that soon end."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.images.client import ImageServerClient
from hermes.images.hosted import GeneratedImage, HostedProvider, HostedRequest, first_image
from hermes.images.provider import aload_source_image
from hermes.images.registry import BundledContext
from hermes.images.storage import data_url

RATIOS = {"landscape": "16:9", "square": "1:1", "portrait": "9:16"}
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
        {
            "id": "grok-imagine-image",
            "display": "Grok Imagine",
            "speed": "about 10 s",
            "strengths": "fast, many styles",
            "price": "$0.02/image",
            "modalities": ["text", "image"],
        },
        {
            "id": "grok-imagine-image-quality",
            "display": "Grok Imagine (quality)",
            "speed": "about 20 s",
            "strengths": "finer details",
            "price": "",
            "modalities": ["text", "image"],
        },
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
        images = [await _image_input(source) for source in order.sources]
        body |= {"image": images[0]} if len(images) == 1 else {"images": images}
        return first_image(await line.post("images/edits", body), self.LABEL)


async def _image_input(source: str) -> JsonObject:
    data, _ = await aload_source_image(source)
    return {"type": "image_url", "url": data_url(data)}


def register(ctx: BundledContext) -> None:
    ctx.register_image_gen_provider(XaiProvider(ctx.studio))
