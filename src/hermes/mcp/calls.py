"""Services for a running call, and the conversion of its result."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import NamedTuple

from msgspec import Struct

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import Image, Text
from hermes.core.ports import Workspace
from hermes.core.prompt import Prompt, Reply
from hermes.core.tools import ToolContext, ToolOutput
from hermes.mcp.server import McpServer

# Asks a model; the last argument names the models that the server prefers.
Sampler = Callable[[McpServer, Prompt, tuple[str, ...]], Awaitable[Reply]]
KeepImage = Callable[[bytes, str], str]
# Wraps a call that may write local files; True if the tool claims that it only reads.
FileWatch = Callable[[Workspace, JsonObject, bool], AbstractAsyncContextManager[None]]


class CallServices(Struct):
    """The services of one session that server requests may use."""

    sampler: Sampler | None = None  # without it, sampling is refused
    keep_image: KeepImage | None = None  # stores an image and returns its path
    watch: FileWatch = lambda *_: nullcontext()  # records that files may be written


class ToolCaller(NamedTuple):
    """The running tool call that the requests of a server belong to."""

    ctx: ToolContext
    services: CallServices


MOST_BYTES = 50 * 1024 * 1024
_ENDINGS = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/ogg": "ogg", "application/pdf": "pdf"}
IMAGE_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
NOTHING = "(no output)"


class ResultReader:
    """Converts the content of one result. Other media become files."""

    def __init__(self, ctx: ToolContext, server: McpServer, services: CallServices) -> None:
        self._ctx = ctx
        self._server = server
        self._services = services
        self._files = 0

    async def output(self, result: JsonObject, *, structured: bool) -> ToolOutput:
        """Convert a tool result. Structured content replaces text when the tool declares it."""
        data = result.get("structuredContent")
        blocks = result.get("content") or []
        parts = await self.parts(blocks)
        if structured and data is not None:
            others = [part for part in parts if not isinstance(part, Text)]
            parts = [Text(text=encode(data).decode()), *others]
        details: JsonObject = {"server": self._server.name}
        if data is not None:
            details["structured"] = data
        return ToolOutput(
            parts=tuple(parts) or (Text(text=NOTHING),),
            failed=bool(result.get("isError")),
            origin=self._server.origin,
            details=details,
        )

    async def parts(self, blocks: Iterable[JsonValue]) -> list[Text | Image]:
        """Join adjacent texts."""
        found: list[Text | Image] = []
        for block in blocks:
            part = await self._part(block if isinstance(block, dict) else {})
            if found and isinstance(part, Text) and isinstance(found[-1], Text):
                found[-1] = Text(text=f"{found[-1].text}\n{part.text}")
            else:
                found.append(part)
        return found

    async def _part(self, block: JsonObject) -> Text | Image:
        match block.get("type"):
            case "text":
                return Text(text=str(block.get("text", "")))
            case "image" | "audio":
                kind = str(block.get("mimeType", "application/octet-stream"))
                return await self._bytes(str(block.get("data", "")), kind)
            case "resource":
                return await self.resource(block.get("resource") or {})
            case _:
                return Text(text=encode(block).decode())

    async def resource(self, resource: JsonObject) -> Text | Image:
        if "text" in resource:
            return Text(text=str(resource["text"]))
        kind = str(resource.get("mimeType") or "application/octet-stream")
        return await self._bytes(str(resource.get("blob", "")), kind)

    async def _bytes(self, encoded: str, kind: str) -> Text | Image:
        if len(encoded) * 3 // 4 > MOST_BYTES:
            return Text(text=f"[{kind}: larger than {MOST_BYTES // 1024 // 1024} MB, left out]")
        try:
            data = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            return Text(text=f"[{kind}: cannot be decoded]")
        if kind in IMAGE_TYPES and self._services.keep_image is not None:
            return Image(file=self._services.keep_image(data, kind), media_type=kind)
        self._files += 1
        ending = _ENDINGS.get(kind, kind.rpartition("/")[2].partition("+")[0][:8] or "bin")
        name = f"mcp-{self._ctx.call_id}-{self._files}.{ending}"
        path = await self._ctx.workspace.scratch(name, data)
        return Text(text=f"[{kind}, {len(data)} bytes: {path}]")
