"""Splits streamed Markdown into blocks, each as soon as it is complete."""

from __future__ import annotations

import re
from typing import Literal

from hermes.codec.values import Value
from hermes.commands.formatting import sanitize
from hermes.surfaces.cli.chat.cells import cells

# Long code is emitted in pieces of this many lines, before its end is known.
CODE_LINES = 8
CONTEXT_LINES = 40
# Reading a longer line again for every delta costs too much.
LONGEST_LINE = 8_000
# An indent that leaves fewer cells is dropped.
NARROWEST = 20

_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*([^\s`]*)[^`]*$")
_HEADING = re.compile(r"\s{0,3}#{1,6}(\s|$)")
_RULE = re.compile(r"\s{0,3}([-*_])(\s*\1){2,}\s*$")
_ITEM_HEAD = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])\s*")
_TASK = re.compile(r"\[([ xX])\]\s+")
_ITEM = re.compile(r"\s*([-*+]|\d{1,9}[.)])(\s|$)")
# Line beginnings that can only be a paragraph, or only a list item.
_SURE_TEXT = re.compile(
    r"\s*(?:[^\s\-*+#>|`~_\d]|\d+[^\d.)]|_+[^_\s]|\*\*+[^\s*]|-+[^\s|:-]|`{1,2}[^`]|~{1,2}[^~])"
)
_SURE_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+[^\s*_-]")
_DIVIDER = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")

Kind = Literal["text", "heading", "rule", "item", "quote", "table", "code", "blank"]


class MarkdownBlock(Value):
    """Complete lines of one kind, such as a paragraph, a list item or a piece of code."""

    kind: Kind
    # Code comes without its fences.
    lines: tuple[str, ...]
    # Language and indentation of the opening fence.
    language: str = ""
    indent: str = ""
    # Some lines of the same code before this piece.
    before: tuple[str, ...] = ()
    # Whether this is the first piece of the code, and whether it is the last.
    opens: bool = False
    closes: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def split_prefix(self, width: int, *, boxes: bool = False) -> tuple[str, str, str]:
        """The prefix of the first row, such as a bullet, the prefix of the others, and the text.
        `boxes`: an item of a task list begins with a box."""
        lines = [line.rstrip() for line in self.lines]
        if self.kind != "item":
            return "", "", "\n".join(lines)
        head = _ITEM_HEAD.match(self.lines[0])
        assert head is not None
        mark = "•" if head[2] in "-*+" else head[2]
        indent = head[1] if cells(head[1]) <= width - NARROWEST else ""
        first = lines[0][head.end() :]
        if boxes and (task := _TASK.match(first)):
            mark, first = "☐" if task[1] == " " else "☑", first[task.end() :]
        lead = f"{indent}{mark} "
        contents = (first, *(line.strip() for line in lines[1:]))
        return lead, " " * cells(lead), "\n".join(contents)


class BlockSplitter:
    """Splits Markdown into blocks. The result does not depend on how the text is split into deltas.
    Control characters are removed."""

    def __init__(self) -> None:
        self._partial = ""
        self._kind: Kind = "text"
        self._lines: list[str] = []
        self._code: _Code | None = None
        self._ready: list[MarkdownBlock] = []
        self._blank_due = False
        self._begun = False

    @property
    def tail(self) -> str:
        """Text that is not emitted yet."""
        lines = self._code.lines if self._code else self._lines
        return "\n".join((*lines, _clean_line(self._partial)) if self._partial else lines)

    @property
    def has_gap(self) -> bool:
        """Whether an empty line precedes the tail."""
        return self._blank_due and self._begun

    @property
    def partial(self) -> str:
        """The last line, which has no end yet."""
        return _clean_line(self._partial)

    @property
    def unfinished_code(self) -> MarkdownBlock | None:
        """The complete lines of the current code that are not emitted yet."""
        return self._code.peek() if self._code else None

    @property
    def unfinished_table(self) -> MarkdownBlock | None:
        """The complete rows of the current table."""
        if self._code or self._kind != "table" or not self._lines:
            return None
        return MarkdownBlock(kind="table", lines=tuple(self._lines))

    @property
    def unfinished(self) -> MarkdownBlock | None:
        """The current paragraph or item, as far as its kind is certain."""
        if len(self._partial) > LONGEST_LINE:
            return None
        lines = [*self._lines]
        kind: Kind = self._kind if lines else "text"
        partial = _clean_line(self._partial)
        if self._code is None and _SURE_TEXT.match(partial):
            lines.append(partial)
        elif self._code is None and not lines and _SURE_ITEM.match(partial):
            kind, lines = "item", [partial]
        # The first line of a paragraph may become the head of a table.
        may_be_table = kind == "text" and len(lines) == 1 and "|" in lines[0]
        if not lines or kind not in ("text", "item") or may_be_table:
            return None
        return MarkdownBlock(kind=kind, lines=tuple(lines))

    def take_gap(self) -> list[MarkdownBlock]:
        """The empty line that is due before the unfinished block, if any."""
        self._part()
        return self._take_ready()

    def feed(self, text: str) -> list[MarkdownBlock]:
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            self._take(_clean_line(line))
        return self._take_ready()

    def finish(self) -> list[MarkdownBlock]:
        """The remaining blocks, complete or not."""
        if self._partial:
            self._take(_clean_line(self._partial))
            self._partial = ""
        self._flush()
        if self._code is not None:
            self._ready.append(self._code.piece(closes=True))
            self._code = None
        self._blank_due = False
        return self._take_ready()

    def _take_ready(self) -> list[MarkdownBlock]:
        ready, self._ready = self._ready, []
        return ready

    def _take(self, line: str) -> None:
        if self._code is not None:
            if self._code.closed_by(line):
                self._ready.append(self._code.piece(closes=True))
                self._code = None
                return
            self._code.lines.append(line.removeprefix(self._code.indent))
            if len(self._code.lines) >= CODE_LINES:
                self._ready.append(self._code.piece())
        elif found := _FENCE.match(line):
            self._flush()
            self._part()
            self._code = _Code(mark=found[2], language=found[3].lower(), indent=found[1])
        elif not line.strip():
            self._flush()
            self._blank_due = True
        else:
            head = self._lines[0] if self._kind == "text" and len(self._lines) == 1 else ""
            if "|" in head and "|" in line and _DIVIDER.match(line):
                self._kind = "table"
            kind = self._kind_of(line)
            if not self._lines or not _joins(kind, self._kind):
                self._flush()
                self._kind = kind
            self._lines.append(line)

    def _kind_of(self, line: str) -> Kind:
        bare = line.lstrip()
        if _HEADING.match(line):
            return "heading"
        if _RULE.match(line):
            return "rule"
        if _ITEM.match(line):
            return "item"
        if bare.startswith(">"):
            return "quote"
        if bare.startswith("|") or (self._kind == "table" and self._lines and "|" in line):
            return "table"
        return "text"

    def _flush(self) -> None:
        if self._lines:
            self._part()
            self._ready.append(MarkdownBlock(kind=self._kind, lines=tuple(self._lines)))
            self._lines.clear()
        self._kind = "text"

    def _part(self) -> None:
        """Emit one blank line if the text had at least one here."""
        if self.has_gap:
            self._ready.append(MarkdownBlock(kind="blank", lines=("",)))
        self._blank_due, self._begun = False, True


class _Code:
    """An unfinished fenced code block."""

    def __init__(self, *, mark: str, language: str, indent: str) -> None:
        self.indent = indent
        self.lines: list[str] = []
        self._mark = mark
        self._language = language
        self._before: tuple[str, ...] = ()
        self._opened = False

    def closed_by(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self._mark) and set(bare) == set(self._mark)

    def peek(self, *, closes: bool = False) -> MarkdownBlock:
        return MarkdownBlock(
            kind="code",
            lines=tuple(self.lines),
            language=self._language,
            indent=self.indent,
            before=self._before,
            opens=not self._opened,
            closes=closes,
        )

    def piece(self, *, closes: bool = False) -> MarkdownBlock:
        """The lines since the last piece."""
        block = self.peek(closes=closes)
        self._before = (*self._before, *block.lines)[-CONTEXT_LINES:]
        self._opened = True
        self.lines.clear()
        return block


def _clean_line(line: str) -> str:
    """A line without control characters and without a trailing carriage return."""
    return sanitize(line.removesuffix("\r"))


def _joins(kind: Kind, before: Kind) -> bool:
    """Whether a line continues the block before it."""
    if kind == before:
        return kind in ("text", "quote", "table")
    return kind == "text" and before in ("item", "quote")
