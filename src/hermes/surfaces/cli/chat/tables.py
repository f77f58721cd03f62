"""Markdown tables as aligned columns within the width."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest

from hermes.surfaces.cli.chat.blocks import MarkdownBlock
from hermes.surfaces.cli.chat.cells import cells, pad, wrap
from hermes.surfaces.cli.chat.inline_markdown import StyledText, plain_text, styled_text
from hermes.surfaces.cli.chat.screen import Paint
from hermes.surfaces.cli.chat.styled_rows import styled_rows

# A column is not made narrower than this.
LEAST_CELLS = 8
# Taller rows are easier to read as a list.
MOST_ROWS = 6


class Table:
    """The cells of a table; all rows have the same number."""

    def __init__(self, block: MarkdownBlock, style: Callable[[str], StyledText]) -> None:
        rows = [_cells_of(line) for line in block.lines]
        head, *body = [row for row in rows if not _is_divider(row)] or [[]]
        columns = max((len(row) for row in (head, *body)), default=0)
        self.head, *self.body = [
            [style(cell) for cell in (*row, *[""] * (columns - len(row)))] for row in (head, *body)
        ]
        divider = next((row for row in rows if _is_divider(row)), [])
        self.right = [cell.endswith(":") and not cell.startswith(":") for cell in divider]
        self.right += [False] * (columns - len(self.right))

    @property
    def widths(self) -> list[int]:
        columns = zip(self.head, *self.body, strict=True)
        return [max(cells(cell.text) for cell in column) for column in columns]

    def list_rows(self, width: int) -> list[str]:
        """Each row as a list of its cells, for tables that do not fit."""
        lines = []
        for row in self.body:
            for name, value in zip(self.head, row, strict=True):
                line = f"{name.text}: {value.text}" if name.text else value.text
                lines += wrap(line, width, hang="  ")
            lines.append("")
        return lines[:-1]

    def align(self, row: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            " " * (width - cells(cell)) + cell if right else pad(cell, width)
            for cell, width, right in zip(row, widths, self.right, strict=True)
        ]


def plain_table(block: MarkdownBlock, width: int) -> list[str]:
    """Aligned columns; if they do not fit, each row as a list of its cells."""
    table = Table(block, plain_text)
    widths = table.widths
    if sum(widths) + 2 * (len(widths) - 1) > width:
        return table.list_rows(width)
    rows = [[cell.text for cell in row] for row in (table.head, *table.body)]
    lines = ["  ".join(table.align(row, widths)).rstrip() for row in rows]
    return [lines[0], "  ".join("─" * each for each in widths), *lines[1:]]


def framed_table(block: MarkdownBlock, width: int, paint: Paint) -> list[str]:
    """Columns with lines between them and a bold head. Long cells are wrapped."""
    table = Table(block, styled_text)
    widths = _shrink(table.widths, width - 3 * (len(table.head) - 1) - 2)
    if not widths:
        return table.list_rows(width)
    head, *body = (_grid_row(table, row, widths, paint) for row in (table.head, *table.body))
    if any(len(row) > MOST_ROWS for row in (head, *body)):
        return table.list_rows(width)
    rule = paint("┼".join("─" * (size + 2) for size in widths), "dim")
    return [*head, rule, *(line for row in body for line in row)]


def _grid_row(
    table: Table, row: Sequence[StyledText], widths: Sequence[int], paint: Paint
) -> list[str]:
    """One row of a table, with as many lines as its tallest cell."""
    is_head = row is table.head
    wrapped = [styled_rows(cell, size, paint)[0] for cell, size in zip(row, widths, strict=True)]
    if is_head:
        wrapped = [[paint(line, "bold") for line in cell] for cell in wrapped]
    between = f" {paint('│', 'dim')} "
    lines = zip_longest(*wrapped, fillvalue="")
    return [f" {between.join(table.align(line, widths))}".rstrip() for line in lines]


def _shrink(widths: Sequence[int], most: int) -> list[int]:
    """The widths of columns that fit in `most` cells: the widest lose first. Empty if they cannot
    fit."""
    fitting = list(widths)
    while sum(fitting) > most:
        widest = max(range(len(fitting)), key=fitting.__getitem__)
        if fitting[widest] <= LEAST_CELLS:
            return []
        fitting[widest] -= 1
    return fitting


def _cells_of(line: str) -> list[str]:
    bare = line.strip().removeprefix("|")
    bare = bare[:-1] if bare.endswith("|") and not bare.endswith("\\|") else bare
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", bare)]


def _is_divider(row: Sequence[str]) -> bool:
    return all(re.fullmatch(r":?-+:?", cell) for cell in row)
