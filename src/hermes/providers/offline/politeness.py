"""Finds the request inside polite phrases."""

from __future__ import annotations

from hermes.providers.offline.language import AssistantLanguage, phrase_ends
from hermes.providers.offline.tokens import TextToken


def strip_polite_phrases(
    language: AssistantLanguage, tokens: list[TextToken], start: int, end: int
) -> tuple[int, int]:
    """The start and end of the request without "could you please" and "thanks"."""
    start = _past_openers(language, tokens, start, end)
    return start, _before_closers(language, tokens, start, end)


def drop_asides(language: AssistantLanguage, tokens: list[TextToken]) -> list[TextToken]:
    """Removes phrases that may be anywhere: "make a folder for me called x"."""
    found: list[TextToken] = []
    at = 0
    while at < len(tokens):
        ends = [end for end, _, slips in phrase_ends(language.asides, tokens, at) if not slips]
        # A phrase that is the whole text stays.
        if not ends or ends[0] - at == len(tokens):
            found.append(tokens[at])
        at = ends[0] if ends else at + 1
    return found


def _past_openers(
    language: AssistantLanguage, tokens: list[TextToken], start: int, end: int
) -> int:
    """Skips opening phrases and the punctuation between them."""
    while start < end:
        ends = [to for to, _, _ in phrase_ends(language.openers, tokens, start) if to <= end]
        if ends:
            start = ends[0]
        elif tokens[start].kind == "mark":
            start += 1
        else:
            break
    return start


def _before_closers(
    language: AssistantLanguage, tokens: list[TextToken], start: int, end: int
) -> int:
    """Drops closing phrases. Punctuation stays unless a closing phrase follows it."""
    backwards = tokens[start:end][::-1]
    at = kept = 0
    while at < len(backwards):
        ends = [to for to, _, _ in phrase_ends(language.closers, backwards, at)]
        if ends:
            at = kept = ends[0]
        elif backwards[at].kind == "mark":
            at += 1
        else:
            break
    while kept and kept < len(backwards) and backwards[kept].kind == "mark":
        kept += 1
    return end - kept
