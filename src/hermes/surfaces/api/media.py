"""Turns file paths in an answer into names or inline images, for clients on other machines."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from hermes.commands.drawn import image_data_url
from hermes.surfaces.api.run import Run

LINE = re.compile(r"^[ \t]*MEDIA:[ \t]*(/\S.*?)[ \t]*$", re.MULTILINE)
Images = Callable[[], tuple[str, ...]]

INLINE = re.compile(r"!\[([^\]\n]*)\]\(data:image/[^)\s]*\)")


def replace_paths(text: str) -> str:
    """Replace file paths by file names."""
    return LINE.sub(lambda found: Path(found[1]).name, text) if "MEDIA:" in text else text


async def inline_images(run: Run, *, any_file: bool, text: str | None = None) -> str:
    """The answer (or `text`) with inline images; generated images that it does not mention follow
    at the end. Without `any_file` only images of this turn are inlined, because a client must not
    read through an answer what its agent may not read."""
    said = run.text if text is None else text
    return await asyncio.to_thread(_inline_text, said, run.images, any_file)


def _inline_text(text: str, images: tuple[str, ...], any_file: bool) -> str:
    shown: set[str] = set()

    def line(found: re.Match[str]) -> str:
        path = found[1]
        shown.add(path)
        return _markdown(path) if any_file or path in images else Path(path).name

    text = LINE.sub(line, text)
    left = [_markdown(image) for image in images if image not in shown]
    return "\n\n".join(part for part in (text, *left) if part)


def _markdown(image: str) -> str:
    """The file name alone when it is not an image, missing or too large."""
    name = re.sub(r"[\[\]\n]", "_", Path(image).name)
    url = image_data_url(image)
    return f"![{name}]({url})" if url else name


class MediaFilter:
    """Rewrites a streamed answer: a line that may name a file is buffered until it is complete.
    `images` returns the images generated so far. With `inline`, images replace such lines, and
    images that were not mentioned follow at the end."""

    def __init__(self, images: Images, *, inline: bool, any_file: bool) -> None:
        self._images = images
        self._inline = inline
        self._any_file = any_file
        self._held = ""
        self._is_start = True
        self._shown: set[str] = set()

    def feed(self, text: str) -> str:
        """The text that can be sent now."""
        if not self._is_start and "\n" not in text:
            return text
        whole = self._held + text
        begun = "" if self._is_start else whole[: whole.index("\n") + 1]
        rest = whole[len(begun) :]
        lines, mark, last = rest.rpartition("\n")
        self._is_start = _may_name(last)
        self._held = last if self._is_start else ""
        return begun + self._complete_lines(lines + mark) + ("" if self._is_start else last)

    def flush(self) -> str:
        """The buffered text at the end of a reply."""
        held, self._held, self._is_start = self._held, "", True
        return self._complete_lines(held)

    def remaining_images(self) -> list[str]:
        """Generated images that the answer does not mention, as text."""
        if not self._inline:
            return []
        return [_markdown(image) for image in self._images() if image not in self._shown]

    def _complete_lines(self, text: str) -> str:
        if "MEDIA:" not in text:
            return text
        return LINE.sub(lambda found: self._line(found[1]), text)

    def _line(self, path: str) -> str:
        self._shown.add(path)
        shows = self._inline and (self._any_file or path in self._images())
        return _markdown(path) if shows else Path(path).name


def _may_name(line: str) -> bool:
    """Whether a line with this beginning may name a file."""
    words = line.lstrip(" \t")
    return words.startswith("MEDIA:") or "MEDIA:".startswith(words)


def strip_images(text: str) -> str:
    """The answer without inline images, as a client may send it back."""
    return INLINE.sub(r"\1", text) if "](data:image/" in text else text
