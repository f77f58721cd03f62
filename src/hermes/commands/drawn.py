"""The images that a turn generated, as paths or data URLs."""

from __future__ import annotations

import base64
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.commands.pictures import image_kind
from hermes.core.errors import UsageError
from hermes.core.messages import ToolResult

IMAGE_TOOL = "image_generate"
MAX_INLINE_BYTES = 5 * 1024 * 1024


def image_of(result: ToolResult) -> str:
    """The path or URL of the image; "" when the result has none."""
    image = result.details.get("image") if result.name == IMAGE_TOOL and not result.failed else None
    return image if isinstance(image, str) else ""


def image_data_url(image: str) -> str:
    """A data URL of the image, or its own URL; "" for a file that is too large, missing or not an
    image."""
    if image.startswith(("http://", "https://")):
        return image
    try:
        with Path(image).open("rb") as file:
            data = file.read(MAX_INLINE_BYTES + 1)
        media_type, _ = image_kind(image, data)
    except (OSError, UsageError):
        return ""
    if len(data) > MAX_INLINE_BYTES:
        return ""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def image_part(image: str) -> JsonObject:
    """An image part in the chat format."""
    return {"type": "image_url", "image_url": {"url": image_data_url(image) or Path(image).name}}
