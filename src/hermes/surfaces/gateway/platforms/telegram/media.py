"""Files of Telegram messages: downloads within the limits, and uploads in the fitting form."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from hermes.codec.values import replace
from hermes.core.errors import PlatformUnreachable, PostRejected, ProviderError
from hermes.surfaces.gateway.platform import InboundFile, OutboundFile, PlatformContext
from hermes.surfaces.gateway.platforms.telegram.api import BotApi

MAX_DOWNLOAD_BYTES, MAX_UPLOAD_BYTES = 20 * 1024 * 1024, 50 * 1024 * 1024
MAX_PHOTO_BYTES, MAX_LOCAL_BYTES = 10 * 1024 * 1024, 2000 * 1024 * 1024
VOICE_FILES = (".ogg", ".oga", ".opus")
PHOTO_FILES = (".jpg", ".jpeg", ".png", ".webp")


class TelegramUpload(NamedTuple):
    """A file to send; `kind` is part of the name of the method."""

    kind: str
    name: str
    data: bytes


class TelegramMedia:
    """The files of one bot."""

    def __init__(self, api: BotApi, context: PlatformContext) -> None:
        self._api = api
        self._context = context
        # An own Bot API server has the files on its disk and takes larger ones.
        self._is_local = bool(context.extra.get("local_mode"))

    async def download(self, file: InboundFile) -> InboundFile:
        """The file with its path or problem, as the contract says."""
        limit = self._context.max_media_bytes
        limit = limit if self._is_local else min(limit, MAX_DOWNLOAD_BYTES)
        too_large = replace(file, problem=f"larger than {limit // 1_000_000} MB")
        if file.size > limit:
            return too_large
        fields = {"file_id": file.reference["file_id"]}
        try:
            found = await self._api.call("getFile", fields, kind=dict[str, Any])
            source = str(found.get("file_path", ""))
            data = await self._fetch(source, limit)
        except PostRejected as error:
            return too_large if "too big" in str(error) else replace(file, problem=str(error))
        if len(data) > limit:
            return too_large
        name = f"{self._context.world.new_id('tg', 16)}{Path(file.name or source).suffix[:16]}"
        target = self._context.media / name
        await asyncio.to_thread(target.write_bytes, data)
        return replace(file, path=str(target))

    async def _fetch(self, source: str, limit: int) -> bytes:
        if self._is_local and source.startswith("/"):
            return await asyncio.to_thread(Path(source).read_bytes)
        try:
            async with self._api.file(source) as response:
                if response.status != 200:
                    raise PostRejected("no longer on the server of Telegram")
                return await response.read(limit + 1)
        except ProviderError as error:
            raise PlatformUnreachable(f"Telegram cannot be reached: {error}") from error

    async def read(self, file: OutboundFile) -> TelegramUpload:
        """The content to send. PostRejected when there is none or it is too large."""
        path = Path(file.path)
        if file.as_voice or file.kind == "voice":
            path = await _as_voice(path, self._context.media)
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            raise PostRejected(f"{path.name} cannot be read ({error.strerror}).") from error
        limit = MAX_LOCAL_BYTES if self._is_local else MAX_UPLOAD_BYTES
        if len(data) > limit:
            raise PostRejected(
                f"{path.name} is larger than the {limit // (1024 * 1024)} MB of Telegram."
            )
        return TelegramUpload(_kind(file, path, len(data)), file.name or path.name, data)


def _kind(file: OutboundFile, path: Path, size: int) -> str:
    if file.as_document:
        return "document"
    if file.as_voice or file.kind == "voice":
        return "voice" if path.suffix.lower() in VOICE_FILES else "audio"
    if file.kind == "image" and path.suffix.lower() in PHOTO_FILES:
        return "photo" if size <= MAX_PHOTO_BYTES else "document"
    return {"audio": "audio", "video": "video"}.get(file.kind, "document")


async def _as_voice(path: Path, folder: Path) -> Path:
    """The recording as Opus, if ffmpeg can do that; otherwise it stays as it is."""
    program = shutil.which("ffmpeg")
    if path.suffix.lower() in VOICE_FILES or program is None:
        return path
    target = folder / f"{path.stem}.ogg"
    command = (program, "-y", "-loglevel", "error", "-i", str(path), "-c:a", "libopus", str(target))
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
    return target if await process.wait() == 0 else path
