"""Replaces secrets in outgoing text, whole or as a stream."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hermes.policy.patterns import regex
from hermes.policy.redact.fast_path import is_plain
from hermes.policy.redact.known_values import KIND, SHORTEST, KnownValues
from hermes.policy.redact.spans import (
    PLACEHOLDER,
    Channel,
    Labels,
    Redacted,
    SearchText,
    SecretSpan,
    join_spans,
)

if TYPE_CHECKING:
    from hermes.policy.redact.found_values import FoundValues


class Redactor:
    """Replaces secrets in text by labels. `values` are the configured secrets, found in any
    encoding; `know` adds more. With `formats`, text that looks like a secret is replaced too, and
    later everywhere, even without its name; with `pii`, personal identifiers are replaced by
    digests."""

    def __init__(
        self, values: Iterable[str] = (), *, formats: bool = True, pii: bool = False
    ) -> None:
        self.values = KnownValues(values)
        self._formats = formats
        self._pii = pii
        self._labels = Labels()
        self._found: FoundValues | None = None

    def __repr__(self) -> str:
        return f"Redactor({self.values!r})"

    def know(self, values: Iterable[str]) -> None:
        """Add secrets."""
        self.values.add(values)

    def redact(self, text: str, channel: Channel = "log") -> Redacted:
        spans = self.spans(text)
        if not spans:
            return Redacted(text=text)
        return self.written(text, spans, channel)

    def redact_known(self, text: str, channel: Channel = "log") -> Redacted:
        """Redact only the configured values, in texts whose other secrets are already redacted."""
        found = join_spans(self._find_known(SearchText(text)))
        return self.written(text, found, channel) if found else Redacted(text=text)

    @property
    def found_count(self) -> int:
        """The number of secrets that were found by format or name so far."""
        return self._found.count if self._found is not None else 0

    def is_plain(self, text: str) -> bool:
        """Whether the text surely has no secret and no beginning of one. Cheap and loads nothing;
        False often means only that it cannot tell."""
        if self._pii or self.values.may_begin_in(text):
            return False
        if self._found is not None and self._found.may_begin_in(text):
            return False
        return not self._formats or is_plain(text)

    def written(self, text: str, spans: list[SecretSpan], channel: Channel) -> Redacted:
        """Return the text with labels instead of the spans, which must not overlap."""
        parts: list[str] = []
        at = 0
        for span in spans:
            parts += [text[at : span.start], self.label(text, span, channel)]
            at = span.end
        parts.append(text[at:])
        kinds = tuple(dict.fromkeys(span.kind.removeprefix("pii_") for span in spans))
        return Redacted(text="".join(parts), found=kinds)

    def spans(self, text: str) -> list[SecretSpan]:
        """Return the secrets, in order and without overlap."""
        found = list(self._find(text))
        if not found:
            return []
        labels = [match.span() for match in PLACEHOLDER.finditer(text)] if "[" in text else []
        return join_spans(
            span
            for span in found
            if span.kind == KIND or not any(a < span.end and span.start < b for a, b in labels)
        )

    def label(self, text: str, span: SecretSpan, channel: Channel) -> str:
        """Return the replacement of this span."""
        return self._labels.label(text[span.start : span.end], span.kind, channel)

    def _find(self, text: str) -> Iterator[SecretSpan]:
        page = SearchText(text)
        yield from self._find_known(page)
        if self._found is not None:
            yield from self._found.find(page)
        if not self._pii and (not self._formats or is_plain(text)):
            return
        # The format tables are slow to load, and most plain answers never need them.
        from hermes.policy.redact.finders import find_numbers, find_people

        if self._formats:
            yield from self._find_by_rules(page)
        yield from find_people(text) if self._pii else find_numbers(text)

    def _find_by_rules(self, page: SearchText) -> Iterator[SecretSpan]:
        """Find secrets by format or name; a value found once is found again in the same text."""
        from hermes.policy.redact.finders import find_secrets
        from hermes.policy.redact.found_values import FoundValues
        from hermes.policy.redact.hidden_signs import find_without_hidden, has_hidden

        spans = list(find_secrets(page))
        if has_hidden(page.text):
            spans += find_without_hidden(page.text, lambda text: find_secrets(SearchText(text)))
        if not spans:
            return
        yield from spans
        self._found = self._found or FoundValues()
        self._found.add(page.text, join_spans(spans))
        yield from self._found.find(page)

    def _find_known(self, page: SearchText) -> Iterator[SecretSpan]:
        if self.values and len(page.text) >= SHORTEST:
            yield from self.values.find(page)


# Emitted text that may contain the name of what follows.
CONTEXT = 256
NEAR = 64
LONGEST_HELD = 32_768
_LAST_WORD = regex(r"(?<!\S)\S+\Z")
# A name, a separator and an incomplete value.
_OPEN_FIELD = regex(
    r"(?i)[\w.-]*(?:key|token|secret|pass|pwd|credential|auth|cookie|bearer|basic|identified)[\w.-]*"
    r"[\"'`\])>\\]{0,3}\s{0,8}(?::=|=>|[=:]|is|was|by|>)?\s*(?:bearer|basic|token)?\s*[\"'`]?\S*\Z"
)
_OPEN_QUOTE = regex(
    r"(?i)[\w.-]*(?:key|token|secret|pass|pwd|credential|auth)[\w.-]*[\"'\]]{0,2}\s*[=:]\s*"
    r"([\"'`])(?:(?!\1)[^\n]){0,512}\Z"
)
_LINE_COMMAND = regex(r"(?m)^[^\n]*\s-\w+[^\n]*\Z")
# The rest of the line decides whether something before it is secret.
_UNDECIDED_LINE = regex(
    r"(?i)(?:\|[^\n]*|[^\n]*(?:\becho |\bprintf |mnemonic|phrase|app.?pass|jwt\.|bcrypt\."
    r"|getconnection|\bvariable |2fa|otp|authenticator|two.factor|mfa|setup key)[^\n]*)\Z"
)
# Substrings required by the expressions: checking these first is cheaper.
_LINE_HINTS = (
    *("|", "echo ", "printf ", "mnemonic", "phrase", "pass", "jwt", "bcrypt", "getconnection"),
    *("variable ", "2fa", "otp", "authenticator", "two", "mfa", "setup key"),
)
# After these words a key in groups may follow on the next line.
_KEY_MAY_FOLLOW = regex(r"(?i)2fa|otp|authenticator|two.factor|mfa|setup key")


class RedactedStream:
    """Redacts text that arrives in pieces. `feed` returns what can be shown already; `close`
    returns the rest."""

    def __init__(self, redactor: Redactor, channel: Channel = "log") -> None:
        self._redactor = redactor
        self._channel: Channel = channel
        self._context = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        self._held += piece
        undecided = self._undecided_line()
        if undecided is None and self._redactor.is_plain(self._context[-NEAR:] + self._held):
            return self._emit_words(_LAST_WORD.search(self._held))
        length = self._safe_length()
        return self._emit_redacted(length if undecided is None else min(length, undecided))

    def close(self) -> str:
        return self._emit_redacted(len(self._held))

    def _emit_words(self, last: re.Match[str] | None) -> str:
        """Emit ordinary words; only the last one may still become part of a secret."""
        cut = last.start() if last else len(self._held)
        ready, self._held = self._held[:cut], self._held[cut:]
        self._context = (self._context + ready)[-CONTEXT:]
        return ready

    def _emit_redacted(self, length: int) -> str:
        """Redact the held text together with its context and return the new part."""
        if length <= 0:
            return ""
        before = len(self._context)
        text = self._context + self._held
        spans = [span for span in self._redactor.spans(text) if span.end > before]
        cut = before + length
        for span in spans:
            # A secret that ends in the held text is held completely.
            if span.start < cut < span.end:
                cut = max(span.start, before)
        ready = [span for span in spans if span.end <= cut and span.start >= before]
        written = self._redactor.written(text[:cut], ready, self._channel).text[before:]
        self._context = text[max(0, cut - CONTEXT) : cut]
        self._held = text[cut:]
        return written

    def _safe_length(self) -> int:
        held = self._held
        if len(held) > LONGEST_HELD:
            return len(held)
        start = self._open_block(held)
        for expression in (_LAST_WORD, _OPEN_FIELD, _OPEN_QUOTE, _LINE_COMMAND):
            # Only the end can be incomplete; searching all of it would be slow.
            found = expression.search(held, max(0, len(held) - 2 * CONTEXT))
            if found:
                start = min(start, found.start())
        return min(start, self._beginning_of_known(held))

    def _undecided_line(self) -> int | None:
        """Return the start of a line in the held text that must be seen completely."""
        text = self._context + self._held
        if len(self._held) > LONGEST_HELD:
            return None
        line = text.rfind("\n") + 1
        before = text.rfind("\n", 0, max(0, line - 1)) + 1
        low = text[before:].casefold()
        if not any(map(low.__contains__, _LINE_HINTS)):
            return None
        if _UNDECIDED_LINE.match(text, line) is None and not _KEY_MAY_FOLLOW.search(
            text, before, line
        ):
            return None
        return max(0, line - len(self._context))

    def _open_block(self, held: str) -> int:
        at = held.rfind("-----BEGIN")
        closed = at >= 0 and "-----END" in held[at:] and held.rstrip().endswith("-----")
        return at if at >= 0 and not closed else len(held)

    def _beginning_of_known(self, held: str) -> int:
        """Return the position where the suffix could begin a known value."""
        if not self._redactor.values:
            return len(held)
        count = self._redactor.values.begins_at_end(held.encode("latin-1", "replace"))
        at = len(held)
        while count and at:
            at -= 1
            count -= held[at].isascii() and held[at].isalnum()
        return at
