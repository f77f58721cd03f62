"""Pictures by Replicate: a prediction is begun, waited for, and its output fetched."""

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
from hermes.images.registry import BundledContext
from hermes.images.storage import ImageFault

POLL_SECONDS = 1.0
_OVER = ("succeeded", "failed", "canceled", "aborted")
# The input that takes pictures, and whether it takes several.
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
        _row("black-forest-labs/flux-kontext-pro", "FLUX Kontext", "changes", "$0.04/image"),
        _row("google/nano-banana", "Nano Banana", "changes of pictures", "$0.039/image"),
        _row("bytedance/seedream-4", "Seedream 4", "large pictures", "$0.03/image"),
    )

    def most_sources(self, model: str) -> int:
        if model not in _INPUTS:
            return 0
        return 8 if _INPUTS[model][1] else 1

    async def draw(self, order: HostedRequest, line: ImageServerClient) -> GeneratedImage:
        wanted: JsonObject = {"prompt": order.prompt, "aspect_ratio": RATIOS[order.aspect]}
        if order.seed is not None:
            wanted["seed"] = order.seed
        if order.sources:
            field, several = _INPUTS[order.model]
            urls = await source_urls(order)
            wanted[field] = urls if several else urls[0]
        begun = await line.post(
            f"models/{order.model}/predictions", {"input": wanted}, {"prefer": "wait=30"}
        )
        output = (await self._wait_for_result(begun, line)).get("output")
        first = output[0] if isinstance(output, list) and output else output
        if not isinstance(first, str) or not first:
            raise ImageFault("Replicate gave no picture.", kind="api_error")
        return GeneratedImage(url=first)

    async def _wait_for_result(self, prediction: JsonObject, line: ImageServerClient) -> JsonObject:
        id = str(prediction.get("id") or "")
        try:
            while prediction.get("status") not in _OVER:
                if not id:
                    raise ImageFault(f"{self.LABEL} began no prediction.", kind="api_error")
                await self.studio.world.clock.sleep(POLL_SECONDS)
                prediction = await line.get(f"predictions/{id}")
        except BaseException:
            await line.cancel("POST", f"predictions/{id}/cancel")
            raise
        if prediction["status"] != "succeeded":
            raise error_from_message(self.LABEL, prediction.get("error") or prediction["status"])
        return prediction


def register(ctx: BundledContext) -> None:
    ctx.register_image_gen_provider(ReplicateProvider(ctx.studio))
