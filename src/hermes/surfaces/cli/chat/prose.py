"""Paragraphs and list items, laid out row by row while they are streamed."""

from __future__ import annotations

import re

from hermes.surfaces.cli.chat.blocks import MarkdownBlock
from hermes.surfaces.cli.chat.cells import cells, first_row
from hermes.surfaces.cli.chat.plain_markdown import plain_words
from hermes.surfaces.cli.chat.stable import settled_prefix

NARROWEST = 20
PROSE_KINDS = ("text", "item")

_ITEM_HEAD = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])\s*")


class ProseLayout:
    """The open block. An emitted row is never emitted again, even if the width changes."""

    def __init__(self) -> None:
        self._given = 0
        self._begun = False

    @property
    def begun(self) -> bool:
        """Whether a row of the open block was emitted."""
        return self._begun

    def settled_rows(self, block: MarkdownBlock, width: int) -> list[str]:
        """The rows of an unfinished block that no further text can change."""
        lead, hang, words = _split_prefix(block, width)
        rows, self._given = _rows(
            plain_words(settled_prefix(words)), self._given, lead, hang, width, only_sure=True
        )
        self._begun = self._begun or bool(rows)
        return rows

    def rest(self, block: MarkdownBlock, width: int) -> list[str]:
        """The other rows of an unfinished block."""
        lead, hang, words = _split_prefix(block, width)
        return _rows(plain_words(words), self._given, lead, hang, width)[0]

    def finish(self, block: MarkdownBlock, width: int) -> list[str]:
        """The rows of a complete block that were not emitted before."""
        lead, hang, words = _split_prefix(block, width)
        rows, _ = _rows(plain_words(words), self._given, lead, hang, width)
        if not rows and not self._begun:
            rows = [lead.rstrip()]
        self._given, self._begun = 0, False
        return rows


def _split_prefix(block: MarkdownBlock, width: int) -> tuple[str, str, str]:
    """The prefix of the first row, the prefix of the others, and the text."""
    lines = [line.rstrip() for line in block.lines]
    if block.kind != "item":
        return "", "", "\n".join(lines)
    head = _ITEM_HEAD.match(block.lines[0])
    assert head is not None
    mark = "•" if head[2] in "-*+" else head[2]
    indent = head[1] if cells(head[1]) <= width - NARROWEST else ""
    lead = f"{indent}{mark} "
    words = (lines[0][head.end() :], *(line.strip() for line in lines[1:]))
    return lead, " " * cells(lead), "\n".join(words)


def _rows(
    text: str, at: int, lead: str, hang: str, width: int, *, only_sure: bool = False
) -> tuple[list[str], int]:
    """The rows from an offset, and where they end."""
    rows: list[str] = []
    while at < len(text):
        line, newline, _ = text[at:].partition("\n")
        row, used = first_row(line, width, lead=hang if at else lead)
        if only_sure and used == len(line) and not newline:
            break
        rows.append(row)
        at += used + (1 if used == len(line) and newline else 0)
    return rows, at
