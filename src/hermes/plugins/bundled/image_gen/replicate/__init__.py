"""Generates images with Replicate: starts a prediction, waits for it and fetches its output."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.images.client import ImageServerClient, error_from_message
from hermes.images.hosted import (
    RATIOS,
    GeneratedImage,
    HostedProvider,
    HostedRequest,
    model_row,
    source_urls,
)
from hermes.images.storage import ImageFault

POLL_SECONDS = 1.0
_ENDED = ("succeeded", "failed", "canceled", "aborted")
# The input for source images, and whether it takes several.
_INPUTS: dict[str, tuple[str, bool]] = {
    "google/nano-banana": ("image_input", True),
    "bytedance/seedream-4": ("image_input", True),
    "black-forest-labs/flux-kontext-pro": ("input_image", False),
}


def _row(id: str, display: str, strengths: str, price: str) -> JsonObject:
    return model_row(id, display, strengths=strengths, price=price, edits=id in _INPUTS)


class ReplicateProvider(HostedProvider):
    NAME = "replicate"
    LABEL = "Replicate"
    URL = "https://api.replicate.com/v1"
    KEY = "REPLICATE_API_TOKEN"
    SIGNUP = "https://replicate.com/account/api-tokens"
    TAG = "open models and others"
    MODELS = (
        _row("black-forest-labs/flux-schnell", "FLUX schnell", "fast", "$0.003/image"),
        _row("black-forest-labs/flux-1.1-pro", "FLUX 1.1 pro", "photographs", "$0.04/image"),
        _row("black-forest-labs/flux-kontext-pro", "FLUX Kontext", "edits", "$0.04/image"),
        _row("google/nano-banana", "Nano Banana", "edits", "$0.039/image"),
        _row("bytedance/seedream-4", "Seedream 4", "large images", "$0.03/image"),
    )

    def most_sources(self, model: str) -> int:
        if model not in _INPUTS:
            return 0
        return 8 if _INPUTS[model][1] else 1

    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        wanted: JsonObject = {"prompt": request.prompt, "aspect_ratio": RATIOS[request.aspect]}
        if request.seed is not None:
            wanted["seed"] = request.seed
        if request.sources:
            field, several = _INPUTS[request.model]
            urls = await source_urls(request)
            wanted[field] = urls if several else urls[0]
        begun = await client.post(
            f"models/{request.model}/predictions", {"input": wanted}, {"prefer": "wait=30"}
        )
        output = (await self._wait_for_result(begun, client)).get("output")
        first = output[0] if isinstance(output, list) and output else output
        if not isinstance(first, str) or not first:
            raise ImageFault("Replicate returned no image.", kind="api_error")
        return GeneratedImage(url=first)

    async def _wait_for_result(
        self, prediction: JsonObject, client: ImageServerClient
    ) -> JsonObject:
        id = str(prediction.get("id") or "")
        try:
            while prediction.get("status") not in _ENDED:
                if not id:
                    raise ImageFault(f"{self.LABEL} did not start a prediction.", kind="api_error")
                await self.studio.world.clock.sleep(POLL_SECONDS)
                prediction = await client.get(f"predictions/{id}")
        except BaseException:
            await client.cancel("POST", f"predictions/{id}/cancel")
            raise
        if prediction["status"] != "succeeded":
            raise error_from_message(self.LABEL, prediction.get("error") or prediction["status"])
        return prediction
