"""Rendered Markdown: rich lays out blocks, pygments colours code. Slow to load, so imported only
when needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.syntax import Syntax
from rich.theme import Theme

from hermes.surfaces.cli.chat.blocks import MarkdownBlock
from hermes.surfaces.cli.chat.cells import cells

# This theme uses the terminal's own colours, so it fits light and dark backgrounds.
THEME = "ansi_dark"
STYLES = Theme({"markdown.code": "cyan", "markdown.block_quote": "dim"})

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ITEM_HEAD = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])\s*")


def rich_lines(block: MarkdownBlock, width: int, *, colours: bool) -> list[str]:
    """The rows of a block other than code, with colours as escape sequences."""
    if block.kind == "item":
        return _item(block, width, colours)
    if block.kind == "heading":
        # Rich frames top-level headings.
        words = block.text.strip().strip("#").strip()
        return _render(Markdown(f"**{words}**"), width, colours)
    return _render(Markdown(block.text, hyperlinks=False), width, colours)


def code_lines(block: MarkdownBlock) -> list[str]:
    """The highlighted lines of a code block. `before` gives the lexer its context; lines are never
    wrapped."""
    code = "\n".join((*block.before, *block.lines))
    syntax = Syntax(code, block.language, theme=THEME, background_color="default")
    if syntax.lexer is None:
        return list(block.lines)
    console = _console(80, colours=True)
    console.print(syntax.highlight(code), soft_wrap=True, end="")
    rows = _output_rows(console)
    # The highlighter drops empty lines at the end.
    rows += [""] * (len(block.before) + len(block.lines) - len(rows))
    return rows[len(block.before) :][: len(block.lines)]


def _item(block: MarkdownBlock, width: int, colours: bool) -> list[str]:
    head = _ITEM_HEAD.match(block.lines[0])
    assert head is not None
    mark = "•" if head[2] in "-*+" else head[2]
    lead = f"{head[1][: width // 2]}{mark} "
    words = (block.lines[0][head.end() :], *(line.strip() for line in block.lines[1:]))
    rows = _render(Markdown("\n".join(words), hyperlinks=False), width - cells(lead), colours)
    return [(" " * cells(lead) if n else lead) + row for n, row in enumerate(rows or [""])]


def _render(what: RenderableType, width: int, colours: bool) -> list[str]:
    console = _console(max(width, 10), colours=colours)
    console.print(what)
    return [row.rstrip() for row in _output_rows(console)]


def _console(width: int, *, colours: bool) -> Console:
    return Console(
        file=StringIO(),
        width=width,
        force_terminal=colours,
        color_system="standard" if colours else None,
        no_color=not colours,
        legacy_windows=False,
        highlight=False,
        emoji=False,
        markup=False,
        theme=STYLES,
    )


def _output_rows(console: Console) -> list[str]:
    file = console.file
    assert isinstance(file, StringIO)
    return _without_frame(file.getvalue().split("\n"))


def _without_frame(rows: Sequence[str]) -> list[str]:
    """Rich adds empty rows around tables and code."""
    start, stop = 0, len(rows)
    while start < stop and _is_empty(rows[start]):
        start += 1
    while stop > start and _is_empty(rows[stop - 1]):
        stop -= 1
    return list(rows[start:stop])


def _is_empty(row: str) -> bool:
    return not _COLOUR.sub("", row).strip()
