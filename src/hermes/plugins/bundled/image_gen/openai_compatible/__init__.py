"""Generates images with any server that implements the images API of OpenAI."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.images.client import ImageServerClient
from hermes.images.hosted import GeneratedImage, HostedProvider, HostedRequest, generate_like_openai
from hermes.images.storage import ImageFault
from hermes.images.studio import Studio

SIZES = {"landscape": "1536x1024", "square": "1024x1024", "portrait": "1024x1536"}


class CompatibleProvider(HostedProvider):
    NAME = "openai-compatible"
    LABEL = "OpenAI-compatible server"
    KEY = "OPENAI_COMPATIBLE_IMAGE_API_KEY"
    TAG = "a server of your own, such as LocalAI"
    MOST_SOURCES = 16

    def __init__(self, studio: Studio) -> None:
        super().__init__(studio)
        self.url = str(self.options.get("base_url") or "").rstrip("/")

    def is_available(self) -> bool:
        """Return whether an address is set. Many such servers need no key."""
        return bool(self.url)

    def default_model(self) -> str | None:
        return str(self.studio.settings.get("model") or "") or None

    def get_setup_schema(self) -> JsonObject:
        schema = super().get_setup_schema()
        variable = {**schema["env_vars"][0], "prompt": "API key, if the server needs one"}
        return {**schema, "badge": "local", "env_vars": [{**variable, "required": False}]}

    def missing(self) -> ImageFault:
        return ImageFault(
            "The URL of the server is missing; set it with "
            "`hermes config set image_gen.openai_compatible.base_url http://…/v1`.",
            kind="invalid_argument",
        )

    @property
    def seconds(self) -> float:
        return float(self.options.get("timeout") or super().seconds)

    async def headers(self) -> dict[str, str]:
        return await super().headers() if self.studio.key(self.KEY) else {}

    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        sizes = {**SIZES, **(self.options.get("size_by_aspect") or {})}
        fields: JsonObject = {"prompt": request.prompt, "size": sizes[request.aspect], "n": 1}
        if request.model:
            fields["model"] = request.model
        fields |= self.options.get("params") or {}
        return await generate_like_openai(request, client, fields, self.LABEL, part="image")
