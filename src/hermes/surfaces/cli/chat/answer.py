"""A streamed reply: finished rows as they are complete, the rest as a live tail."""

from __future__ import annotations

from typing import Literal

from hermes.commands.visible import sanitize
from hermes.surfaces.cli.chat.blocks import BlockSplitter, MarkdownBlock
from hermes.surfaces.cli.chat.cells import wrap
from hermes.surfaces.cli.chat.paint import Paint
from hermes.surfaces.cli.chat.plain_markdown import plain_lines, plain_words
from hermes.surfaces.cli.chat.prose import PROSE_KINDS, ProseLayout

Style = Literal["strip", "render", "raw"]

# More than the tail ever shows; laying out more wastes time.
TAIL_CHARACTERS = 4_000


class StreamedReply:
    """One reply. `feed` and `finish` return final rows; `tail` returns what may still change.
    Stripped prose is final row by row, everything else block by block."""

    def __init__(self, style: Style, paint: Paint) -> None:
        self.begun = False
        self._style = style
        self._paint = paint
        self._blocks = BlockSplitter()
        self._prose = ProseLayout()
        self._partial = ""

    def feed(self, text: str, width: int) -> list[str]:
        self.begun = self.begun or bool(text.strip())
        if self._style == "raw":
            *lines, self._partial = (self._partial + text).split("\n")
            return [sanitize(line) for line in lines]
        rows = self._rows(self._blocks.feed(text), width)
        return rows + self._sure_rows(width) if self._style == "strip" else rows

    def finish(self, width: int) -> list[str]:
        if self._style == "raw":
            last, self._partial = self._partial, ""
            return [sanitize(last)] if last else []
        return self._rows(self._blocks.finish(), width)

    def tail(self, width: int, most: int) -> list[str]:
        """The last rows that are not final yet."""
        unfinished = self._blocks.unfinished if self._style == "strip" else None
        if unfinished is not None:
            rows = self._prose.rest(unfinished, width)
        else:
            rows = self._loose_tail(width)
        gap = [""] if rows and self._blocks.has_gap and not self._prose.begun else []
        return [*gap, *rows][-most:]

    def _loose_tail(self, width: int) -> list[str]:
        text = sanitize(self._partial) if self._style == "raw" else self._blocks.tail
        plain = text[-TAIL_CHARACTERS:]
        if self._style != "raw" and not self._blocks.in_code:
            plain = plain_words(plain)
        return [row for line in plain.split("\n") for row in wrap(line, width)] if plain else []

    def _sure_rows(self, width: int) -> list[str]:
        unfinished = self._blocks.unfinished
        if unfinished is None:
            return []
        rows = self._prose.settled_rows(unfinished, width)
        return [*("" for _ in self._blocks.take_gap()), *rows] if rows else []

    def _rows(self, blocks: list[MarkdownBlock], width: int) -> list[str]:
        return [row for block in blocks for row in self._block_rows(block, width)]

    def _block_rows(self, block: MarkdownBlock, width: int) -> list[str]:
        if block.kind == "blank":
            return [""]
        if block.kind == "code":
            return self._code(block)
        if self._style == "strip":
            return self._plain_rows(block, width)
        # Slow to load, and only some users choose it.
        from hermes.surfaces.cli.chat.rich_markdown import rich_lines

        return rich_lines(block, width, colours=self._paint.colours)

    def _plain_rows(self, block: MarkdownBlock, width: int) -> list[str]:
        if block.kind in PROSE_KINDS:
            return self._prose.finish(block, width)
        rows = plain_lines(block, width)
        return [self._paint(row, "bold") for row in rows] if block.kind == "heading" else rows

    def _code(self, block: MarkdownBlock) -> list[str]:
        rows = list(block.lines)
        if self._paint.colours and block.language and rows:
            from hermes.surfaces.cli.chat.rich_markdown import code_lines

            rows = code_lines(block)
        if self._style == "strip" or not self._paint.colours:
            opening = [self._paint(f"```{block.language}", "dim")] if block.opens else []
            rows = [*opening, *rows, *([self._paint("```", "dim")] if block.closes else [])]
        return [block.indent + row for row in rows]
