"""Converts Markdown to text without markup."""

from __future__ import annotations

from hermes.surfaces.gateway.markup.text_layout import Span, lay_out


class _PlainStyle:
    def text(self, text: str) -> str:
        return text

    def span(self, kind: Span, inner: str) -> str:
        return inner

    def link(self, label: str, url: str) -> str:
        return label if not url or url in (label, f"mailto:{label}") else f"{label} ({url})"

    def code_block(self, code: str, language: str) -> str:
        return code

    def quote(self, inner: str) -> str:
        return "\n".join(f"> {line}".rstrip() for line in inner.split("\n"))


def to_plain(markdown: str) -> str:
    return lay_out(markdown, _PlainStyle())
