"""Parses Markdown into a tree, and lays out tables as aligned text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from wcwidth import wcwidth  # type: ignore[import-untyped]

Node = SyntaxTreeNode

_SPOILER = re.compile(r"\|\|(?=\S)(.+?)(?<=\S)\|\|")
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def parse(markdown: str) -> Node:
    # Half of a surrogate pair cannot be sent.
    whole = markdown.encode("utf-8", "replace").decode("utf-8")
    return Node(_parser().parse(whole))


def language_of(fence: Node) -> str:
    """The language of a code block, if its name is harmless."""
    name = fence.info.strip().partition(" ")[0]
    return name if _LANGUAGE.fullmatch(name) else ""


def split_spoilers(text: str) -> list[tuple[str, bool]]:
    """The pieces of a text, and whether each is hidden by `||`."""
    pieces = _SPOILER.split(text)
    return [(piece, n % 2 == 1) for n, piece in enumerate(pieces) if piece]


def cell_width(text: str) -> int:
    return sum(max(0, int(wcwidth(letter))) for letter in text)


def align_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of equal length as text with aligned columns; the first row is the head."""
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell + " " * (width - cell_width(cell))
            for cell, width in zip(cells, widths, strict=True)
        )
        return " | ".join(padded).rstrip()

    rule = "-+-".join("-" * width for width in widths)
    return "\n".join([line(rows[0]), rule, *map(line, rows[1:])])
