"""Parses a request, alone or in the context of an earlier one."""

from __future__ import annotations

from functools import lru_cache

from hermes.codec.values import replace
from hermes.providers.offline.cutting import (
    MAX_STEPS,
    TAKING_ANY_WORDS,
    Cutter,
    Intent,
    intent_of,
)
from hermes.providers.offline.gists import load_gists
from hermes.providers.offline.language import Language
from hermes.providers.offline.matching import best_follow_up, closer_details
from hermes.providers.offline.politeness import bare, without_asides
from hermes.providers.offline.shell_lines import shell_line
from hermes.providers.offline.slots import Clause
from hermes.providers.offline.spelling import near_words
from hermes.providers.offline.tokens import Token, tokenise

MAX_CORRECTED = 12


def understand(language: Language, text: str) -> tuple[Intent, ...]:
    """The steps of a request in order; empty if any part is not understood. A known pattern wins;
    otherwise keywords decide."""
    tokens = _tokens(language, text)
    if not tokens:
        return ()
    cutter = Cutter(language, text, tokens)
    worded = cutter.steps(0) or ()
    command = shell_line(text, language.sentence_words)
    if command is not None and _is_echo_command(text, worded):
        return (_run(command),)
    if worded and not (len(worded) == 1 and worded[0].kind in TAKING_ANY_WORDS):
        return worded
    # Keywords come first: "git log for a.txt" starts like a command but is a sentence.
    steps = _by_keywords(language, cutter) or worded
    return steps if steps or command is None else (_run(command),)


def follow_up(language: Language, text: str) -> Intent | None:
    """What a text means after a request of the same group: "add bread" after "show my tasks"."""
    clause = _bare_clause(language, text)
    if not clause.tokens or any(token.kind in ("path", "glob") for token in clause.tokens):
        return None
    found = best_follow_up(clause)
    return None if found is None else intent_of(found, clause.text)


def with_details(language: Language, text: str, earlier: Intent) -> Intent | None:
    """The earlier step again, with the details in the text."""
    clause = _bare_clause(language, text)
    kind = language.kinds.get(earlier.kind)
    found = closer_details(clause, kind) if kind and clause.tokens else None
    if found is None:
        return None
    kept = {name: earlier.slots[name] for name in earlier.slots if name not in found.references}
    pointed = {n: r for n, r in earlier.references.items() if n not in found.slots}
    return replace(
        earlier,
        slots={**kept, **found.slots},
        references={**pointed, **found.references},
        words=text,
    )


def understood_parts(language: Language, text: str) -> tuple[str, ...]:
    """The clauses that would be understood alone, of a request that is not understood as a
    whole."""
    tokens = _tokens(language, text)
    cutter = Cutter(language, text, tokens)
    return tuple(
        Clause(language, text, tokens[start:end]).text
        for start, end in cutter.clauses()[:MAX_STEPS]
        if cutter.match(start, end, alone=False) is not None
    )


def _by_keywords(language: Language, cutter: Cutter) -> tuple[Intent, ...]:
    gists = load_gists(language.data.code)
    return (gists and cutter.telling(gists).steps(0)) or ()


def _run(command: str) -> Intent:
    return Intent(kind="run", slots={"command": command}, words=command, sure=1.0)


def _is_echo_command(text: str, worded: tuple[Intent, ...]) -> bool:
    """True for "echo hi > a.txt", although "echo hi" is a request to say something."""
    return any(step.kind == "echo" for step in worded) and text.lstrip().startswith("echo ")


def _bare_clause(language: Language, text: str) -> Clause:
    """A whole text as one clause, without polite phrases."""
    tokens = _tokens(language, text)
    start, end = bare(language, tokens, 0, len(tokens))
    return Clause(language, text, tokens[start:end])


def _tokens(language: Language, text: str) -> list[Token]:
    tokens = _with_corrections(language, tokenise(text, language.data.expand))
    return without_asides(language, tokens)


def _with_corrections(language: Language, tokens: list[Token]) -> list[Token]:
    """Adds the words that a misspelt word may stand for."""
    found: list[Token] = []
    left = MAX_CORRECTED
    for token in tokens:
        if left and token.kind == "word" and token.word not in language.known:
            left -= 1
            near = _near(language, token.word)
            found.append(replace(token, near=near) if near else token)
        else:
            found.append(token)
    return found


# Cached: a request is matched several times with the same words.
@lru_cache(maxsize=256)
def _near(language: Language, word: str) -> tuple[str, ...]:
    candidates = language.vocabulary.get(word[0], [])
    if len(word) > 1 and word[1] != word[0]:
        candidates = candidates + language.vocabulary.get(word[1], [])
    return near_words(word, candidates)
