"""The base class of providers that call a server."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any, ClassVar

from hermes.codec.values import JsonObject, Value
from hermes.images.client import ImageServerClient, Upload
from hermes.images.provider import (
    DEFAULT_ASPECT_RATIO,
    ImageGenProvider,
    aload_source_image,
    error_response,
    references_of,
    resolve_aspect_ratio,
    success_response,
)
from hermes.images.registry import choose_model
from hermes.images.storage import MAX_BYTES, ImageFault, check_image, data_url, decode_base64
from hermes.images.studio import Studio, run_sync, use_studio
from hermes.net.addresses import host_of

RATIOS = {"landscape": "16:9", "square": "1:1", "portrait": "9:16"}


def model_row(
    id: str, display: str, *, speed: str = "", strengths: str, price: str = "", edits: bool = True
) -> JsonObject:
    """Return one model of a list; `edits` says whether it takes source images."""
    modalities = ["text", "image"] if edits else ["text"]
    return {
        "id": id, "display": display, "speed": speed, "strengths": strengths, "price": price,
        "modalities": modalities,
    }  # fmt: skip


class HostedRequest(Value):
    """One image to generate."""

    prompt: str
    aspect: str
    model: str
    sources: tuple[str, ...] = ()  # images to generate it from
    seed: int | None = None
    upscale: bool = False


class GeneratedImage(Value):
    """An image as bytes, or a temporary URL."""

    data: bytes = b""
    url: str = ""
    model: str = ""  # set if another model than requested generated it
    extra: JsonObject = {}


class HostedProvider(ImageGenProvider):
    """The base of providers that call a server. Subclasses define constants and `draw`."""

    NAME: ClassVar[str]
    LABEL: ClassVar[str]
    URL: ClassVar[str] = ""
    KEY: ClassVar[str] = ""
    SIGNUP: ClassVar[str] = ""
    TAG: ClassVar[str] = ""
    SECONDS: ClassVar[float] = 300
    MODELS: ClassVar[tuple[JsonObject, ...]] = ()
    MOST_SOURCES: ClassVar[int] = 0

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.url = self.URL

    @property
    def name(self) -> str:
        return self.NAME

    @property
    def display_name(self) -> str:
        return self.LABEL

    @property
    def options(self) -> JsonObject:
        return self.studio.options(self.NAME)

    @property
    def seconds(self) -> float:
        """Return the timeout from the settings, else the default."""
        return float(self.studio.settings.get("timeout") or self.SECONDS)

    def is_available(self) -> bool:
        return bool(self.studio.key(self.KEY)) if self.KEY else True

    def list_models(self) -> list[JsonObject]:
        return [dict(row) for row in self.MODELS]

    def get_setup_schema(self) -> JsonObject:
        variables: list[JsonObject] = []
        if self.KEY:
            prompt = f"{self.LABEL} API key"
            variables = [{"key": self.KEY, "prompt": prompt, "url": self.SIGNUP, "secret": True}]
        badge = "" if self.KEY else "local"
        return {"name": self.LABEL, "badge": badge, "tag": self.TAG, "env_vars": variables}

    def capabilities(self) -> JsonObject:
        most = self.most_sources(choose_model(self, self.studio))
        modalities = ["text", "image"] if most else ["text"]
        return {"modalities": modalities, "max_reference_images": most}

    def most_sources(self, model: str) -> int:
        """Return how many source images this model takes."""
        return self.MOST_SOURCES

    def host(self) -> str:
        return host_of(self.url)

    @abstractmethod
    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        """Generate the image; raise ImageFault that says why there is none."""

    async def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.studio.key(self.KEY)}"} if self.KEY else {}

    def missing(self) -> ImageFault:
        """Return why the chosen provider cannot be used."""
        what = self.KEY or "to be chosen as image_gen.provider"
        return ImageFault(
            f"{self.LABEL} needs {what}; set it up with `hermes tools images`.",
            kind="auth_required",
        )

    def generate(
        self, prompt: str, aspect_ratio: str = DEFAULT_ASPECT_RATIO, **kwargs: Any
    ) -> JsonObject:
        return run_sync(self.agenerate(prompt, aspect_ratio, **kwargs))

    async def agenerate(
        self, prompt: str, aspect_ratio: str = DEFAULT_ASPECT_RATIO, **kwargs: Any
    ) -> JsonObject:
        seed = kwargs.get("seed")
        request = HostedRequest(
            prompt=str(prompt or "").strip(),
            aspect=resolve_aspect_ratio(aspect_ratio),
            model=choose_model(self, self.studio, kwargs.get("model")),
            sources=references_of(kwargs.get("image_url"), kwargs.get("reference_image_urls")),
            seed=seed if isinstance(seed, int) and seed >= 0 else None,
            upscale=kwargs.get("upscale") is True,
        )
        try:
            with use_studio(self.studio):
                return await self._generate(request)
        except ImageFault as fault:
            message, kind = str(fault), fault.kind
        except TimeoutError:
            message, kind = f"{self.LABEL} did not finish within {self.seconds:g} s.", "timeout"
        return error_response(
            error=message,
            error_type=kind,
            provider=self.name,
            model=request.model,
            prompt=request.prompt,
            aspect_ratio=request.aspect,
        )

    async def _generate(self, request: HostedRequest) -> JsonObject:
        self._check(request)
        async with asyncio.timeout(self.seconds), self.studio.http() as http:
            headers = await self.headers()
            client = ImageServerClient(
                http,
                self.url,
                label=self.LABEL,
                world=self.studio.world,
                headers=headers,
                seconds=self.seconds,
                hide=headers.get("authorization", "").partition(" ")[2],
            )
            drawn = await self.draw(request, client)
            image, extra = await self._save(drawn, client)
        return success_response(
            image=image,
            model=drawn.model or request.model,
            prompt=request.prompt,
            aspect_ratio=request.aspect,
            provider=self.name,
            modality="image" if request.sources else "text",
            extra={**drawn.extra, **extra},
        )

    def _check(self, request: HostedRequest) -> None:
        if not request.prompt:
            raise ImageFault("The prompt is empty.", kind="invalid_argument")
        if not self.is_available():
            raise self.missing()
        most = self.most_sources(request.model)
        if len(request.sources) > most:
            limit = f"takes at most {most} images."
            if not most:
                limit = (
                    "cannot edit images; omit them, or choose another model with "
                    "`hermes tools images`."
                )
            raise ImageFault(f"{request.model or self.LABEL} {limit}", kind="invalid_argument")

    async def _save(
        self, drawn: GeneratedImage, client: ImageServerClient
    ) -> tuple[str, JsonObject]:
        """Return the path of the image; a URL that cannot be saved is better than nothing."""
        data = drawn.data
        if not data and drawn.url[:5].lower() == "data:":
            data = decode_base64(drawn.url)
        try:
            if not data and client.owns(drawn.url):
                data = await client.download_image(drawn.url)
            elif not data:
                data = await self.studio.download(drawn.url, timeout=60, max_bytes=MAX_BYTES)
            keep = self.studio.cache.keep
            return str(await asyncio.to_thread(keep, check_image(data), prefix=self.name)), {}
        except ImageFault as fault:
            if drawn.data or drawn.url[:5].lower() == "data:":
                raise
            if not drawn.url.startswith(("http://", "https://")):
                raise ImageFault(f"{self.LABEL} returned no image.", kind="api_error") from fault
            return drawn.url, {"warning": f"The image could not be saved: {fault}"}


class SelfHostedProvider(HostedProvider):
    """A server that the user runs, at its usual URL unless the settings have another. It is
    available if the settings choose it or set its URL."""

    TAG = "your own server; nothing leaves it"
    MOST_SOURCES = 1

    def __init__(self, studio: Studio) -> None:
        super().__init__(studio)
        self.url = str(self.options.get("base_url") or self.URL).rstrip("/")

    def is_available(self) -> bool:
        return bool(self.options.get("base_url")) or self.studio.wanted == self.NAME


async def source_urls(request: HostedRequest) -> list[str]:
    """Return the source images as data URLs."""
    return [data_url((await aload_source_image(source))[0]) for source in request.sources]


async def generate_like_openai(
    request: HostedRequest, client: ImageServerClient, fields: JsonObject, label: str, *, part: str
) -> GeneratedImage:
    """Use the format of OpenAI's images API; `part` is the form field of an image."""
    if not request.sources:
        return first_image(await client.post("images/generations", fields), label)
    files = []
    for source in request.sources:
        data, name = await aload_source_image(source)
        files.append(Upload(field=part, name=name, data=data))
    texts = {name: str(value) for name, value in fields.items()}
    return first_image(await client.post_form("images/edits", texts, files), label)


def first_image(answer: JsonObject, label: str) -> GeneratedImage:
    """Return the image from an answer in the format of OpenAI's images API."""
    rows = answer.get("data")
    row = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    extra: JsonObject = {}
    if isinstance(revised := row.get("revised_prompt"), str) and revised:
        extra["revised_prompt"] = revised
    if isinstance(text := row.get("b64_json"), str) and text:
        return GeneratedImage(data=decode_base64(text), extra=extra)
    if isinstance(url := row.get("url"), str) and url:
        return GeneratedImage(url=url, extra=extra)
    raise ImageFault(f"{label} returned no image.", kind="api_error")
