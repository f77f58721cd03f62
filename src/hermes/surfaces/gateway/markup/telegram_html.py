"""Converts Markdown to the HTML of Telegram's parse mode "HTML"."""

from __future__ import annotations

import re
from html import escape, unescape

from hermes.surfaces.gateway.markup.text_layout import Span, lay_out

_TAGS: dict[Span, str] = {
    "bold": "b",
    "italic": "i",
    "strike": "s",
    "code": "code",
    "spoiler": "tg-spoiler",
}
_LINK = re.compile(r"(?:https?|tg|mailto|tel):[^\s]+", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")


class _TelegramStyle:
    def text(self, text: str) -> str:
        return escape(text, quote=False)

    def span(self, kind: Span, inner: str) -> str:
        return f"<{_TAGS[kind]}>{inner}</{_TAGS[kind]}>"

    def link(self, label: str, url: str) -> str:
        if not _LINK.fullmatch(url):
            return label if not url or label == self.text(url) else f"{label} ({self.text(url)})"
        return f'<a href="{escape(url)}">{label}</a>'

    def code_block(self, code: str, language: str) -> str:
        if not language:
            return f"<pre>{self.text(code)}</pre>"
        name = escape(language)
        return f'<pre><code class="language-{name}">{self.text(code)}</code></pre>'

    def quote(self, inner: str) -> str:
        return f"<blockquote>{inner}</blockquote>"


def to_telegram_html(markdown: str) -> str:
    return lay_out(markdown, _TelegramStyle())


def visible_text(html: str) -> str:
    """The text that a person sees, whose length Telegram limits."""
    return unescape(_TAG.sub("", html))
