"""A streamed reply as terminal rows: rendered, stripped or raw Markdown, final row by row."""

from __future__ import annotations

from typing import Literal

from hermes.commands.formatting import sanitize
from hermes.surfaces.cli.chat.blocks import BlockSplitter, MarkdownBlock
from hermes.surfaces.cli.chat.cells import wrap
from hermes.surfaces.cli.chat.inline_markdown import (
    plain_text,
    plain_words,
    settled_prefix,
    styled_text,
)
from hermes.surfaces.cli.chat.screen import Paint, Role
from hermes.surfaces.cli.chat.styled_rows import styled_rows
from hermes.surfaces.cli.chat.tables import framed_table, plain_table

PROSE_KINDS = ("text", "item")
Style = Literal["strip", "render", "raw"]

# More than the tail ever shows; laying out more wastes time.
TAIL_CHARACTERS = 4_000
RULE_CELLS = 40
CODE_CELLS = 80


class StreamedReply:
    """One reply. `feed` and `finish` return final rows; `tail` returns what may still change.
    Prose is final row by row, code in small pieces, everything else block by block. An emitted row
    is never emitted again, even if the width changes."""

    def __init__(self, style: Style, paint: Paint) -> None:
        self.begun = False
        self._style = style
        self._paint = paint
        self._blocks = BlockSplitter()
        self._partial = ""
        # How many characters of the unfinished block were emitted.
        self._emitted = 0

    @property
    def _frames(self) -> bool:
        """Whether lines may be drawn around code and tables."""
        return self._style == "render" and not self._paint.skin.words

    def feed(self, text: str, width: int) -> list[str]:
        self.begun = self.begun or bool(text.strip())
        if self._style == "raw":
            *lines, self._partial = (self._partial + text).split("\n")
            return [sanitize(line) for line in lines]
        rows = self._rows(self._blocks.feed(text), width)
        unfinished = self._blocks.unfinished
        if unfinished is not None:
            settled, self._emitted = self._prose(unfinished, width, only_settled=True)
            if settled:
                rows += ["" for _ in self._blocks.take_gap()] + settled
        return rows

    def finish(self, width: int) -> list[str]:
        if self._style == "raw":
            last, self._partial = self._partial, ""
            return [sanitize(last)] if last else []
        return self._rows(self._blocks.finish(), width)

    def tail(self, width: int, most: int) -> list[str]:
        """The last rows that are not final yet."""
        if self._style == "raw":
            rows = self._wrapped_lines(sanitize(self._partial), width)
        elif (unfinished := self._blocks.unfinished) is not None:
            rows, _ = self._prose(unfinished, width)
        elif (code := self._blocks.unfinished_code) is not None:
            rows = self._rows([code], width) + self._wrapped_lines(self._blocks.partial, width)
        elif (table := self._blocks.unfinished_table) is not None and self._style == "render":
            rows = self._rows([table], width)
        else:
            rows = self._wrapped_lines(plain_words(self._blocks.tail[-TAIL_CHARACTERS:]), width)
        gap = [""] if rows and self._blocks.has_gap and not self._emitted else []
        return [*gap, *rows][-most:]

    def _wrapped_lines(self, text: str, width: int) -> list[str]:
        lines = text[-TAIL_CHARACTERS:].split("\n") if text else []
        return [row for line in lines for row in wrap(line, width)]

    def _rows(self, blocks: list[MarkdownBlock], width: int) -> list[str]:
        rows: list[str] = []
        for block in blocks:
            if block.kind == "blank":
                rows.append("")
            elif block.kind == "code":
                rows += self._code(block, width)
            elif block.kind in PROSE_KINDS:
                prose, _ = self._prose(block, width)
                if not prose and not self._emitted:
                    prose = [block.split_prefix(width)[0].rstrip()]
                rows += prose
                self._emitted = 0
            else:
                rows += self._block(block, width)
        return rows

    def _block(self, block: MarkdownBlock, width: int) -> list[str]:
        """The rows of a block other than code and prose."""
        paint, is_rendered = self._paint, self._style == "render"
        match block.kind:
            case "heading":
                title = plain_words(block.text.strip().strip("#").strip())
                role: Role = "heading" if is_rendered else "bold"
                return [paint(row, role) for row in wrap(title, width)]
            case "rule":
                return [paint("─" * min(width, RULE_CELLS), "dim" if is_rendered else "plain")]
            case "quote":
                return self._quote(block, width)
            case "table" if self._frames:
                return framed_table(block, width, paint)
            case "table":
                return plain_table(block, width)
            case _:
                raise ValueError(f"{block.kind} is laid out elsewhere")

    def _quote(self, block: MarkdownBlock, width: int) -> list[str]:
        lines = [line.lstrip().removeprefix(">").strip() for line in block.lines]
        if self._style == "strip":
            return [f"│ {row}" for line in lines for row in wrap(plain_words(line), width - 2)]
        bar = "> " if self._paint.skin.words else self._paint("▎ ", "dim")
        quoted = [styled_rows(styled_text(line), width - 2, self._paint)[0] for line in lines]
        return [bar + row for rows in quoted for row in rows or [""]]

    def _prose(
        self, block: MarkdownBlock, width: int, *, only_settled: bool = False
    ) -> tuple[list[str], int]:
        """The rows of a block that were not emitted yet, and where they end. `only_settled`: those
        that no further text can change."""
        lead, hang, source = block.split_prefix(width, boxes=self._style == "render")
        source = settled_prefix(source) if only_settled else source
        styled = styled_text(source) if self._style == "render" else plain_text(source)
        return styled_rows(
            styled,
            width,
            self._paint,
            lead=lead,
            hang=hang,
            begin=self._emitted,
            only_settled=only_settled,
        )

    def _code(self, block: MarkdownBlock, width: int) -> list[str]:
        rows = list(block.lines)
        if self._paint.colours and block.language and rows:
            from hermes.surfaces.cli.chat.code_colours import highlight

            rows = list(highlight(block.language, block.lines, block.before))
        first, last = self._code_frame(block.language, width - len(block.indent))
        rows = [*([first] if block.opens else []), *rows, *([last] if block.closes else [])]
        return [block.indent + row for row in rows]

    def _code_frame(self, language: str, width: int) -> tuple[str, str]:
        """The rows above and below code. Nothing stands beside it, so that it can be copied."""
        paint = self._paint
        if not self._frames:
            return paint(f"```{language}", "dim"), paint("```", "dim")
        size = max(4, min(width, CODE_CELLS))
        title = f"── {language} " if language else ""
        return paint(title + "─" * (size - len(title)), "dim"), paint("─" * size, "dim")
