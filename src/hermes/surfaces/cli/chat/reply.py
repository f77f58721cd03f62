"""Renders a streamed reply as terminal rows; each row is final once it is printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from hermes.commands.formatting import sanitize
from hermes.surfaces.cli.chat.blocks import BlockSplitter, MarkdownBlock
from hermes.surfaces.cli.chat.cells import cells, first_row, pad, wrap
from hermes.surfaces.cli.chat.screen import Paint

_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?[^`])\1(?!`)", re.DOTALL)
_KEPT = re.compile(r"\x00(\d+)\x00")
_MARKS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"!\[([^\]]*)\]\(\s*([^)\s]+)[^)]*\)"), lambda m: _link(m[1] or "picture", m[2])),
    (re.compile(r"\[([^\]]+)\]\(\s*([^)\s]+)[^)]*\)"), lambda m: _link(m[1], m[2])),
    (re.compile(r"<((?:https?|mailto):[^>\s]+)>"), r"\1"),
    (re.compile(r"(?<!\\)\*\*\*(?=\S)(.+?)(?<=\S)\*\*\*", re.DOTALL), r"\1"),
    (re.compile(r"(?<!\\)\*\*(?=\S)(.+?)(?<=\S)\*\*", re.DOTALL), r"\1"),
    # One word between double underscores is more likely a Python name than bold.
    (re.compile(r"(?<![\w\\])__(?!\w+__)(?=\S)(.+?)(?<=\S)__(?!\w)", re.DOTALL), r"\1"),
    (re.compile(r"(?<![\w\\*])\*(?=[^\s*])([^*]+?)(?<=\S)\*(?![\w*])", re.DOTALL), r"\1"),
    (re.compile(r"(?<![\w\\_])_(?=[^\s_])([^_]+?)(?<=\S)_(?![\w_])", re.DOTALL), r"\1"),
    (re.compile(r"~~(?=\S)(.+?)(?<=\S)~~", re.DOTALL), r"\1"),
    (re.compile(r"\\([\\`*_{}\[\]()#+\-.!|~>])"), r"\1"),
)


def plain_lines(block: MarkdownBlock, width: int) -> list[str]:
    """The rows of a block other than code and prose."""
    match block.kind:
        case "heading":
            return wrap(plain_words(block.text.strip().strip("#").strip()), width)
        case "rule":
            return ["─" * min(width, 40)]
        case "quote":
            quoted_lines = (line.lstrip().removeprefix(">").strip() for line in block.lines)
            return [
                f"│ {row}" for line in quoted_lines for row in wrap(plain_words(line), width - 2)
            ]
        case "table":
            return table_rows(block, width)
        case _:
            raise ValueError(f"{block.kind} is laid out elsewhere")


def plain_words(text: str) -> str:
    """Removes emphasis and link marks; code spans stay as they are."""
    spans: list[str] = []

    def keep(span: re.Match[str]) -> str:
        spans.append(span[0])
        return f"\x00{len(spans) - 1}\x00"

    # Emphasis may span a code span, so code spans are replaced while marks are removed.
    plain = _CODE_SPAN.sub(keep, text.replace("\x00", ""))
    for pattern, instead in _MARKS:
        plain = pattern.sub(instead, plain)
    return _KEPT.sub(lambda found: spans[int(found[1])], plain)


def table_rows(block: MarkdownBlock, width: int) -> list[str]:
    """Aligned columns; if they do not fit, each row as a list of its cells."""
    rows = [_cells_of(line) for line in block.lines]
    head, *body = [row for row in rows if not _is_divider(row)] or [[]]
    columns = max((len(row) for row in (head, *body)), default=0)
    head, *body = [row + [""] * (columns - len(row)) for row in (head, *body)]
    widths = [max(cells(row[n]) for row in (head, *body)) for n in range(columns)]
    if sum(widths) + 2 * (columns - 1) > width:
        lines = []
        for row in body:
            for name, value in zip(head, row, strict=True):
                lines += wrap(f"{name}: {value}" if name else value, width, hang="  ")
            lines.append("")
        return lines[:-1]
    divider = next((row for row in rows if _is_divider(row)), [])
    right = [cell.endswith(":") and not cell.startswith(":") for cell in divider]
    right += [False] * (columns - len(right))

    def align(cell: str, width: int, right: bool) -> str:
        return " " * (width - cells(cell)) + cell if right else pad(cell, width)

    lines = ["  ".join(map(align, row, widths, right)).rstrip() for row in (head, *body)]
    return [lines[0], "  ".join("─" * each for each in widths), *lines[1:]]


def _cells_of(line: str) -> list[str]:
    bare = line.strip().removeprefix("|")
    bare = bare[:-1] if bare.endswith("|") and not bare.endswith("\\|") else bare
    return [plain_words(cell.strip()) for cell in re.split(r"(?<!\\)\|", bare)]


def _is_divider(row: Sequence[str]) -> bool:
    return all(re.fullmatch(r":?-+:?", cell) for cell in row)


def _link(label: str, address: str) -> str:
    return address if label == address else f"{label} ({address})"


# What a pair of marks may enclose to be decidable: anything but further marks.
_PLAIN = r"[^*_`~\[\]\\<!\s](?:[^*_`~\[\]\\<!]*[^*_`~\[\]\\<!\s])?"
_WHOLE = tuple(
    re.compile(pattern)
    for pattern in (
        r"(`+)(?!`)[^`]+\1(?!`)",
        rf"!?\[{_PLAIN}\]\([^()\s*_`~\\<!\[\]]+\)",
        rf"\[{_PLAIN}\](?!\()",
        r"<(?:https?|mailto):[^>\s*_`~\\]+>",
        rf"\*\*\*{_PLAIN}\*\*\*(?!\*)",
        rf"\*\*{_PLAIN}\*\*(?!\*)",
        rf"\*{_PLAIN}\*(?![\w*])",
        rf"__{_PLAIN}__(?![\w_])",
        rf"_{_PLAIN}_(?![\w_])",
        rf"~~{_PLAIN}~~(?!~)",
        r"\\[^*_`~\[\\<!]",
    )
)
_ALL_MARKS = tuple("*_`~[\\<!")
_MARK = re.compile(r"[*_`~\[\\<!]")


def settled_prefix(text: str) -> str:
    """The longest prefix in which every mark is closed or cannot be opened. Removing its marks
    gives a prefix of the final plain text."""
    at = 0
    while found := _MARK.search(text, at):
        at = found.start()
        end = _construct_end(text, at)
        # The next text may still change the meaning of the end.
        if end is None or end >= len(text):
            return text[:at]
        at = end
    return text


def _construct_end(text: str, at: int) -> int | None:
    """Where the construct that begins here ends; None while that is unknown."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if not after:
        return None
    if _is_bare(text[at], before, after):
        return at + 1
    for pattern in _WHOLE:
        if whole := pattern.match(text, at):
            # Another mark directly behind it may change its meaning.
            return None if text[whole.end() : whole.end() + 1] in _ALL_MARKS else whole.end()
    return None


def _is_bare(mark: str, before: str, after: str) -> bool:
    """Whether the mark is an ordinary character here."""
    match mark:
        case "_" | "*":
            inside_word = before.isalnum() or before == "_"
            return (inside_word or after.isspace()) and after != mark
        case "~":
            return after != "~"
        case "!":
            return after != "["
        case "<":
            return after not in "hm"
        case "\\":
            return after.isalnum() or after.isspace()
        case _:
            return False


PROSE_KINDS = ("text", "item")
Style = Literal["strip", "render", "raw"]

# More than the tail ever shows; laying out more wastes time.
TAIL_CHARACTERS = 4_000


class StreamedReply:
    """One reply. `feed` and `finish` return final rows; `tail` returns what may still change.
    Stripped prose is final row by row, everything else block by block. An emitted row is never
    emitted again, even if the width changes."""

    def __init__(self, style: Style, paint: Paint) -> None:
        self.begun = False
        self._style = style
        self._paint = paint
        self._blocks = BlockSplitter()
        self._partial = ""
        # How many characters of the unfinished block were emitted.
        self._emitted = 0

    def feed(self, text: str, width: int) -> list[str]:
        self.begun = self.begun or bool(text.strip())
        if self._style == "raw":
            *lines, self._partial = (self._partial + text).split("\n")
            return [sanitize(line) for line in lines]
        rows = self._rows(self._blocks.feed(text), width)
        unfinished = self._blocks.unfinished if self._style == "strip" else None
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
        unfinished = self._blocks.unfinished if self._style == "strip" else None
        if unfinished is not None:
            rows, _ = self._prose(unfinished, width)
        else:
            text = sanitize(self._partial) if self._style == "raw" else self._blocks.tail
            text = text[-TAIL_CHARACTERS:]
            if self._style != "raw" and not self._blocks.in_code:
                text = plain_words(text)
            lines = text.split("\n") if text else []
            rows = [row for line in lines for row in wrap(line, width)]
        gap = [""] if rows and self._blocks.has_gap and not self._emitted else []
        return [*gap, *rows][-most:]

    def _rows(self, blocks: list[MarkdownBlock], width: int) -> list[str]:
        rows: list[str] = []
        for block in blocks:
            if block.kind == "blank":
                rows.append("")
            elif block.kind == "code":
                rows += self._code(block)
            elif self._style == "render":
                # Slow to load, and only some users choose it.
                from hermes.surfaces.cli.chat.rich_markdown import rich_lines

                rows += rich_lines(block, width, colours=self._paint.colours)
            elif block.kind in PROSE_KINDS:
                prose, _ = self._prose(block, width)
                if not prose and not self._emitted:
                    prose = [block.split_prefix(width)[0].rstrip()]
                rows += prose
                self._emitted = 0
            elif block.kind == "heading":
                rows += [self._paint(row, "bold") for row in plain_lines(block, width)]
            else:
                rows += plain_lines(block, width)
        return rows

    def _prose(
        self, block: MarkdownBlock, width: int, *, only_settled: bool = False
    ) -> tuple[list[str], int]:
        """The rows of a block that were not emitted yet, and where they end. With `only_settled`,
        return only rows that no further text can change."""
        lead, hang, source = block.split_prefix(width)
        text = plain_words(settled_prefix(source) if only_settled else source)
        rows, at = list[str](), self._emitted
        while at < len(text):
            line, newline, _ = text[at:].partition("\n")
            row, used = first_row(line, width, lead=hang if at else lead)
            if only_settled and used == len(line) and not newline:
                break
            rows.append(row)
            at += used + (1 if used == len(line) and newline else 0)
        return rows, at

    def _code(self, block: MarkdownBlock) -> list[str]:
        rows = list(block.lines)
        if self._paint.colours and block.language and rows:
            from hermes.surfaces.cli.chat.rich_markdown import code_lines

            rows = code_lines(block)
        if self._style == "strip" or not self._paint.colours:
            fence = [self._paint(f"```{block.language}", "dim")] if block.opens else []
            rows = [*fence, *rows, *([self._paint("```", "dim")] if block.closes else [])]
        return [block.indent + row for row in rows]
