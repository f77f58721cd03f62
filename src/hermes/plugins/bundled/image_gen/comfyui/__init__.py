"""Generates images with a ComfyUI server: queues a workflow, waits for it and fetches its file."""

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

    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        workflow = await self._workflow(request, client)
        client_id = self.studio.world.new_id("hermes")
        begun = await client.post("prompt", {"prompt": workflow, "client_id": client_id})
        id = str(begun.get("prompt_id") or "")
        if not id or begun.get("node_errors"):
            raise error_from_message(self.LABEL, begun.get("node_errors") or begun.get("error"))
        try:
            image = await self._wait_for_result(id, client)
        except BaseException:
            await client.cancel("POST", "interrupt")
            raise
        query = urlencode({key: image.get(key, "") for key in ("filename", "subfolder", "type")})
        data = await client.download_image(f"view?{query}")
        model = str(workflow.get("4", {}).get("inputs", {}).get("ckpt_name") or request.model)
        return GeneratedImage(data=data, model=model)

    async def _workflow(self, request: HostedRequest, client: ImageServerClient) -> JsonObject:
        width, height = SIZES[request.aspect]
        seed = request.seed
        values: JsonObject = {
            "prompt": request.prompt,
            "negative_prompt": str(self.options.get("negative_prompt") or ""),
            "width": width,
            "height": height,
            "steps": int(self.options.get("steps") or 20),
            "seed": self.studio.world.chance.getrandbits(48) if seed is None else seed,
        }
        if request.sources:
            values["image"] = await self._upload(request.sources[0], client)
        values["model"] = request.model
        file = str(self.options.get("workflow") or "")
        workflow = await asyncio.to_thread(_read, file or str(WORKFLOWS))
        if not file:
            workflow = workflow["changing" if request.sources else "drawing"]
            values["model"] = request.model or await self._first_checkpoint(client)
        elif request.sources and "{image}" not in str(workflow):
            raise ImageFault(
                f"{file} has no {{image}} in it, so it cannot edit images.",
                kind="invalid_argument",
            )
        filled: JsonObject = _fill_template(workflow, values)
        return filled

    async def _upload(self, source: str, client: ImageServerClient) -> str:
        data, name = await aload_source_image(source)
        answer = await client.post_form(
            "upload/image", {"overwrite": "true"}, [Upload(field="image", name=name, data=data)]
        )
        folder = str(answer.get("subfolder") or "")
        return f"{folder}/{answer.get('name')}" if folder else str(answer.get("name"))

    async def _first_checkpoint(self, client: ImageServerClient) -> str:
        info = (await client.get(f"object_info/{_LOADER}")).get(_LOADER) or {}
        required = (info.get("input") or {}).get("required") or {}
        names = (required.get("ckpt_name") or [[]])[0]
        if not names:
            raise ImageFault(
                "The ComfyUI server has no checkpoint; put one into its models/checkpoints.",
                kind="missing_dependency",
            )
        return str(names[0])

    async def _wait_for_result(self, id: str, client: ImageServerClient) -> JsonObject:
        while True:
            entry = (await client.get(f"history/{quote(id)}")).get(id)
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
                    raise ImageFault(f"{self.LABEL} returned no image.", kind="api_error")
            await self.studio.world.clock.sleep(POLL_SECONDS)


def _why(status: JsonObject) -> str:
    for kind, details in status.get("messages") or ():
        if kind == "execution_error":
            return f"{details.get('node_type', 'a node')}: {details.get('exception_message', '')}"
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
    """Replace `{name}` in all texts. A text that consists of one placeholder becomes the value
    itself, so that numbers stay numbers."""
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
