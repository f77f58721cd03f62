"""Cuts Markdown that is still being written into blocks, each as soon as it is complete."""

from __future__ import annotations

import re
from typing import Literal

from hermes.codec.values import Value

# Long code is given out in pieces of so many lines, so that one need not wait for its end.
CODE_LINES = 24

_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*([^\s`]*)[^`]*$")
_HEADING = re.compile(r"\s{0,3}#{1,6}(\s|$)")
_RULE = re.compile(r"\s{0,3}([-*_])(\s*\1){2,}\s*$")
_ITEM = re.compile(r"\s*([-*+]|\d{1,9}[.)])(\s|$)")
_DIVIDER = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")

Kind = Literal["text", "heading", "rule", "item", "quote", "table", "code", "blank"]


class Block(Value):
    """Some whole lines of one kind. Code comes without its fences: `language` and `indent` are
    those of the opening one, `before` are lines of the same code that came earlier."""

    kind: Kind
    lines: tuple[str, ...]
    language: str = ""
    indent: str = ""
    before: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class _Fence(Value):
    mark: str
    language: str
    indent: str

    def closed_by(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self.mark) and set(bare) == set(self.mark)


class Blocks:
    """Feed pieces of any size; how the text is cut into pieces makes no difference."""

    def __init__(self) -> None:
        self._partial = ""
        self._kind: Kind = "text"
        self._lines: list[str] = []
        self._fence: _Fence | None = None
        self._before: list[str] = []
        self._ready: list[Block] = []
        self._after_blank = True

    @property
    def tail(self) -> str:
        """What has come and is not given out yet."""
        return "\n".join((*self._lines, self._partial)) if self._partial else "\n".join(self._lines)

    @property
    def in_code(self) -> bool:
        return self._fence is not None

    def feed(self, text: str) -> list[Block]:
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            self._take(line.removesuffix("\r"))
        return self._given()

    def finish(self) -> list[Block]:
        """What is left, complete or not."""
        if self._partial:
            self._take(self._partial.removesuffix("\r"))
            self._partial = ""
        self._flush()
        self._fence = None
        self._before.clear()
        return self._given()

    def _given(self) -> list[Block]:
        ready, self._ready = self._ready, []
        return ready

    def _take(self, line: str) -> None:
        if self._fence is not None:
            self._take_code(self._fence, line)
        elif found := _FENCE.match(line):
            self._flush()
            self._fence = _Fence(mark=found[2], language=found[3].lower(), indent=found[1])
            self._kind = "code"
        elif not line.strip():
            self._take_blank()
        else:
            self._take_words(line)

    def _take_code(self, fence: _Fence, line: str) -> None:
        if fence.closed_by(line):
            self._flush()
            self._fence = None
            self._before.clear()
            return
        self._lines.append(line.removeprefix(fence.indent))
        if len(self._lines) >= CODE_LINES:
            self._flush()
            self._kind = "code"

    def _take_blank(self) -> None:
        self._flush()
        if not self._after_blank:
            self._add(Block(kind="blank", lines=("",)))

    def _take_words(self, line: str) -> None:
        if self._lines and self._kind == "text" and _heads_table(self._lines, line):
            self._kind = "table"
        kind = self._kind_of(line)
        if self._lines and kind != self._kind or kind in ("heading", "rule", "item"):
            self._flush()
        if _ITEM.match(line) and kind == "item" or not self._lines:
            self._kind = kind
        self._lines.append(line)
        if kind in ("heading", "rule"):
            self._flush()

    def _kind_of(self, line: str) -> Kind:
        """The kind of a line, which may depend on the lines before it."""
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
        if not self._lines:
            self._kind = "text"
            return
        lines, fence = tuple(self._lines), self._fence
        self._lines.clear()
        if fence is None:
            self._add(Block(kind=self._kind, lines=lines))
        else:
            before = tuple(self._before)
            self._before = list(lines)
            self._add(
                Block(
                    kind="code",
                    lines=lines,
                    language=fence.language,
                    indent=fence.indent,
                    before=before,
                )
            )
        self._kind = "text"

    def _add(self, block: Block) -> None:
        self._after_blank = block.kind == "blank"
        self._ready.append(block)


def _heads_table(lines: list[str], line: str) -> bool:
    return len(lines) == 1 and "|" in lines[0] and "|" in line and bool(_DIVIDER.match(line))
