"""Writes RSS and Atom feeds as Markdown."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from hermes.core.errors import ToolError
from hermes.web.html_tree import parse_html
from hermes.web.markdown import to_markdown

MOST_ENTRIES = 100
MOST_CHARS = 2_000


def is_feed(text: str) -> bool:
    return bool(re.search(r"<(?:rss|feed|rdf:RDF)[\s>]", text[:2_000]))


def feed_markdown(text: str) -> tuple[str, str]:
    """Return the title and the entries of a feed. Raise ToolError for invalid XML."""
    if "<!ENTITY" in text:
        raise ToolError("the feed declares entities, which no feed needs.")
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise ToolError(f"the feed is not valid XML ({error}).") from error
    entries = [each for each in root.iter() if _name(each) in ("item", "entry")]
    channel = next((each for each in root.iter() if _name(each) == "channel"), root)
    title = _text(channel, "title")
    blocks = [_entry(each) for each in entries[:MOST_ENTRIES]]
    if len(entries) > MOST_ENTRIES:
        blocks.append(f"({len(entries) - MOST_ENTRIES} more entries)")
    return title, "\n\n".join(blocks)


def _entry(entry: Element) -> str:
    link = _text(entry, "link") or next(
        (each.get("href", "") for each in entry if _name(each) == "link"), ""
    )
    date = _text(entry, "pubdate") or _text(entry, "updated") or _text(entry, "date")
    body = _text(entry, "encoded") or _text(entry, "content") or _text(entry, "description")
    body = to_markdown(parse_html(body or _text(entry, "summary")), link)
    if len(body) > MOST_CHARS:
        body = body[:MOST_CHARS] + " …"
    heading = f"## {_text(entry, 'title') or link or 'Entry'}"
    facts = " · ".join(part for part in (date, link) if part)
    return "\n\n".join(part for part in (heading, facts, body) if part)


def _text(parent: Element, name: str) -> str:
    for each in parent:
        if _name(each) == name:
            return " ".join("".join(each.itertext()).split())
    return ""


def _name(element: Element) -> str:
    """Return the name without its namespace, in lower case."""
    return element.tag.rpartition("}")[2].lower()
