"""Renders Markdown as lines of text, with a style for what a platform can show inside a line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from hermes.surfaces.gateway.markup.parsing import (
    Node,
    align_table,
    language_of,
    parse,
    split_spoilers,
)

Span = Literal["bold", "italic", "strike", "code", "spoiler"]

_SPANS: dict[str, Span] = {"strong": "bold", "em": "italic", "s": "strike"}
_RULE = "———"


class Style(Protocol):
    """What a platform does with the parts of a text."""

    def text(self, text: str) -> str: ...

    def span(self, kind: Span, inner: str) -> str: ...

    def link(self, label: str, url: str) -> str: ...

    def code_block(self, code: str, language: str) -> str: ...

    def quote(self, inner: str) -> str: ...


def lay_out(markdown: str, style: Style) -> str:
    return _Layout(style).blocks(parse(markdown).children, "\n\n")


class _Layout:
    def __init__(self, style: Style) -> None:
        self._style = style
        # Markup that is open, because a span or quote inside the same one has no effect.
        self._open: list[str] = []

    def blocks(self, nodes: Iterable[Node], separator: str) -> str:
        return separator.join(filter(None, map(self._block, nodes)))

    def _block(self, node: Node) -> str:
        match node.type:
            case "heading":
                return self._span("bold", node.children)
            case "fence" | "code_block":
                language = language_of(node) if node.type == "fence" else ""
                return self._code(node.content.rstrip("\n"), language)
            case "blockquote":
                return self._quote(node)
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "table":
                return self._code(align_table(_table_rows(node)), "")
            case "hr":
                return self._style.text(_RULE)
            case "inline":
                return self._inline(node.children)
            case _:
                return self.blocks(node.children, "\n")

    def _code(self, code: str, language: str) -> str:
        return self._style.code_block(code, language) if code.strip() else ""

    def _quote(self, node: Node) -> str:
        if "quote" in self._open:
            return self.blocks(node.children, "\n")
        self._open.append("quote")
        inner = self.blocks(node.children, "\n")
        self._open.pop()
        return self._style.quote(inner) if inner else ""

    def _list(self, node: Node) -> str:
        start = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else 0
        indent = "  " * self._open.count("list")
        self._open.append("list")
        lines = []
        for n, item in enumerate(node.children):
            mark = f"{start + n}." if node.type == "ordered_list" else "•"
            lines.append(f"{indent}{mark} {self.blocks(item.children, chr(10))}".rstrip())
        self._open.pop()
        return "\n".join(lines)

    def _inline(self, nodes: Iterable[Node]) -> str:
        return "".join(map(self._inline_node, nodes))

    def _inline_node(self, node: Node) -> str:
        match node.type:
            case "text":
                return "".join(
                    self._spoiler(piece) if hidden else self._style.text(piece)
                    for piece, hidden in split_spoilers(node.content)
                )
            case "code_inline":
                return self._style.span("code", self._style.text(node.content))
            case "softbreak" | "hardbreak":
                return "\n"
            case "link":
                url = str(node.attrs.get("href", ""))
                return self._style.link(self._inline(node.children) or self._style.text(url), url)
            case "image":
                url = str(node.attrs.get("src", ""))
                label = self._style.text(node.content or url)
                return label if self._is_in_link(node) else self._style.link(label, url)
            case "strong" | "em" | "s":
                return self._span(_SPANS[node.type], node.children)
            case _:
                return self._inline(node.children) or self._style.text(node.content)

    def _span(self, kind: Span, nodes: Iterable[Node]) -> str:
        if kind in self._open:
            return self._inline_or_blocks(nodes)
        self._open.append(kind)
        inner = self._inline_or_blocks(nodes)
        self._open.pop()
        return self._style.span(kind, inner) if inner.strip() else inner

    def _inline_or_blocks(self, nodes: Iterable[Node]) -> str:
        return "".join(
            self._block(node) if node.type == "inline" else self._inline_node(node)
            for node in nodes
        )

    def _spoiler(self, text: str) -> str:
        return self._style.span("spoiler", self._style.text(text))

    @staticmethod
    def _is_in_link(node: Node) -> bool:
        above = node.parent
        while above is not None:
            if above.type == "link":
                return True
            above = above.parent
        return False


def _table_rows(table: Node) -> list[list[str]]:
    return [
        [_plain_text(cell) for cell in row.children]
        for part in table.children
        for row in part.children
    ]


def _plain_text(node: Node) -> str:
    if node.type in ("text", "code_inline", "image"):
        return node.content
    if node.type in ("softbreak", "hardbreak"):
        return " "
    return "".join(map(_plain_text, node.children))
