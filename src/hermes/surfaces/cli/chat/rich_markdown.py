"""Rendered Markdown: rich lays out blocks, pygments colours code. Slow to load, so imported only
when needed."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.syntax import Syntax
from rich.theme import Theme

from hermes.surfaces.cli.chat.blocks import MarkdownBlock
from hermes.surfaces.cli.chat.cells import COLOUR, cells

# This theme uses the terminal's own colours, so it fits light and dark backgrounds.
THEME = "ansi_dark"
STYLES = Theme({"markdown.code": "cyan", "markdown.block_quote": "dim"})


def rich_lines(block: MarkdownBlock, width: int, *, colours: bool) -> list[str]:
    """The rows of a block other than code, with colours as escape sequences."""
    if block.kind == "item":
        lead, hang, text = block.split_prefix(width)
        item = Markdown(text, hyperlinks=False)
        rows = _render(item, width - cells(lead), colours) or [""]
        return [(hang if n else lead) + row for n, row in enumerate(rows)]
    if block.kind == "heading":
        # Rich frames top-level headings.
        title = block.text.strip().strip("#").strip()
        return _render(Markdown(f"**{title}**"), width, colours)
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
    """What was printed, without the empty rows that rich adds around tables and code."""
    file = console.file
    assert isinstance(file, StringIO)
    rows = file.getvalue().split("\n")
    full = [n for n, row in enumerate(rows) if COLOUR.sub("", row).strip()]
    return rows[full[0] : full[-1] + 1] if full else []
