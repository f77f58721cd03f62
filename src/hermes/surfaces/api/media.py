"""Files that an answer names by path, as clients on other machines can make use of them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from hermes.commands.drawn import inlined
from hermes.surfaces.api.run import Run

LINE = re.compile(r"^[ \t]*MEDIA:[ \t]*(/\S.*?)[ \t]*$", re.MULTILINE)
INLINE = re.compile(r"!\[([^\]\n]*)\]\(data:image/[^)\s]*\)")


def named(text: str) -> str:
    """Lines that name a file by its path say only what it is called."""
    return LINE.sub(lambda found: Path(found[1]).name, text) if "MEDIA:" in text else text


async def pictured(run: Run, *, any_file: bool) -> str:
    """The answer with its pictures in it, those that were drawn without being named at its end.
    Without `any_file` the pictures of this turn are shown and all others only named: a client
    must not see by way of an answer what its agent may not read."""
    return await asyncio.to_thread(_pictured, run.text, run.images, any_file)


def _pictured(text: str, images: tuple[str, ...], any_file: bool) -> str:
    shown: set[str] = set()

    def line(found: re.Match[str]) -> str:
        path = found[1]
        shown.add(path)
        return _markdown(path) if any_file or path in images else Path(path).name

    text = LINE.sub(line, text)
    left = [_markdown(image) for image in images if image not in shown]
    return "\n\n".join(part for part in (text, *left) if part)


def _markdown(image: str) -> str:
    """The name alone for a file that is no picture, gone or too large."""
    name = re.sub(r"[\[\]\n]", "_", Path(image).name)
    url = inlined(image)
    return f"![{name}]({url})" if url else name


def bare(text: str) -> str:
    """What a client sends back of such an answer, without the pictures in it."""
    return INLINE.sub(r"\1", text) if "](data:image/" in text else text
