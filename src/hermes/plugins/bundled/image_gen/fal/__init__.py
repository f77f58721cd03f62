"""Pictures by fal.ai: requests wait in a queue and are fetched when they are done."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from hermes.codec.json import convert
from hermes.codec.values import JsonObject, Value, replace
from hermes.images.client import ImageServerClient, error_from_message
from hermes.images.hosted import (
    GeneratedImage,
    HostedProvider,
    HostedRequest,
    model_row,
    source_urls,
)
from hermes.images.registry import BundledContext
from hermes.images.storage import ImageFault

POLL_SECONDS = 0.5
LONGEST_POLL = 3.0
UPSCALER = "fal-ai/clarity-upscaler"
UPSCALING: JsonObject = {
    "upscale_factor": 2,
    "creativity": 0.35,
    "resemblance": 0.6,
    "guidance_scale": 4,
    "num_inference_steps": 18,
}

Sizes = Literal["presets", "presets_4_3", "ratios", "pixels"]
# For each way: the name of the field, and its values for landscape, square and portrait.
_SIZES: dict[Sizes, tuple[str, tuple[str, str, str]]] = {
    "presets": ("image_size", ("landscape_16_9", "square_hd", "portrait_16_9")),
    "presets_4_3": ("image_size", ("landscape_4_3", "square_hd", "portrait_4_3")),
    "ratios": ("aspect_ratio", ("16:9", "1:1", "9:16")),
    "pixels": ("image_size", ("1536x1024", "1024x1024", "1024x1536")),
}


class FalModel(Value):
    """`edit` is the endpoint that makes a picture from at most `most_sources` others."""

    id: str
    display: str
    speed: str = ""
    strengths: str = ""
    price: str = ""
    sizes: Sizes = "presets"
    edit: str = ""
    most_sources: int = 0
    fixed: JsonObject = {}

    def size(self, aspect: str) -> JsonObject:
        field, values = _SIZES[self.sizes]
        return {field: values[("landscape", "square", "portrait").index(aspect)]}

    def row(self) -> JsonObject:
        return model_row(
            self.id,
            self.display,
            speed=self.speed,
            strengths=self.strengths,
            price=self.price,
            edits=bool(self.edit),
        )


_FILE = Path(__file__).with_name("models.toml")
MODELS = {
    model.id: model
    for model in convert(list[FalModel], tomllib.loads(_FILE.read_text("utf-8"))["model"])
}


class FalProvider(HostedProvider):
    NAME = "fal"
    LABEL = "fal"
    URL = "https://queue.fal.run"
    KEY = "FAL_KEY"
    SIGNUP = "https://fal.ai/dashboard/keys"
    TAG = "FLUX, Nano Banana, Ideogram, Recraft and more"
    MODELS = tuple(model.row() for model in MODELS.values())

    def capabilities(self) -> JsonObject:
        return {**super().capabilities(), "supports_upscale": True}

    def most_sources(self, model: str) -> int:
        return MODELS[model].most_sources

    async def headers(self) -> dict[str, str]:
        return {"authorization": f"Key {self.studio.key(self.KEY)}"}

    async def draw(self, order: HostedRequest, line: ImageServerClient) -> GeneratedImage:
        model = MODELS[order.model]
        wanted: JsonObject = {"prompt": order.prompt, **model.size(order.aspect), **model.fixed}
        if order.seed is not None:
            wanted["seed"] = order.seed
        endpoint = model.id
        if order.sources:
            endpoint = model.edit
            urls = await source_urls(order)
            wanted |= {"image_urls": urls} if model.most_sources > 1 else {"image_url": urls[0]}
        drawn = self._parse_image(await self._wait_in_queue(endpoint, wanted, line))
        return await self._upscale(drawn, line) if order.upscale else drawn

    async def _upscale(self, drawn: GeneratedImage, line: ImageServerClient) -> GeneratedImage:
        """Twice as large; the picture as it was where that does not work."""
        try:
            answer = await self._wait_in_queue(
                UPSCALER, {"image_url": drawn.url, **UPSCALING}, line
            )
            larger = self._parse_image(answer)
        except (ImageFault, TimeoutError) as error:
            why = str(error) or "it took too long"
            return replace(drawn, extra={**drawn.extra, "upscaled": False, "warning": why})
        return replace(larger, extra={**larger.extra, "upscaled": True})

    async def _wait_in_queue(
        self, endpoint: str, wanted: JsonObject, line: ImageServerClient
    ) -> JsonObject:
        begun = await line.post(endpoint, wanted)
        id = str(begun.get("request_id") or "")
        if not id:
            raise ImageFault(f"{self.LABEL} took no request.", kind="api_error")
        # Addresses of a request leave out what comes after the name of the app.
        here = f"{'/'.join(endpoint.split('/')[:2])}/requests/{id}"
        try:
            await self._done(_own(begun.get("status_url"), f"{here}/status", line), line)
        except BaseException:
            await line.cancel("PUT", _own(begun.get("cancel_url"), f"{here}/cancel", line))
            raise
        return await line.get(_own(begun.get("response_url"), here, line))

    async def _done(self, status_url: str, line: ImageServerClient) -> None:
        wait = POLL_SECONDS
        while True:
            state = await line.get(status_url)
            match state.get("status"):
                case "COMPLETED":
                    if state.get("error"):
                        raise error_from_message(self.LABEL, state["error"])
                    return
                case "IN_QUEUE" | "IN_PROGRESS":
                    await self.studio.world.clock.sleep(wait)
                    wait = min(LONGEST_POLL, wait * 1.5)
                case other:
                    raise error_from_message(
                        self.LABEL, state.get("error") or f"its state is {other}"
                    )

    def _parse_image(self, answer: JsonObject) -> GeneratedImage:
        images = answer.get("images") or [answer.get("image") or {}]
        image = images[0] if isinstance(images[0], dict) else {"url": images[0]}
        url = image.get("url")
        if not isinstance(url, str) or not url:
            raise error_from_message(self.LABEL, answer, kind="api_error")
        flags = answer.get("has_nsfw_concepts")
        if isinstance(flags, list) and flags and flags[0] is True:
            raise error_from_message(self.LABEL, "the picture was flagged by the safety checker")
        extra = {key: image[key] for key in ("width", "height") if isinstance(image.get(key), int)}
        if isinstance(answer.get("seed"), int):
            extra["seed"] = answer["seed"]
        return GeneratedImage(url=url, extra=extra)


def _own(told: object, usual: str, line: ImageServerClient) -> str:
    """The address that the server told, if it is its own: the key goes there."""
    return told if isinstance(told, str) and line.owns(told) else usual


def register(ctx: BundledContext) -> None:
    ctx.register_image_gen_provider(FalProvider(ctx.studio))
