"""The one redactor: every text that leaves passes it, and comes out without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes.policy.redact.fields import in_fields
from hermes.policy.redact.formats import in_formats
from hermes.policy.redact.page import Page
from hermes.policy.redact.people import identities, phones
from hermes.policy.redact.shapes import SHAPES
from hermes.policy.redact.spans import PLACEHOLDER, Channel, Labels, Redacted, Span, joined
from hermes.policy.redact.values import KIND, KnownValues


class Redactor:
    """`values` are the secrets that are configured; they are found in any encoding. `pii` also
    replaces what identifies people by digests."""

    def __init__(self, values: Iterable[str] = (), *, pii: bool = False) -> None:
        self.values = KnownValues(values)
        self._pii = pii
        self._labels = Labels()

    def __repr__(self) -> str:
        return f"Redactor({self.values!r})"

    def redact(self, text: str, channel: Channel = "log") -> Redacted:
        spans = self.spans(text)
        if not spans:
            return Redacted(text=text)
        return self.written(text, spans, channel)

    def written(self, text: str, spans: list[Span], channel: Channel) -> Redacted:
        """The text with labels in place of the spans, which do not overlap."""
        parts: list[str] = []
        at = 0
        for span in spans:
            parts += [text[at : span.start], self._label(text, span, channel)]
            at = span.end
        parts.append(text[at:])
        kinds = tuple(dict.fromkeys(span.kind.removeprefix("pii_") for span in spans))
        return Redacted(text="".join(parts), found=kinds)

    def spans(self, text: str) -> list[Span]:
        """Where the secrets are, in order and without overlap."""
        found = list(self._found(text))
        if not found:
            return []
        labels = [match.span() for match in PLACEHOLDER.finditer(text)] if "[" in text else []
        return joined(
            span
            for span in found
            if span.kind == KIND or not any(a < span.end and span.start < b for a, b in labels)
        )

    def _label(self, text: str, span: Span, channel: Channel) -> str:
        return self._labels.label(text[span.start : span.end], span.kind, channel)

    def _found(self, text: str) -> Iterator[Span]:
        page = Page(text)
        if self.values:
            yield from self.values.find(page)
        yield from in_formats(page)
        yield from in_fields(page)
        for shape in SHAPES:
            yield from shape(page)
        yield from identities(text) if self._pii else phones(text)


def holds_placeholder(text: str) -> bool:
    """Whether a text holds a label of ours. Such a text must not be written where the secret
    stood: the secret would be lost."""
    return PLACEHOLDER.search(text) is not None
