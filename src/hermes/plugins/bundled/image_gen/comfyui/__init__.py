"""Pictures by a ComfyUI server: a workflow is queued, waited for, and its file fetched."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject
from hermes.images.client import ImageServerClient, Upload, error_from_message
from hermes.images.hosted import GeneratedImage, HostedRequest, SelfHostedProvider
from hermes.images.provider import aload_source_image
from hermes.images.registry import BundledContext
from hermes.images.storage import ImageFault

SIZES = {"landscape": (1216, 832), "square": (1024, 1024), "portrait": (832, 1216)}
POLL_SECONDS = 0.5
# The default workflows: text to image, and image to image.
WORKFLOWS = Path(__file__).with_name("workflows.json")
_LOADER = "CheckpointLoaderSimple"


class ComfyProvider(SelfHostedProvider):
    NAME = "comfyui"
    LABEL = "ComfyUI"
    URL = "http://127.0.0.1:8188"

    async def draw(self, order: HostedRequest, line: ImageServerClient) -> GeneratedImage:
        workflow = await self._workflow(order, line)
        client = self.studio.world.new_id("hermes")
        begun = await line.post("prompt", {"prompt": workflow, "client_id": client})
        id = str(begun.get("prompt_id") or "")
        if not id or begun.get("node_errors"):
            raise error_from_message(self.LABEL, begun.get("node_errors") or begun.get("error"))
        try:
            image = await self._wait_for_result(id, line)
        except BaseException:
            await line.cancel("POST", "interrupt")
            raise
        query = urlencode({key: image.get(key, "") for key in ("filename", "subfolder", "type")})
        data = await line.download_image(f"view?{query}")
        model = str(workflow.get("4", {}).get("inputs", {}).get("ckpt_name") or order.model)
        return GeneratedImage(data=data, model=model)

    async def _workflow(self, order: HostedRequest, line: ImageServerClient) -> JsonObject:
        width, height = SIZES[order.aspect]
        seed = order.seed
        values: JsonObject = {
            "prompt": order.prompt,
            "negative_prompt": str(self.options.get("negative_prompt") or ""),
            "width": width,
            "height": height,
            "steps": int(self.options.get("steps") or 20),
            "seed": self.studio.world.chance.getrandbits(48) if seed is None else seed,
        }
        if order.sources:
            values["image"] = await self._upload(order.sources[0], line)
        values["model"] = order.model
        file = str(self.options.get("workflow") or "")
        workflow = await asyncio.to_thread(_read, file or str(WORKFLOWS))
        if not file:
            workflow = workflow["changing" if order.sources else "drawing"]
            values["model"] = order.model or await self._first_checkpoint(line)
        elif order.sources and "{image}" not in str(workflow):
            raise ImageFault(
                f"{file} has no {{image}} in it, so it cannot change pictures.",
                kind="invalid_argument",
            )
        filled: JsonObject = _fill_template(workflow, values)
        return filled

    async def _upload(self, source: str, line: ImageServerClient) -> str:
        data, name = await aload_source_image(source)
        answer = await line.post_form(
            "upload/image", {"overwrite": "true"}, [Upload(field="image", name=name, data=data)]
        )
        folder = str(answer.get("subfolder") or "")
        return f"{folder}/{answer.get('name')}" if folder else str(answer.get("name"))

    async def _first_checkpoint(self, line: ImageServerClient) -> str:
        info = (await line.get(f"object_info/{_LOADER}")).get(_LOADER) or {}
        required = (info.get("input") or {}).get("required") or {}
        names = (required.get("ckpt_name") or [[]])[0]
        if not names:
            raise ImageFault(
                "The ComfyUI server has no checkpoint; put one into its models/checkpoints.",
                kind="missing_dependency",
            )
        return str(names[0])

    async def _wait_for_result(self, id: str, line: ImageServerClient) -> JsonObject:
        while True:
            entry = (await line.get(f"history/{quote(id)}")).get(id)
            if isinstance(entry, dict):
                status = entry.get("status") or {}
                if status.get("status_str") == "error":
                    raise error_from_message(self.LABEL, _why(status))
                for output in (entry.get("outputs") or {}).values():
                    for image in output.get("images") or ():
                        if image.get("type") != "temp":
                            found: JsonObject = image
                            return found
                if status.get("completed"):
                    raise ImageFault(f"{self.LABEL} ended without a picture.", kind="api_error")
            await self.studio.world.clock.sleep(POLL_SECONDS)


def _why(status: JsonObject) -> str:
    for kind, told in status.get("messages") or ():
        if kind == "execution_error":
            return f"{told.get('node_type', 'a node')}: {told.get('exception_message', '')}"
    return "the workflow failed"


def _read(file: str) -> JsonObject:
    try:
        return decode(JsonObject, Path(file).expanduser().read_bytes())
    except (OSError, DecodeError) as error:
        raise ImageFault(
            f"The workflow {file} cannot be read; save it in API format ({error}).",
            kind="invalid_argument",
        ) from error


def _fill_template(value: Any, values: JsonObject) -> Any:
    """The workflow with what stands in braces filled in; a text that is only that becomes the
    value itself, so that numbers stay numbers."""
    if isinstance(value, dict):
        return {key: _fill_template(each, values) for key, each in value.items()}
    if isinstance(value, list):
        return [_fill_template(each, values) for each in value]
    if not isinstance(value, str):
        return value
    if value.startswith("{") and value[1:-1] in values and value.endswith("}"):
        return values[value[1:-1]]
    for name, each in values.items():
        value = value.replace(f"{{{name}}}", str(each))
    return value


def register(ctx: BundledContext) -> None:
    ctx.register_image_gen_provider(ComfyProvider(ctx.studio))
