"""Extracts the readable text of a fetched page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hermes.core.errors import ToolError
from hermes.core.ports import FetchResponse

_SILENT = frozenset(
    "script style noscript template svg iframe object head nav footer aside form button".split()
)
_BLOCKS = frozenset(
    "p div section article main header h1 h2 h3 h4 h5 h6 ul ol li table tr blockquote pre br hr dl"
    " dt dd figure figcaption details summary".split()
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_LOOKED_AT = 2_048
_TEXTS = ("text/", "json", "xml", "javascript", "yaml", "toml")


def extract_text(page: FetchResponse) -> str:
    """Raise ToolError for an error response, and for content that is not text."""
    if page.status >= 400:
        raise ToolError(f"the server answered with status {page.status}.")
    kind = page.headers.get("content-type", "text/plain").lower()
    if not any(part in kind for part in _TEXTS):
        raise ToolError(f"it is not text ({kind.partition(';')[0]}).")
    text = decode_body(page.body, kind)
    return extract_words(text) if "html" in kind else text.strip()


def decode_body(body: bytes, content_type: str) -> str:
    """Decode as the header says, else as the page itself says, else as UTF-8."""
    beginning = body[:_LOOKED_AT].decode("latin-1")
    named = _CHARSET.search(content_type) or _CHARSET.search(beginning)
    try:
        return body.decode(named[1] if named else "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def extract_words(html: str) -> str:
    """Return the readable text; headings, lists and code keep their shape."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._silent: list[str] = []
        self._title: list[str] = []
        self._in_title = False
        self._listing = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        if tag in _SILENT:
            self._silent.append(tag)
        if self._silent:
            return
        if tag in _BLOCKS:
            self._parts.append("\n")
        self._listing += tag == "pre"
        if tag in _HEADINGS:
            self._parts.append(f"\n{_HEADINGS[tag]}")
        elif tag == "li":
            self._parts.append("- ")
        elif tag in ("td", "th"):
            self._parts.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if tag in self._silent:
            # Unclosed elements inside end with it.
            del self._silent[len(self._silent) - 1 - self._silent[::-1].index(tag) :]
            return
        if not self._silent and tag in _BLOCKS:
            self._parts.append("\n")
            self._listing = max(0, self._listing - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif not self._silent:
            self._parts.append(data if self._listing else re.sub(r"\s+", " ", data))

    def text(self) -> str:
        lines = [line.rstrip() for line in "".join(self._parts).split("\n")]
        # A single space at the beginning of a line belongs to the line before it.
        text = "\n".join(re.sub(r"^ (?! )", "", line) for line in lines)
        body = re.sub(r"\n{3,}", "\n\n", text).strip()
        title = " ".join("".join(self._title).split())
        known = not title or body.startswith((f"# {title}", title))
        return body if known else f"{title}\n\n{body}".strip()
