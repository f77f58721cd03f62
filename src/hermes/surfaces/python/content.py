"""Converts message content between the chat format and messages with stored images."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from hermes.codec.values import JsonObject, replace
from hermes.commands.image_files import MAX_IMAGE_BYTES
from hermes.commands.input import attach_image, store_image
from hermes.config.home import Home
from hermes.core.effects import Allow, FetchUrl
from hermes.core.errors import EffectDenied, ToolError, UsageError
from hermes.core.message_dicts import dicts_from_messages, messages_from_dicts
from hermes.core.messages import Image, Message, Text, UserMessage
from hermes.core.session import Session

FETCH_SECONDS = 20.0
Content = str | Sequence[JsonObject]


class ImageReader:
    """Stores the images of messages in the home. Images on the web are fetched if the policy of the
    session allows it."""

    def __init__(self, home: Home, session: Session) -> None:
        self._home = home
        self._session = session

    async def read(self, content: Content) -> tuple[str, tuple[Image, ...]]:
        """Return the text and the images of a message; raise UsageError for other parts."""
        if isinstance(content, str):
            return content, ()
        texts: list[str] = []
        images: list[Image] = []
        for part in content:
            match part:
                case {"type": "text" | "input_text", "text": str(text)}:
                    texts.append(text)
                case {"type": "image_url" | "input_image", "image_url": {"url": str(url)}}:
                    images.append(await self._store(url))
                case {"type": "image_url" | "input_image", "image_url": str(url)}:
                    images.append(await self._store(url))
                case _:
                    kind = part.get("type")
                    raise UsageError(
                        f"A message cannot hold a part of type {kind!r}; use text and image_url."
                    )
        return "\n".join(texts), tuple(images)

    async def history(self, entries: Sequence[JsonObject]) -> tuple[Message, ...]:
        """Return the messages of a conversation in the chat format."""
        messages: list[Message] = []
        for message, entry in _pair_users(messages_from_dicts(entries), entries):
            if entry is not None:
                text, images = await self.read(entry.get("content") or "")
                message = replace(message, parts=(Text(text=text), *images))
            messages.append(message)
        return tuple(messages)

    async def _store(self, url: str) -> Image:
        scheme = urlsplit(url).scheme.lower()
        if scheme == "data":
            return await store_image(self._home, _data_url(url))
        if scheme in ("http", "https"):
            return await store_image(self._home, await self._fetch(url))
        return await attach_image(self._home, _local_path(url))

    async def _fetch(self, url: str) -> bytes:
        effect = FetchUrl(url=url)
        decision = self._session.judge(effect)
        if not isinstance(decision, Allow):
            raise UsageError(f"{url[:200]} is not fetched: {decision.reason}")
        try:
            response = await self._session.web.fetch(
                effect, max_bytes=MAX_IMAGE_BYTES, timeout=FETCH_SECONDS
            )
        except (EffectDenied, ToolError) as error:
            raise UsageError(f"{url[:200]} cannot be fetched: {error}") from error
        if response.status >= 300 or response.cut:
            raise UsageError(
                f"{url[:200]} is not a usable image (status {response.status}); "
                "send the image itself."
            )
        return response.body


def message_dicts(messages: Sequence[Message]) -> list[JsonObject]:
    """Return messages in the chat format, with images as data URLs."""
    converted = dicts_from_messages(messages)
    users = [message for message in messages if isinstance(message, UserMessage)]
    entries = [entry for entry in converted if entry["role"] == "user"]
    for message, entry in zip(users, entries, strict=True):
        images = [part for part in message.parts if isinstance(part, Image)]
        if images:
            text = {"type": "text", "text": message.text}
            entry["content"] = [text, *map(_image_part, images)]
    return converted


def _pair_users(
    messages: Sequence[Message], entries: Sequence[JsonObject]
) -> list[tuple[Any, JsonObject | None]]:
    """Pair each user message with its entry in the chat format."""
    users = iter([entry for entry in entries if entry.get("role") == "user"])
    return [(m, next(users) if isinstance(m, UserMessage) else None) for m in messages]


def _image_part(image: Image) -> JsonObject:
    try:
        data = base64.b64encode(Path(image.file).read_bytes()).decode()
    except OSError:
        return {"type": "text", "text": f"[{Path(image.file).name} is no longer stored]"}
    url = f"data:{image.media_type};base64,{data}"
    return {"type": "image_url", "image_url": {"url": url}}


def _local_path(url: str) -> Path:
    parts = urlsplit(url)
    return Path(unquote(parts.path) if parts.scheme == "file" else url).expanduser()


def _data_url(url: str) -> bytes:
    head, _, body = url.partition(",")
    try:
        if not head.endswith(";base64"):
            raise binascii.Error("no base64 data")
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise UsageError(
            f"An image is not readable ({error}); use data:image/png;base64,…"
        ) from error
