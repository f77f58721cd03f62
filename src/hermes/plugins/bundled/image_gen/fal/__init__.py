"""Pictures by fal.ai: requests wait in a queue and are fetched when they are done."""

from __future__ import annotations

from hermes.codec.values import JsonObject, replace
from hermes.images.client import ImageServerClient, cancel_request, error_from_message
from hermes.images.hosted import GeneratedImage, HostedProvider, HostedRequest
from hermes.images.provider import aload_source_image
from hermes.images.registry import BundledContext
from hermes.images.storage import ImageFault, data_url
from hermes.plugins.bundled.image_gen.fal.catalogue import MODELS

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
            urls = [data_url((await aload_source_image(each))[0]) for each in order.sources]
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
            await cancel_request(line, "PUT", _own(begun.get("cancel_url"), f"{here}/cancel", line))
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
