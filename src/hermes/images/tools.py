"""The image generation tool, with policy and cost accounting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.effects import Draw, Effect, FetchUrl, ReadPath
from hermes.core.errors import ToolError
from hermes.core.messages import Text
from hermes.core.prompt import ToolSpec
from hermes.core.tools import PathContext, Tool, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.images.generator import ImageGenerator, ImageRequest, capabilities_of
from hermes.images.provider import (
    ImageGenProvider,
    error_response,
    references_of,
    resolve_aspect_ratio,
)
from hermes.images.storage import MAX_BYTES, ImageFault, check_image, data_url, media_type

HERE = "this machine"
# Parameters that edit images.
_EDITING = ("image_url", "reference_image_urls")


class ImageService:
    """Image generation for one session: what the tool gets from `ToolContext.service`."""

    def __init__(self, generator: ImageGenerator | None = None) -> None:
        self.generator = generator


def _calls(_place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
    yield _draw_effect("unknown", HERE, arguments)


@tool(
    effects=_calls,
    toolset="image_gen",
    kind="execute",
    display=ToolDisplay(icon="🎨", verb="draw", detail="{prompt}"),
    conditional=True,
)
async def image_generate(
    ctx: ToolContext,
    prompt: Annotated[str, "Detailed description"],
    aspect_ratio: Annotated[str, "landscape, square or portrait"] = "landscape",
    image_url: Annotated[str | None, "Image to edit: path or URL"] = None,
    reference_image_urls: Annotated[list[str] | None, "More reference images"] = None,
    upscale: Annotated[bool, "Double the size; costs more"] = False,
) -> ToolOutput:
    """Generate an image. Give the user the path in `image`."""
    generator = ctx.service(ImageService).generator
    if generator is None:
        raise ToolError("No image provider is configured; set one up with `hermes tools images`.")
    references = references_of(image_url, reference_image_urls)
    request = ImageRequest(
        prompt=prompt, aspect=resolve_aspect_ratio(aspect_ratio), upscale=upscale
    )
    try:
        sources = [await _inline_image(ctx, each) for each in references]
    except ToolError as error:
        if type(error) is not ToolError:
            raise
        answer = error_response(
            error=str(error),
            error_type="invalid_argument",
            prompt=prompt,
            aspect_ratio=request.aspect,
        )
    else:
        answer = await generator.generate(request, tuple(sources))
    return await _output(ctx, answer)


async def _inline_image(ctx: ToolContext, ref: str) -> str:
    """Turn a local image into a data URL, so that a provider reads no files."""
    if _is_remote(ref):
        return ref
    # A remote workspace may have to be asked.
    path = await asyncio.to_thread(ctx.workspace.resolve, ref.removeprefix("file://"))
    info = await ctx.workspace.stat(path)
    if info is None or info.kind != "file":
        raise ToolError(f"There is no image at {ref}.")
    if info.size > MAX_BYTES:
        raise ToolError(f"{ref} is larger than {MAX_BYTES // 1024 // 1024} MB.")
    data = await ctx.workspace.read_bytes(path)
    if not media_type(data):
        raise ToolError(f"{ref} is not a PNG, JPEG, GIF, WebP, BMP or AVIF image.")
    return data_url(check_image(data))


async def _output(ctx: ToolContext, answer: JsonObject) -> ToolOutput:
    details: JsonObject = {key: answer.get(key) for key in ("image", "provider", "model")}
    if answer["success"] and ctx.workspace.is_remote and not _is_remote(str(answer["image"])):
        file = Path(str(answer["image"]))
        data = await asyncio.to_thread(file.read_bytes)
        copy = await ctx.workspace.scratch(file.name, data)
        answer = {**answer, "agent_visible_image": copy}
    text = encode(answer).decode()
    # The user chose the image provider, like the model provider.
    return ToolOutput(
        parts=(Text(text=text),), details=details, failed=not answer["success"], origin="hermes"
    )


def _is_remote(ref: str) -> bool:
    return ref[:8].lower().startswith(("http://", "https://", "data:"))


def _draw_effect(provider: str, host: str, arguments: JsonObject) -> Draw:
    """Return the data that a call sends, for the policy and approvals. Image data is left out,
    because it would hide the rest."""
    refs = references_of(arguments.get("image_url"), arguments.get("reference_image_urls"))
    shown = tuple(ref if ref[:5].lower() != "data:" else "data:" for ref in refs)
    prompt = str(arguments.get("prompt", ""))
    return Draw(provider=provider, host=host, prompt=prompt, images=shown)


class ImageTool(Tool):
    """The tool adapted to the active provider: options that it lacks are not offered."""

    def __init__(self, active: Callable[[], ImageGenProvider]) -> None:
        self._active = active
        self.name = image_generate.name
        self.description = image_generate.description
        self.parameters = image_generate.parameters
        self.effects = self._effects
        self.repeat = image_generate.repeat
        self.interactive = False

    @property
    def spec(self) -> ToolSpec:
        provider = self._provider()
        return spec_for({} if provider is None else capabilities_of(provider))

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        return await image_generate(ctx, arguments)

    def _effects(self, paths: PathContext, arguments: JsonObject) -> Iterator[Effect]:
        """Yield the effects of a call. The effect that sends data comes first, because reading an
        image adds no text that could have caused the call."""
        provider = self._provider()
        if provider is None:
            return
        yield _draw_effect(provider.name, provider.host() or HERE, arguments)
        for ref in references_of(arguments.get("image_url"), arguments.get("reference_image_urls")):
            if not _is_remote(ref):
                yield ReadPath(path=paths.resolve(ref.removeprefix("file://")))
            elif ref[:5].lower() != "data:":
                yield FetchUrl(url=ref)

    def _provider(self) -> ImageGenProvider | None:
        """Return None when there is no provider: the call itself then says why."""
        try:
            return self._active()
        except ImageFault:
            return None


def spec_for(capabilities: JsonObject) -> ToolSpec:
    whole = image_generate.spec
    unwanted: set[str] = set()
    if "image" not in (capabilities.get("modalities") or ()):
        unwanted.update(_EDITING)
    elif int(capabilities.get("max_reference_images") or 0) < 2:
        unwanted.add("reference_image_urls")
    if not capabilities.get("supports_upscale"):
        unwanted.add("upscale")
    properties = whole.parameters["properties"]
    kept = {name: each for name, each in properties.items() if name not in unwanted}
    return ToolSpec(
        name=whole.name,
        description=whole.description,
        parameters={**whole.parameters, "properties": kept},
    )
