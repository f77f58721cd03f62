"""The answer to a request that was not understood, with the closest alternatives."""

from __future__ import annotations

from functools import lru_cache

from hermes.providers.offline.language import AssistantLanguage, RequestKind
from hermes.providers.offline.understanding import understood_parts
from hermes.providers.offline.voice import Phrasebook, inline_code

MAX_SUGGESTED = 3
# Words that more than four kinds share say little about a request.
TELLING = 1 / 4

_MARKS = ".,;:!?\"'`()“”‘’"


def not_understood(voice: Phrasebook, text: str) -> str:
    """Never a guess: what it is, how to get a model, and what it could do instead."""
    paragraphs = [voice("cannot")]
    parts = understood_parts(voice.language, text)
    if parts:
        paragraphs.append(
            voice("cannot.part", parts=", ".join(inline_code(part) for part in parts))
        )
    near = closest(voice.language, text)
    if near and not parts:
        examples = voice.bullets([inline_code(kind.examples[0]) for kind in near])
        paragraphs.append(f"{voice('cannot.closest')}\n\n{examples}")
    paragraphs.append(voice("model.ways"))
    paragraphs.append(voice("cannot.help"))
    return "\n\n".join(paragraphs)


def closest(language: AssistantLanguage, text: str) -> tuple[RequestKind, ...]:
    """The kinds whose examples share the rarest words with the text."""
    words = _words(text) - _empty_words(language)
    uses = [(kind, words & used) for kind, used in _kind_words(language)]
    spread = {word: sum(word in used for _, used in uses) for word in words}
    scored = [(sum(1 / spread[word] for word in used), kind) for kind, used in uses]
    scored.sort(key=lambda pair: -pair[0])
    return tuple(kind for score, kind in scored[:MAX_SUGGESTED] if score >= TELLING)


@lru_cache(maxsize=2)
def _kind_words(language: AssistantLanguage) -> list[tuple[RequestKind, set[str]]]:
    """The words in title and examples of each kind."""
    return [(kind, _words(" ".join((kind.title, *kind.examples)))) for kind in language.data.kinds]


def _words(text: str) -> set[str]:
    """Names of files are not words."""
    pieces = (piece.strip(_MARKS) for piece in text.casefold().split())
    return {piece for piece in pieces if piece.isalpha()}


def _empty_words(language: AssistantLanguage) -> frozenset[str]:
    """Words that nearly every request contains."""
    data = language.data
    phrases = [*data.openers, *data.closers, *data.connectors]
    phrases += [phrase for name in data.everyday for phrase in data.words[name]]
    return language.fillers | frozenset(" ".join(phrases).split())
