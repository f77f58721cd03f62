"""The one redactor: every text that leaves passes it, and comes out without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes.policy.redact.glance import is_plain
from hermes.policy.redact.page import Page
from hermes.policy.redact.spans import PLACEHOLDER, Channel, Labels, Redacted, Span, joined
from hermes.policy.redact.values import KIND, SHORTEST, KnownValues


class Redactor:
    """`values` are the secrets that are configured; they are found in any encoding, and whoever
    gets to know more of them tells by `know`. `formats` also finds what only looks like a secret.
    `pii` also replaces what identifies people by digests."""

    def __init__(
        self, values: Iterable[str] = (), *, formats: bool = True, pii: bool = False
    ) -> None:
        self.values = KnownValues(values)
        self._formats = formats
        self._pii = pii
        self._labels = Labels()

    def __repr__(self) -> str:
        return f"Redactor({self.values!r})"

    def know(self, values: Iterable[str]) -> None:
        """From now on these are secret, too."""
        self.values.add(values)

    def redact(self, text: str, channel: Channel = "log") -> Redacted:
        spans = self.spans(text)
        if not spans:
            return Redacted(text=text)
        return self.written(text, spans, channel)

    def redact_known(self, text: str, channel: Channel = "log") -> Redacted:
        """Only the configured values: for texts whose other secrets are masked already."""
        found = joined(self._known(Page(text)))
        return self.written(text, found, channel) if found else Redacted(text=text)

    def is_plain(self, text: str) -> bool:
        """Surely without a secret, and without the beginning of one. Costs next to nothing and
        loads nothing, but is often wrong with No."""
        if self._pii or self.values.may_begin_in(text):
            return False
        return not self._formats or is_plain(text)

    def written(self, text: str, spans: list[Span], channel: Channel) -> Redacted:
        """The text with labels in place of the spans, which do not overlap."""
        parts: list[str] = []
        at = 0
        for span in spans:
            parts += [text[at : span.start], self.label(text, span, channel)]
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

    def label(self, text: str, span: Span, channel: Channel) -> str:
        """What stands in place of this span."""
        return self._labels.label(text[span.start : span.end], span.kind, channel)

    def _found(self, text: str) -> Iterator[Span]:
        page = Page(text)
        yield from self._known(page)
        if not self._pii and (not self._formats or is_plain(text)):
            return
        # The tables of formats take long to load, and most plain answers never need them.
        from hermes.policy.redact.finders import looking_secret, numbers, people

        if self._formats:
            yield from looking_secret(page)
        yield from people(text) if self._pii else numbers(text)

    def _known(self, page: Page) -> Iterator[Span]:
        if self.values and len(page.text) >= SHORTEST:
            yield from self.values.find(page)
