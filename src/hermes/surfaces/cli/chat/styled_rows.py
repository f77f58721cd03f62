"""Lays out styled text in rows of terminal cells."""

from __future__ import annotations

from hermes.surfaces.cli.chat import inline_markdown
from hermes.surfaces.cli.chat.cells import first_row
from hermes.surfaces.cli.chat.inline_markdown import StyledText
from hermes.surfaces.cli.chat.screen import Paint

# Escape codes of emphasis. Code and addresses have the accent colour of the skin.
_EMPHASIS = {
    inline_markdown.BOLD: "1",
    inline_markdown.ITALIC: "3",
    inline_markdown.STRIKE: "9",
    inline_markdown.ADDRESS: "4",
}
_ACCENTED = frozenset((inline_markdown.CODE, inline_markdown.LABEL))


def styled_rows(
    styled: StyledText,
    width: int,
    paint: Paint,
    *,
    lead: str = "",
    hang: str = "",
    begin: int = 0,
    only_settled: bool = False,
) -> tuple[list[str], int]:
    """The rows of the text from `begin`, and where they end. The first row of the text begins with
    `lead`, the others with `hang`. `only_settled`: only rows that no further text can change."""

    def paint_styles(text: str, styles: frozenset[str]) -> str:
        return _paint(text, styles, paint)

    rows, at, text = list[str](), begin, styled.text
    while at < len(text):
        line, newline, _ = text[at:].partition("\n")
        prefix = hang if at else lead
        row, used = first_row(line, width, lead=prefix)
        if only_settled and used == len(line) and not newline:
            break
        if styled.starts:
            # A word that is too long for an indented row begins without its prefix.
            prefix = prefix if row.startswith(prefix) else ""
            end = at + len(row) - len(prefix)
            row = prefix + styled.render(at, end, paint_styles)
        rows.append(row)
        at += used + (1 if used == len(line) and newline else 0)
    return rows, at


def _paint(text: str, styles: frozenset[str], paint: Paint) -> str:
    codes = sorted(code for style, code in _EMPHASIS.items() if style in styles)
    if styles & _ACCENTED and (accent := paint.code("accent")):
        codes.append(accent)
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes and paint.colours else text
