"""Serves a confined image provider during one image: saves, fetches and reads images for it."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable

from hermes.codec.values import JsonObject
from hermes.images.storage import MAX_BYTES, ImageFault, check_image, decode_base64
from hermes.images.studio import Studio
from hermes.plugins.protocol import Denied, Grants, PluginCaller

MOST_SECONDS = 300.0


class ImageCaller(PluginCaller):
    """The image that a provider generates. It may read only `sources`, and the web with the grant
    `network`."""

    def __init__(self, studio: Studio | None, sources: Iterable[str]) -> None:
        super().__init__()
        self._running = studio
        self._sources = frozenset(sources)
        self._chunks: list[str] = []

    @property
    def _studio(self) -> Studio:
        if self._running is None:
            raise Denied("Images are only available while one is generated.")
        return self._running

    async def serve(self, method: str, params: JsonObject, grants: Grants) -> object:
        try:
            match method:
                case "image.chunk":
                    return self._collect(str(params.get("data", "")))
                case "image.save":
                    return await self._save(params)
                case "image.download":
                    return await self._download(params, grants)
                case "image.source":
                    return await self._source(str(params.get("ref", "")))
        except (ImageFault, binascii.Error, ValueError) as error:
            raise Denied(str(error)) from error
        return await super().serve(method, params, grants)

    def _collect(self, data: str) -> bool:
        self._chunks.append(data)
        if sum(map(len, self._chunks)) * 3 // 4 > MAX_BYTES:
            self._chunks.clear()
            raise Denied(f"An image may have at most {MAX_BYTES // 1024 // 1024} MB.")
        return True

    async def _save(self, params: JsonObject) -> str:
        data, self._chunks = check_image(decode_base64("".join(self._chunks))), []
        path = await asyncio.to_thread(
            self._studio.cache.keep, data, prefix=str(params.get("prefix", ""))
        )
        return str(path)

    async def _download(self, params: JsonObject, grants: Grants) -> str:
        if not grants.network:
            raise Denied("Images on the web need the grant `network`, which only the user gives.")
        data = await self._studio.download(
            str(params.get("url", "")),
            timeout=min(float(params.get("timeout") or 60), MOST_SECONDS),
            max_bytes=min(int(params.get("max_bytes") or MAX_BYTES), MAX_BYTES),
        )
        return base64.b64encode(data).decode()

    async def _source(self, ref: str) -> JsonObject:
        if ref not in self._sources and not ref.startswith("data:"):
            raise Denied("Only the images of this request can be read.")
        data, name = await self._studio.source(ref)
        return {"data": base64.b64encode(data).decode(), "name": name}
