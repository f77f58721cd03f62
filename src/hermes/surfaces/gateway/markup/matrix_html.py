"""Converts Markdown to the HTML that the Matrix specification allows in a message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from hermes.surfaces.gateway.markup.parsing import Node, language_of, parse, split_spoilers

_BLOCKS = {
    "paragraph": "p",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "list_item": "li",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "strong": "strong",
    "em": "em",
    "s": "del",
}
_LINK = re.compile(r"(?:https?|ftp|mailto|magnet):[^\s]+", re.IGNORECASE)


def to_matrix_html(markdown: str) -> str:
    return _render_all(parse(markdown).children)


def _render_all(nodes: Iterable[Node]) -> str:
    return "".join(map(_render, nodes))


def _render(node: Node) -> str:
    match node.type:
        case "text":
            return "".join(
                f"<span data-mx-spoiler>{escape(piece)}</span>" if hidden else escape(piece)
                for piece, hidden in split_spoilers(node.content)
            )
        case "code_inline":
            return f"<code>{escape(node.content)}</code>"
        case "softbreak" | "hardbreak":
            return "<br/>"
        case "hr":
            return "<hr/>"
        case "fence" | "code_block":
            name = language_of(node) if node.type == "fence" else ""
            attribute = f' class="language-{escape(name)}"' if name else ""
            return f"<pre><code{attribute}>{escape(node.content)}</code></pre>"
        case "heading":
            return f"<{node.tag}>{_render_all(node.children)}</{node.tag}>"
        case "ordered_list":
            start = int(node.attrs.get("start", 1))
            attribute = f' start="{start}"' if start != 1 else ""
            return f"<ol{attribute}>{_render_all(node.children)}</ol>"
        case "paragraph" if node.hidden:
            # The paragraphs of a list without empty lines.
            return _render_all(node.children)
        case "link":
            return _link(_render_all(node.children), str(node.attrs.get("href", "")))
        case "image":
            # Clients load pictures only from their own server.
            return _image(node)
        case kind if kind in _BLOCKS:
            tag = _BLOCKS[kind]
            return f"<{tag}>{_render_all(node.children)}</{tag}>"
        case _:
            return _render_all(node.children)


def _image(node: Node) -> str:
    url = str(node.attrs.get("src", ""))
    label = escape(node.content or url)
    return label if node.parent is not None and node.parent.type == "link" else _link(label, url)


def _link(label: str, url: str) -> str:
    label = label or escape(url)
    return f'<a href="{escape(url)}">{label}</a>' if _LINK.fullmatch(url) else label
