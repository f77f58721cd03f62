"""Generates images with fal.ai: queues a request and fetches its result."""

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
# The field of the size, and its values for landscape, square and portrait.
_SIZES: dict[Sizes, tuple[str, tuple[str, str, str]]] = {
    "presets": ("image_size", ("landscape_16_9", "square_hd", "portrait_16_9")),
    "presets_4_3": ("image_size", ("landscape_4_3", "square_hd", "portrait_4_3")),
    "ratios": ("aspect_ratio", ("16:9", "1:1", "9:16")),
    "pixels": ("image_size", ("1536x1024", "1024x1024", "1024x1536")),
}


class FalModel(Value):
    """A model at fal.ai."""

    id: str
    display: str
    speed: str = ""
    strengths: str = ""
    price: str = ""
    sizes: Sizes = "presets"
    edit: str = ""  # the endpoint that edits images; "" if there is none
    most_sources: int = 0  # the most images that `edit` takes
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

    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        model = MODELS[request.model]
        wanted: JsonObject = {"prompt": request.prompt, **model.size(request.aspect), **model.fixed}
        if request.seed is not None:
            wanted["seed"] = request.seed
        endpoint = model.id
        if request.sources:
            endpoint = model.edit
            urls = await source_urls(request)
            wanted |= {"image_urls": urls} if model.most_sources > 1 else {"image_url": urls[0]}
        drawn = self._parse_image(await self._wait_in_queue(endpoint, wanted, client))
        return await self._upscale(drawn, client) if request.upscale else drawn

    async def _upscale(self, drawn: GeneratedImage, client: ImageServerClient) -> GeneratedImage:
        """Double the size; return the original image when that fails."""
        try:
            answer = await self._wait_in_queue(
                UPSCALER, {"image_url": drawn.url, **UPSCALING}, client
            )
            larger = self._parse_image(answer)
        except (ImageFault, TimeoutError) as error:
            why = str(error) or "it took too long"
            return replace(drawn, extra={**drawn.extra, "upscaled": False, "warning": why})
        return replace(larger, extra={**larger.extra, "upscaled": True})

    async def _wait_in_queue(
        self, endpoint: str, wanted: JsonObject, client: ImageServerClient
    ) -> JsonObject:
        begun = await client.post(endpoint, wanted)
        id = str(begun.get("request_id") or "")
        if not id:
            raise ImageFault(f"{self.LABEL} did not accept the request.", kind="api_error")
        # URLs of a request contain only the owner and the name of the app.
        here = f"{'/'.join(endpoint.split('/')[:2])}/requests/{id}"
        try:
            await self._wait_until_done(
                _own(begun.get("status_url"), f"{here}/status", client), client
            )
        except BaseException:
            await client.cancel("PUT", _own(begun.get("cancel_url"), f"{here}/cancel", client))
            raise
        return await client.get(_own(begun.get("response_url"), here, client))

    async def _wait_until_done(self, status_url: str, client: ImageServerClient) -> None:
        wait = POLL_SECONDS
        while True:
            state = await client.get(status_url)
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
            raise error_from_message(self.LABEL, "the image was flagged by the safety checker")
        extra = {key: image[key] for key in ("width", "height") if isinstance(image.get(key), int)}
        if isinstance(answer.get("seed"), int):
            extra["seed"] = answer["seed"]
        return GeneratedImage(url=url, extra=extra)


def _own(url: object, usual: str, client: ImageServerClient) -> str:
    """Return the URL from the response if it belongs to the same server, since the key is sent
    there."""
    return url if isinstance(url, str) and client.owns(url) else usual
