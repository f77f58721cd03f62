"""Generates images with a Stable Diffusion web UI (AUTOMATIC1111, Forge) that has its API on."""

from __future__ import annotations

import base64

from hermes.codec.values import JsonObject
from hermes.images.client import ImageServerClient, error_from_message
from hermes.images.hosted import GeneratedImage, HostedRequest, SelfHostedProvider
from hermes.images.provider import aload_source_image
from hermes.images.storage import decode_base64

SIZES = {"landscape": (1152, 768), "square": (1024, 1024), "portrait": (768, 1152)}
LOGIN = "SDWEBUI_CREDENTIALS"


class WebUiProvider(SelfHostedProvider):
    NAME = "sdwebui"
    LABEL = "Stable Diffusion web UI"
    URL = "http://127.0.0.1:7860"

    def get_setup_schema(self) -> JsonObject:
        variable = {
            "key": LOGIN,
            "prompt": "user:password, if it was started with --api-auth",
            "url": "",
            "secret": True,
            "required": False,
        }
        return {**super().get_setup_schema(), "env_vars": [variable]}

    async def headers(self) -> dict[str, str]:
        login = self.studio.variable(LOGIN)
        if not login:
            return {}
        return {"authorization": "Basic " + base64.b64encode(login.encode()).decode()}

    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        width, height = SIZES[request.aspect]
        body: JsonObject = {
            "prompt": request.prompt,
            "negative_prompt": str(self.options.get("negative_prompt") or ""),
            "width": width,
            "height": height,
            "steps": int(self.options.get("steps") or 20),
            "seed": -1 if request.seed is None else request.seed,
            "batch_size": 1,
            "n_iter": 1,
        }
        if request.model:
            body["override_settings"] = {"sd_model_checkpoint": request.model}
        body |= self.options.get("params") or {}
        if not request.sources:
            return self._parse_image(await client.post("sdapi/v1/txt2img", body))
        data, _ = await aload_source_image(request.sources[0])
        body = {"denoising_strength": 0.65, **body}
        body["init_images"] = [base64.b64encode(data).decode()]
        return self._parse_image(await client.post("sdapi/v1/img2img", body))

    def _parse_image(self, answer: JsonObject) -> GeneratedImage:
        images = answer.get("images")
        if not isinstance(images, list) or not images or not isinstance(images[0], str):
            raise error_from_message(self.LABEL, answer, kind="api_error")
        return GeneratedImage(data=decode_base64(images[0]))
