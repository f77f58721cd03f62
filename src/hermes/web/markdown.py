"""Writes a tree of HTML elements as Markdown."""

from __future__ import annotations

import re
from urllib.parse import urljoin

from hermes.web.html_tree import Element

_SPACE = re.compile(r"[ \t\r\n\f\xa0\u200b]+")
_BLOCKS = frozenset(
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hr li main ol p pre section summary table tbody td tfoot "
    "th thead tr ul".split()
)
_STRONG = frozenset(("b", "strong"))
_EMPHASIS = frozenset(("em", "i"))
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source|brush:\s*)-?([\w+#-]+)")
_SPECIAL = re.compile(r"([\\`*_\[\]])")
# Deeper elements are written as plain text: every level of a list indents what is below it.
MOST_DEPTH = 30
# A table with more cells in one row is laid out as text.
MOST_COLUMNS = 30


def to_markdown(element: Element, base_url: str = "") -> str:
    """Return the element as Markdown. Links are absolute if `base_url` is given."""
    text = "\n\n".join(_Writer(base_url).blocks(element))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


class _Writer:
    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._depth = 0

    def blocks(self, element: Element) -> list[str]:
        """Return the blocks of an element: its block children, and the text between them."""
        if self._depth >= MOST_DEPTH:
            return [text] if (text := _SPACE.sub(" ", element.text()).strip()) else []
        self._depth += 1
        found: list[str] = []
        line: list[Element | str] = []
        for child in (*element.children, None):
            if isinstance(child, str) or (child is not None and not _is_block(child)):
                line.append(child)
                continue
            if text := self._inline(line):
                found.append(text)
            line = []
            if child is not None:
                found.extend(self._block(child))
        self._depth -= 1
        return [each for each in found if each.strip()]

    def _block(self, element: Element) -> list[str]:
        match element.tag:
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6" as tag:
                text = self._inline(element.children).replace("\n", " ").strip("# ")
                return [f"{'#' * int(tag[1])} {text}"] if text else []
            case "pre":
                return [_code_block(element)]
            case "ul" | "ol":
                return ["\n".join(self._items(element))]
            case "blockquote":
                return [_indent("\n\n".join(self.blocks(element)), "> ")]
            case "hr":
                return ["---"]
            case "table":
                return self._table(element)
            case "dt":
                return [f"**{text}**"] if (text := self._inline(element.children)) else []
            case "dd" | "figcaption" | "summary":
                return self.blocks(element)
            case _:
                return self.blocks(element)

    def _items(self, element: Element) -> list[str]:
        lines: list[str] = []
        number = _start_number(element)
        for child in element.elements:
            if child.tag in ("ul", "ol"):
                # Invalid, but common: a list directly in a list.
                lines.extend("  " + line for line in self._items(child))
                continue
            blocks = self.blocks(child)
            if not blocks:
                continue
            mark = f"{number}. " if element.tag == "ol" else "- "
            number += 1
            tight = "\n".join(blocks)
            rest = "\n" + " " * len(mark)
            lines.append(mark + tight.replace("\n", rest))
        return lines

    def _table(self, element: Element) -> list[str]:
        rows = [
            [self._cell(cell) for cell in row.elements if cell.tag in ("td", "th")]
            for row in element.walk()
            if row.tag == "tr" and _nearest(row, "table") is element
        ]
        rows = [row for row in rows if any(row)]
        if not rows:
            return self.blocks(_without_rows(element))
        width = max(map(len, rows))
        if width == 1 or width > MOST_COLUMNS or any("\n" in cell for row in rows for cell in row):
            # Used for layout, or too complex for a Markdown table.
            return [cell for row in rows for cell in row if cell]
        padded = [row + [""] * (width - len(row)) for row in rows]
        lines = ["| " + " | ".join(row) + " |" for row in padded]
        lines.insert(1, "|" + " --- |" * width)
        return ["\n".join(lines)]

    def _cell(self, cell: Element) -> str:
        blocks = self.blocks(cell)
        if len(blocks) == 1 and "\n" not in blocks[0]:
            return blocks[0].replace("|", "\\|")
        if all(len(each) < 80 and "\n" not in each for each in blocks) and len(blocks) < 4:
            return " ".join(blocks).replace("|", "\\|")
        return "\n\n".join(blocks)

    def _inline(self, nodes: list[Element | str]) -> str:
        """Return text with inline markup on one line; `br` breaks it."""
        text = "".join(self._inline_node(node) for node in nodes)
        lines = (_SPACE.sub(" ", line).strip() for line in text.split("\v"))
        return "\n".join(lines).strip()

    def _inline_node(self, node: Element | str) -> str:
        if isinstance(node, str):
            return _SPACE.sub(" ", node)
        if self._depth >= MOST_DEPTH:
            return _SPACE.sub(" ", node.text())
        self._depth += 1
        try:
            return self._inline_element(node)
        finally:
            self._depth -= 1

    def _inline_element(self, node: Element) -> str:
        tag = node.tag
        if tag == "br":
            return "\v"
        if tag == "img":
            return self._image(node)
        if tag in _CODE:
            text = _SPACE.sub(" ", node.text()).strip()
            mark = "``" if "`" in text else "`"
            return f"{mark}{text}{mark}" if text else ""
        inner = "".join(self._inline_node(child) for child in node.children)
        if tag == "a":
            return self._link(node, inner)
        if tag in _STRONG:
            return _wrap(inner, "**")
        if tag in _EMPHASIS:
            return _wrap(inner, "*")
        if _is_block(node):
            return f" {inner} "
        return inner

    def _link(self, node: Element, inner: str) -> str:
        url = self._absolute(node.attributes.get("href", ""))
        label = _SPACE.sub(" ", inner.replace("\v", " ")).strip()
        if not label:
            return ""
        if not url.startswith(("http://", "https://", "mailto:")):
            return inner
        return f"[{label}]({url})"

    def _image(self, node: Element) -> str:
        alt = _SPACE.sub(" ", node.attributes.get("alt", "")).strip()
        source = node.attributes.get("src", "").strip()
        if source.startswith("data:"):
            return f"[IMAGE: {alt}]" if alt else ""
        url = self._absolute(source)
        # An image without a description is decoration.
        return f"![{alt}]({url})" if alt and url.startswith("http") else ""

    def _absolute(self, url: str) -> str:
        url = url.strip()
        if not url or url.startswith(("#", "javascript:")):
            return ""
        try:
            url = urljoin(self._base_url, url)
        except ValueError:
            return ""
        return url.replace(" ", "%20").replace(")", "%29").replace("(", "%28")


def _is_block(element: Element) -> bool:
    return element.tag in _BLOCKS


def _wrap(inner: str, mark: str) -> str:
    """Put marks around the text, outside of which spaces stay."""
    text = inner.strip()
    if not text or "\v" in text or text.startswith(mark):
        return inner
    before = inner[: len(inner) - len(inner.lstrip())]
    after = inner[len(inner.rstrip()) :]
    return f"{before}{mark}{text}{mark}{after}"


def _code_block(element: Element) -> str:
    code = element.text().strip("\n").rstrip()
    if not code.strip():
        return ""
    inner = next((each for each in element.walk() if each.tag == "code"), element)
    names = f"{element.attributes.get('class', '')} {inner.attributes.get('class', '')}"
    found = _LANGUAGE.search(names)
    fence = "````" if "```" in code else "```"
    return f"{fence}{found[1] if found else ''}\n{code}\n{fence}"


def _start_number(element: Element) -> int:
    start = element.attributes.get("start", "1")
    return int(start) if start.isdigit() and len(start) < 7 else 1


def _indent(text: str, mark: str) -> str:
    return "\n".join((mark + line).rstrip() for line in text.split("\n"))


def _nearest(element: Element, tag: str) -> Element | None:
    parent = element.parent
    while parent is not None and parent.tag != tag:
        parent = parent.parent
    return parent


def _without_rows(table: Element) -> Element:
    """Return the content of a table that has no rows, such as stray text."""
    copy = Element("div", parent=table.parent)
    copy.children = table.children
    return copy
