"""Converts the content blocks of a prompt into text and images."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from acp.helpers import ContentBlock
from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from hermes.app.app import App
from hermes.commands.input import store_image
from hermes.core.errors import UsageError
from hermes.core.messages import Image

MAX_INLINE_CHARS = 512 * 1024


async def parse_prompt(app: App, blocks: Sequence[ContentBlock]) -> tuple[str, tuple[Image, ...]]:
    """The text and images of a message; UsageError for unsupported content."""
    words: list[str] = []
    images: list[Image] = []
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                words.append(text)
            case ImageContentBlock(data=data):
                images.append(await store_image(app, _decode_image(data)))
            case ResourceContentBlock():
                words.append(_link(block))
            case EmbeddedResourceContentBlock(resource=TextResourceContents() as held):
                words.append(_quote(held.uri, held.text))
            case EmbeddedResourceContentBlock(resource=held):
                words.append(f"[{held.uri}: not text, omitted]")
            case AudioContentBlock():
                raise UsageError("Audio is not supported; send text instead.")
    return "\n".join(word for word in words if word), tuple(images)


def _link(block: ResourceContentBlock) -> str:
    """A local file becomes a reference, any other resource a link."""
    place = urlsplit(block.uri)
    if place.scheme != "file":
        return f"[{block.name}]({block.uri})"
    path = Path(unquote(place.path))
    return f"@file:{path}"


def _quote(uri: str, text: str) -> str:
    place = urlsplit(uri)
    name = unquote(place.path) if place.scheme == "file" else uri
    if len(text) > MAX_INLINE_CHARS:
        return f"[{name} is too long to include: {len(text)} characters]"
    return f"<file path={name!r}>\n{text}\n</file>"


def _decode_image(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise UsageError(f"An image is not valid base64: {error}.") from error
