"""The tool that draws: judged and booked like everything else that leaves the machine."""

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
from hermes.core.tools import Place, Tool, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.images.drawing import Drawing, Wish, capabilities_of
from hermes.images.faults import ImageFault
from hermes.images.pictures import MAX_BYTES, checked, data_url, media_type
from hermes.images.provider import (
    ImageGenProvider,
    error_response,
    references_of,
    resolve_aspect_ratio,
)

HERE = "this machine"
# What a model may be told of a picture, besides what it asked for.
_PICTURES_ONLY = ("image_url", "reference_image_urls")


class Drawer:
    """Of one session: what the tool finds with `ToolContext.kept`."""

    def __init__(self, drawing: Drawing | None = None) -> None:
        self.drawing = drawing


def _calls(_place: Place, arguments: JsonObject) -> Iterable[Effect]:
    yield _drawing("unknown", HERE, arguments)


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
    drawing = ctx.kept(Drawer).drawing
    if drawing is None:
        raise ToolError("Nobody can draw here; `hermes tools images` sets a provider up.")
    references = references_of(image_url, reference_image_urls)
    wish = Wish(prompt=prompt, aspect=resolve_aspect_ratio(aspect_ratio), upscale=upscale)
    try:
        sources = [await _opened(ctx, each) for each in references]
    except ToolError as error:
        if type(error) is not ToolError:
            raise
        answer = error_response(
            error=str(error), error_type="invalid_argument", prompt=prompt, aspect_ratio=wish.aspect
        )
    else:
        answer = await drawing.make(wish, tuple(sources))
    return await _output(ctx, answer)


async def _opened(ctx: ToolContext, ref: str) -> str:
    """A local picture as a data URL, so that a provider reads no files; the rest as it is."""
    if _is_remote(ref):
        return ref
    # Another machine may have to be asked.
    path = await asyncio.to_thread(ctx.workspace.resolve, ref.removeprefix("file://"))
    info = await ctx.workspace.stat(path)
    if info is None or info.kind != "file":
        raise ToolError(f"There is no picture at {ref}.")
    if info.size > MAX_BYTES:
        raise ToolError(f"{ref} is larger than {MAX_BYTES // 1024 // 1024} MB.")
    data = await ctx.workspace.read_bytes(path)
    if not media_type(data):
        raise ToolError(f"{ref} is not a PNG, JPEG, GIF, WebP, BMP or AVIF picture.")
    return data_url(checked(data))


async def _output(ctx: ToolContext, answer: JsonObject) -> ToolOutput:
    details: JsonObject = {key: answer.get(key) for key in ("image", "provider", "model")}
    if answer["success"] and ctx.workspace.far and not _is_remote(str(answer["image"])):
        answer = {**answer, "agent_visible_image": await _carried(ctx, str(answer["image"]))}
    text = encode(answer).decode()
    # The person chose who draws, as they chose who writes.
    return ToolOutput(
        parts=(Text(text=text),), details=details, failed=not answer["success"], origin="hermes"
    )


async def _carried(ctx: ToolContext, path: str) -> str:
    """Where tools of a workspace on another machine find the picture."""
    file = Path(path)
    return await ctx.workspace.scratch(file.name, await asyncio.to_thread(file.read_bytes))


def _is_remote(ref: str) -> bool:
    return ref[:8].lower().startswith(("http://", "https://", "data:"))


def _drawing(provider: str, host: str, arguments: JsonObject) -> Draw:
    """What leaves with a call, for the policy and for a person; pictures in full would hide it."""
    refs = references_of(arguments.get("image_url"), arguments.get("reference_image_urls"))
    shown = tuple(ref if ref[:5].lower() != "data:" else "data:" for ref in refs)
    prompt = str(arguments.get("prompt", ""))
    return Draw(provider=provider, host=host, prompt=prompt, images=shown)


class ImageTool(Tool):
    """The same tool as the provider that draws now can do it: what it cannot do is not offered."""

    def __init__(self, active: Callable[[], ImageGenProvider]) -> None:
        self._active = active
        self._inner = image_generate
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
        return await self._inner(ctx, arguments)

    def _effects(self, place: Place, arguments: JsonObject) -> Iterator[Effect]:
        """What is sent comes first: a picture that is read brings no words that could have wanted
        it."""
        provider = self._provider()
        if provider is None:
            return
        yield _drawing(provider.name, provider.host() or HERE, arguments)
        for ref in references_of(arguments.get("image_url"), arguments.get("reference_image_urls")):
            if not _is_remote(ref):
                yield ReadPath(path=place.resolve(ref.removeprefix("file://")))
            elif ref[:5].lower() != "data:":
                yield FetchUrl(url=ref)

    def _provider(self) -> ImageGenProvider | None:
        """None when nobody can draw: the call itself then says why."""
        try:
            return self._active()
        except ImageFault:
            return None


def spec_for(capabilities: JsonObject) -> ToolSpec:
    whole = image_generate.spec
    unwanted: set[str] = set()
    if "image" not in (capabilities.get("modalities") or ()):
        unwanted.update(_PICTURES_ONLY)
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
