"""Files that an answer names by path, as clients on other machines can make use of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from hermes.commands.drawn import inlined
from hermes.surfaces.api.run import Run

LINE = re.compile(r"^[ \t]*MEDIA:[ \t]*(/\S.*?)[ \t]*$", re.MULTILINE)
Images = Callable[[], tuple[str, ...]]

INLINE = re.compile(r"!\[([^\]\n]*)\]\(data:image/[^)\s]*\)")


def named(text: str) -> str:
    """Lines that name a file by its path say only what it is called."""
    return LINE.sub(lambda found: Path(found[1]).name, text) if "MEDIA:" in text else text


async def pictured(run: Run, *, any_file: bool, text: str | None = None) -> str:
    """The answer with its pictures in it, those that were drawn without being named at its end.
    Without `any_file` the pictures of this turn are shown and all others only named: a client
    must not see by way of an answer what its agent may not read. `text` is another form of it."""
    said = run.text if text is None else text
    return await asyncio.to_thread(_pictured, said, run.images, any_file)


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


class Stream:
    """An answer piece by piece: a line that may name a file is held back until it is whole.
    `images` are those that were drawn so far. With `inline`, pictures are shown in its place and
    those that were not named come at the end."""

    def __init__(self, images: Images, *, inline: bool, any_file: bool) -> None:
        self._images = images
        self._inline = inline
        self._any_file = any_file
        self._held = ""
        self._is_start = True
        self._shown: set[str] = set()

    def pass_on(self, text: str) -> str:
        """What can be shown now."""
        if not self._is_start and "\n" not in text:
            return text
        whole = self._held + text
        begun = "" if self._is_start else whole[: whole.index("\n") + 1]
        rest = whole[len(begun) :]
        lines, mark, last = rest.rpartition("\n")
        self._is_start = _may_name(last)
        self._held = last if self._is_start else ""
        return begun + self._told(lines + mark) + ("" if self._is_start else last)

    def rest(self) -> str:
        """What was held back when the reply is over."""
        held, self._held, self._is_start = self._held, "", True
        return self._told(held)

    def pictures(self) -> list[str]:
        """Those that nothing was said of, as text."""
        if not self._inline:
            return []
        return [_markdown(image) for image in self._images() if image not in self._shown]

    def _told(self, text: str) -> str:
        if "MEDIA:" not in text:
            return text
        return LINE.sub(lambda found: self._line(found[1]), text)

    def _line(self, path: str) -> str:
        self._shown.add(path)
        shows = self._inline and (self._any_file or path in self._images())
        return _markdown(path) if shows else Path(path).name


def _may_name(line: str) -> bool:
    """Whether a line that has begun like this may come to name a file."""
    words = line.lstrip(" \t")
    return words.startswith("MEDIA:") or "MEDIA:".startswith(words)


def bare(text: str) -> str:
    """What a client sends back of such an answer, without the pictures in it."""
    return INLINE.sub(r"\1", text) if "](data:image/" in text else text
