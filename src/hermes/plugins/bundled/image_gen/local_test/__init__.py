"""A provider for tests and demonstrations: draws the prompt as text, on this machine."""

from __future__ import annotations

from hermes.images.client import ImageServerClient
from hermes.images.hosted import GeneratedImage, HostedProvider, HostedRequest, model_row
from hermes.images.provider import aload_source_image
from hermes.images.registry import BundledContext
from hermes.plugins.bundled.image_gen.local_test.drawing import picture

SIZES = {"landscape": (384, 256), "square": (256, 256), "portrait": (256, 384)}


class LocalTestProvider(HostedProvider):
    NAME = "local-test"
    LABEL = "Local test"
    TAG = "chequers with the prompt on them, for tests"
    MODELS = (
        model_row("checker", "Checker", speed="at once", strengths="needs nothing", price="free"),
    )
    MOST_SOURCES = 4

    def is_available(self) -> bool:
        """Nobody wants its pictures who has not asked for them."""
        return self.studio.wanted == self.name

    async def draw(self, order: HostedRequest, line: ImageServerClient) -> GeneratedImage:
        sizes = [len((await aload_source_image(source))[0]) for source in order.sources]
        words = f"{order.prompt} + {len(sizes)} ({sum(sizes)} bytes)" if sizes else order.prompt
        return GeneratedImage(data=picture(words, *SIZES[order.aspect]))


def register(ctx: BundledContext) -> None:
    ctx.register_image_gen_provider(LocalTestProvider(ctx.studio))
