"""Generates images with OpenAI: one model in three qualities."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.images.client import ImageServerClient
from hermes.images.hosted import (
    GeneratedImage,
    HostedProvider,
    HostedRequest,
    generate_like_openai,
    model_row,
)
from hermes.images.studio import Studio

API_MODEL = "gpt-image-2"
SIZES = {"landscape": "1536x1024", "square": "1024x1024", "portrait": "1024x1536"}
_ABOUT = {
    "medium": ("about 30 s", "good for most images"),
    "low": ("about 15 s", "drafts"),
    "high": ("about 90 s", "fine details and small text"),
}
QUALITIES = tuple(_ABOUT)


def rows() -> tuple[JsonObject, ...]:
    """List each quality as a model of its own."""
    return tuple(
        model_row(
            f"{API_MODEL}-{quality}",
            f"GPT Image 2 ({quality})",
            speed=_ABOUT[quality][0],
            strengths=_ABOUT[quality][1],
        )
        for quality in QUALITIES
    )


def quality_of(model: str) -> str:
    word = model.rpartition("-")[2]
    return word if word in QUALITIES else QUALITIES[0]


class OpenAIProvider(HostedProvider):
    NAME = "openai"
    LABEL = "OpenAI"
    URL = "https://api.openai.com/v1"
    KEY = "OPENAI_API_KEY"
    SIGNUP = "https://platform.openai.com/api-keys"
    TAG = "gpt-image-2, in three qualities"
    MODELS = rows()
    MOST_SOURCES = 16

    def __init__(self, studio: Studio) -> None:
        super().__init__(studio)
        self.url = studio.variable("OPENAI_BASE_URL").rstrip("/") or self.URL

    def is_available(self) -> bool:
        """Return whether a key is set. A server at another URL rarely generates images, so it must
        be chosen for them."""
        elsewhere = self.url != self.URL and self.studio.wanted != self.NAME
        return bool(self.studio.key(self.KEY)) and not elsewhere

    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        fields: JsonObject = {
            "model": API_MODEL,
            "prompt": request.prompt,
            "size": SIZES[request.aspect],
            "quality": quality_of(request.model),
            "n": 1,
        }
        return await generate_like_openai(request, client, fields, self.LABEL, part="image[]")
