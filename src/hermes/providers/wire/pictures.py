"""Loads the images of a prompt from the image cache when their message is first encoded."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes.core.messages import Image, Message, ToolMessage, UserMessage

MAX_BYTES = 20 * 1024 * 1024


class ImageLoader:
    """Image data for the duration of one request."""

    def __init__(self) -> None:
        self._data: dict[str, str] = {}

    async def load(self, messages: Iterable[Message]) -> None:
        files = {image.file for image in images_in(messages)} - self._data.keys()
        if files:
            self._data |= await asyncio.to_thread(_read_all, sorted(files))

    def clear(self) -> None:
        self._data.clear()

    def base64_of(self, image: Image) -> str | None:
        """None when the file is missing or too large to send."""
        return self._data.get(image.file)

    def url_of(self, image: Image) -> str | None:
        data = self._data.get(image.file)
        return None if data is None else f"data:{image.media_type};base64,{data}"


def image_placeholder(image: Image) -> str:
    """Replaces an image that is not sent."""
    return f"[picture: {Path(image.file).name}, not shown]"


def images_in(messages: Iterable[Message]) -> Iterator[Image]:
    for message in messages:
        if isinstance(message, UserMessage):
            yield from (part for part in message.parts if isinstance(part, Image))
        elif isinstance(message, ToolMessage):
            for result in message.results:
                yield from (part for part in result.parts if isinstance(part, Image))


def _read_all(files: list[str]) -> dict[str, str]:
    return {file: data for file in files if (data := _read(Path(file))) is not None}


def _read(path: Path) -> str | None:
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        return base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError:
        return None
