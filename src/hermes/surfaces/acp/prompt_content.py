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
                try:
                    image = base64.b64decode(data, validate=True)
                except binascii.Error as error:
                    raise UsageError(f"An image is not valid base64: {error}.") from error
                images.append(await store_image(app.run.home, image))
            case ResourceContentBlock(uri=uri, name=name):
                # A local file becomes a reference, any other resource a link.
                path = _local_path(uri)
                words.append(f"@file:{Path(path)}" if path else f"[{name}]({uri})")
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                name = _local_path(uri) or uri
                if len(text) > MAX_INLINE_CHARS:
                    words.append(f"[{name} is too long to include: {len(text)} characters]")
                else:
                    words.append(f"<file path={name!r}>\n{text}\n</file>")
            case EmbeddedResourceContentBlock(resource=resource):
                words.append(f"[{resource.uri}: not text, omitted]")
            case AudioContentBlock():
                raise UsageError("Audio is not supported; send text instead.")
    return "\n".join(word for word in words if word), tuple(images)


def _local_path(uri: str) -> str:
    """The path of a `file:` URI, "" for any other."""
    place = urlsplit(uri)
    return unquote(place.path) if place.scheme == "file" else ""
