"""Generates images with OpenRouter: the reply of a chat completion contains the image."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.images.client import ImageServerClient, error_from_message, is_policy
from hermes.images.hosted import (
    RATIOS,
    GeneratedImage,
    HostedProvider,
    HostedRequest,
    model_row,
    source_urls,
)
from hermes.images.storage import ImageFault


class OpenRouterProvider(HostedProvider):
    NAME = "openrouter"
    LABEL = "OpenRouter"
    URL = "https://openrouter.ai/api/v1"
    KEY = "OPENROUTER_API_KEY"
    SIGNUP = "https://openrouter.ai/keys"
    TAG = "models of several makers with one key"
    MOST_SOURCES = 3
    MODELS = (
        model_row(
            "openai/gpt-5.4-image-2",
            "GPT-5.4 Image 2",
            speed="about 40 s",
            strengths="follows long descriptions, text in images",
        ),
        model_row(
            "google/gemini-3-pro-image",
            "Gemini 3 Pro Image",
            speed="about 25 s",
            strengths="edits, diagrams",
        ),
    )

    async def headers(self) -> dict[str, str]:
        return {**await super().headers(), "x-title": "Hermes Agent"}

    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        content: list[JsonObject] = [{"type": "text", "text": request.prompt}]
        for url in await source_urls(request):
            content.append({"type": "image_url", "image_url": {"url": url}})
        body: JsonObject = {
            "model": request.model,
            "messages": [{"role": "user", "content": content}],
            "modalities": ["image", "text"],
            "image_config": {"aspect_ratio": RATIOS[request.aspect]},
            "usage": {"include": True},
        }
        return self._parse_image(await client.post("chat/completions", body))

    def _parse_image(self, answer: JsonObject) -> GeneratedImage:
        if answer.get("error"):
            raise error_from_message(self.LABEL, answer["error"])
        choices = answer.get("choices") or [{}]
        message = choices[0].get("message") or {}
        usage = answer.get("usage") or {}
        extra: JsonObject = {}
        if isinstance(cost := usage.get("cost"), int | float):
            extra["cost_usd"] = float(cost)
        for image in message.get("images") or ():
            url = (image.get("image_url") or {}).get("url")
            if isinstance(url, str) and url:
                return GeneratedImage(url=url, extra=extra)
        reason = str(message.get("refusal") or message.get("content") or "").strip()
        filtered = choices[0].get("finish_reason") == "content_filter" or is_policy(reason)
        kind = "content_policy" if filtered else "api_error"
        suffix = f": {reason[:200]}" if reason else "."
        raise ImageFault(f"{self.LABEL} returned no image{suffix}", kind=kind)
