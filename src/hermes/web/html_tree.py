"""Parses HTML into a tree. Any input gives a tree, in time linear to its length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
# Elements whose content is text up to their end tag.
RAW = frozenset("script style textarea title xmp noscript iframe noembed noframes".split())
_DROPPED_RAW = RAW - {"title", "textarea"}
# A start tag of a key ends open elements of its values, up to the nearest element of BARRIERS.
_P_ENDS = (
    "address article aside blockquote center details dialog div dl fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hr main menu nav ol p pre section table ul".split()
)
IMPLIED_ENDS: dict[str, frozenset[str]] = {
    **{tag: frozenset(("p",)) for tag in _P_ENDS},
    "li": frozenset(("li", "p")),
    "dt": frozenset(("dt", "dd", "p")),
    "dd": frozenset(("dt", "dd", "p")),
    "tr": frozenset(("tr", "td", "th", "p", "caption")),
    "td": frozenset(("td", "th", "p")),
    "th": frozenset(("td", "th", "p")),
    "thead": frozenset(("tr", "td", "th", "caption")),
    "tbody": frozenset(("thead", "tbody", "tr", "td", "th", "caption")),
    "tfoot": frozenset(("thead", "tbody", "tr", "td", "th")),
    "option": frozenset(("option",)),
    "optgroup": frozenset(("option", "optgroup")),
}
BARRIERS = frozenset("ul ol dl table select body html div section article main blockquote".split())
# Deeper elements become children of the deepest allowed one.
MOST_DEPTH = 200
_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_ATTRIBUTE = re.compile(
    r"[\s/]*([^\s=>/][^\s=>/]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"'][^\s>]*)?))?"
)
_TAG_END = re.compile(r"[\s/]*>?")


class Element:
    """An element; `children` are elements and texts in their order."""

    __slots__ = ("attributes", "children", "parent", "tag")

    def __init__(
        self, tag: str, attributes: dict[str, str] | None = None, parent: Element | None = None
    ) -> None:
        self.tag = tag
        self.attributes = attributes or {}
        self.parent = parent
        self.children: list[Element | str] = []

    @property
    def elements(self) -> Iterator[Element]:
        return (child for child in self.children if isinstance(child, Element))

    def walk(self) -> Iterator[Element]:
        """Yield the elements below this one in document order."""
        stack = [*reversed(list(self.elements))]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(list(element.elements)))

    def text(self) -> str:
        """Return the text below this element, without markup."""
        parts: list[str] = []
        stack: list[Element | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                parts.append(node)
            else:
                stack.extend(reversed(node.children))
        return "".join(parts)


def parse_html(html: str) -> Element:
    """Return the root of the tree. Scripts, styles, comments and other invisible content are left
    out."""
    return _Builder(html).build()


class _Builder:
    def __init__(self, html: str) -> None:
        self._html = html
        self._root = Element("#document")
        self._open = [self._root]

    def build(self) -> Element:
        html, at, end = self._html, 0, len(self._html)
        while at < end:
            start = html.find("<", at)
            if start < 0:
                start = end
            if start > at:
                self._add_text(html[at:start])
            at = self._read_markup(start) if start < end else end
        return self._root

    def _add_text(self, text: str) -> None:
        self._open[-1].children.append(unescape(text))

    def _read_markup(self, at: int) -> int:
        """Read what begins with "<" at this position. Return the position after it."""
        html = self._html
        if html.startswith("<!--", at):
            return self._after(html.find("-->", at + 4), 3)
        if html.startswith(("<!", "<?"), at):
            return self._after(html.find(">", at), 1)
        closing = html.startswith("</", at)
        name = _NAME.match(html, at + 1 + closing)
        if name is None:
            self._add_text("<")
            return at + 1
        tag = name[0].lower()
        if closing:
            self._close(tag)
            return self._after(html.find(">", name.end()), 1)
        attributes, at = self._read_attributes(name.end())
        return self._start(tag, attributes, at)

    def _after(self, found: int, length: int) -> int:
        return len(self._html) if found < 0 else found + length

    def _read_attributes(self, at: int) -> tuple[dict[str, str], int]:
        """Read up to the end of the start tag. A quotation without end is a value without text."""
        found: dict[str, str] = {}
        while (match := _ATTRIBUTE.match(self._html, at)) is not None and match.end() > at:
            at = match.end()
            value = match[2] or match[3] or match[4] or ""
            found.setdefault(match[1].lower(), unescape(value) if "&" in value else value)
        ending = _TAG_END.match(self._html, at)
        return found, ending.end() if ending is not None else at

    def _start(self, tag: str, attributes: dict[str, str], at: int) -> int:
        if ends := IMPLIED_ENDS.get(tag):
            self._close_implied(ends)
        element = Element(tag, attributes, self._open[-1])
        if tag not in _DROPPED_RAW:
            self._open[-1].children.append(element)
        if tag in RAW:
            return self._read_raw(element, at)
        if tag not in VOID and len(self._open) < MOST_DEPTH:
            self._open.append(element)
        return at

    def _read_raw(self, element: Element, at: int) -> int:
        """Read the text of the element. Without an end tag it reaches to the end of the page."""
        ending = re.compile(rf"</{re.escape(element.tag)}(?=[\s/>])", re.IGNORECASE)
        match = ending.search(self._html, at)
        stop = match.start() if match else len(self._html)
        element.children.append(unescape(self._html[at:stop]))
        return self._after(self._html.find(">", stop), 1) if match else stop

    def _close_implied(self, ends: frozenset[str]) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            tag = self._open[depth].tag
            if tag in ends:
                del self._open[depth:]
            elif tag in BARRIERS:
                return

    def _close(self, tag: str) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            if self._open[depth].tag == tag:
                del self._open[depth:]
                return
