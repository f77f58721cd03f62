"""Pictures that a turn has drawn: where they are, and as text for those who cannot go there."""

from __future__ import annotations

import base64
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.commands.pictures import kind
from hermes.core.errors import UsageError
from hermes.core.messages import ToolResult

TOOL = "image_generate"
MOST_BYTES = 5 * 1024 * 1024


def drawn(result: ToolResult) -> str:
    """The path or address of the picture; "" when this result brought none."""
    image = result.details.get("image") if result.name == TOOL and not result.failed else None
    return image if isinstance(image, str) else ""


def inlined(image: str) -> str:
    """The picture as an address that holds it, or its own address; "" for a file that is too
    large, gone, or no picture."""
    if image.startswith(("http://", "https://")):
        return image
    try:
        with Path(image).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        media_type, _ = kind(image, data)
    except (OSError, UsageError):
        return ""
    if len(data) > MOST_BYTES:
        return ""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def image_part(image: str) -> JsonObject:
    """As chat protocols write it."""
    return {"type": "image_url", "image_url": {"url": inlined(image) or Path(image).name}}
