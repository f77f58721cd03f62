"""Reads a fetched page: HTML, feeds, PDF and office files become Markdown, other text stays."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from hermes.core.errors import ToolError
from hermes.core.ports import FetchResponse
from hermes.web.html_tree import Element, parse_html
from hermes.web.main_text import find_main
from hermes.web.markdown import to_markdown
from hermes.web.provider import WebPage

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_LOOKED_AT = 2_048
_TEXTS = ("text/", "json", "xml", "javascript", "yaml", "toml")
_OFFICE = {
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
}
_UNNAMED = ("", "application/octet-stream", "binary/octet-stream", "application/zip")
# Longer pages are cut: reading them would take too long.
MOST_CHARS = 2_000_000


def read_page(response: FetchResponse) -> WebPage:
    """Raise ToolError for an error response, and for content without text."""
    if response.status >= 400:
        raise ToolError(f"the server answered with status {response.status}.")
    kind = response.headers.get("content-type", "").lower()
    media_type = kind.partition(";")[0].strip()
    if media_type == "application/pdf" or response.body.startswith(b"%PDF-"):
        from hermes.web.pdf import pdf_text

        return WebPage(url=response.url, content=pdf_text(response.body))
    if suffix := _office_suffix(response.url, media_type):
        from hermes.tools.files.textfile import extract_text as extract_document

        return WebPage(url=response.url, content=extract_document(f"page{suffix}", response.body))
    if kind and not any(part in kind for part in _TEXTS) and media_type not in _UNNAMED:
        raise ToolError(f"it is not text ({media_type}).")
    if b"\0" in response.body[:_LOOKED_AT]:
        raise ToolError("it is not text.")
    return _read_text(response, kind)


def _read_text(response: FetchResponse, kind: str) -> WebPage:
    text = decode_body(response.body, kind)[:MOST_CHARS]
    looks_like_html = re.match(r"\s*(?:<!doctype html|<html)", text, re.IGNORECASE)
    if "html" in kind or looks_like_html:
        return read_html(text, response.url)
    if "xml" in kind or text.lstrip().startswith("<?xml"):
        from hermes.web.feeds import feed_markdown, is_feed

        if is_feed(text):
            title, content = feed_markdown(text)
            return WebPage(url=response.url, title=title, content=content)
    return WebPage(url=response.url, content=text.strip())


def read_html(html: str, url: str = "") -> WebPage:
    root = parse_html(html)
    title = _title(root)
    base = next((each for each in root.walk() if each.tag == "base"), None)
    base_url = base.attributes.get("href", "") if base is not None else ""
    return WebPage(url=url, title=title, content=to_markdown(find_main(root), base_url or url))


def page_text(page: WebPage) -> str:
    """Return the page as one text that begins with its title."""
    known = not page.title or page.title in page.content[: len(page.title) + 200]
    return page.content if known else f"# {page.title}\n\n{page.content}".strip()


def decode_body(body: bytes, content_type: str) -> str:
    """Decode as the header says, else as the page itself says, else as UTF-8."""
    beginning = body[:_LOOKED_AT].decode("latin-1")
    named = _CHARSET.search(content_type) or _CHARSET.search(beginning)
    try:
        return body.decode(named[1] if named else "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def _title(root: Element) -> str:
    meta = ""
    for each in root.walk():
        if each.tag == "meta" and each.attributes.get("property", "").lower() == "og:title":
            meta = each.attributes.get("content", "")
        elif each.tag == "title":
            return " ".join((meta or each.text()).split())
    return " ".join(meta.split())


def _office_suffix(url: str, media_type: str) -> str:
    if media_type in _OFFICE:
        return _OFFICE[media_type]
    path = urlsplit(url).path.lower()
    if media_type in _UNNAMED and path.endswith(tuple(_OFFICE.values())):
        return path[-5:]
    return ""
