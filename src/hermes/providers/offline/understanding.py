"""Parses a request, alone or in the context of an earlier one."""

from __future__ import annotations

from functools import lru_cache

from hermes.codec.values import replace
from hermes.providers.offline.cutting import (
    FREE_TEXT_KINDS,
    MAX_STEPS,
    RequestSplitter,
    RequestStep,
    step_of,
)
from hermes.providers.offline.gists import load_keywords
from hermes.providers.offline.language import AssistantLanguage
from hermes.providers.offline.matching import best_follow_up, match_details
from hermes.providers.offline.politeness import drop_asides, strip_polite_phrases
from hermes.providers.offline.shell_lines import shell_line
from hermes.providers.offline.slots import RequestClause
from hermes.providers.offline.spelling import near_words
from hermes.providers.offline.tokens import TextToken, tokenise

MAX_CORRECTED = 12


def parse_request(language: AssistantLanguage, text: str) -> tuple[RequestStep, ...]:
    """The steps of a request in order; empty if any part is not understood. A known pattern wins;
    otherwise keywords decide."""
    tokens = _tokens(language, text)
    if not tokens:
        return ()
    cutter = RequestSplitter(language, text, tokens)
    worded = cutter.steps(0) or ()
    command = shell_line(text, language.sentence_words)
    if command is not None and _is_echo_command(text, worded):
        return (_run(command),)
    if worded and not (len(worded) == 1 and worded[0].kind in FREE_TEXT_KINDS):
        return worded
    # Keywords come first: "git log for a.txt" starts like a command but is a sentence.
    steps = _by_keywords(language, cutter) or worded
    return steps if steps or command is None else (_run(command),)


def follow_up(language: AssistantLanguage, text: str) -> RequestStep | None:
    """What a text means after a request of the same group: "add bread" after "show my tasks"."""
    clause = _bare_clause(language, text)
    if not clause.tokens or any(token.kind in ("path", "glob") for token in clause.tokens):
        return None
    found = best_follow_up(clause)
    return None if found is None else step_of(found, clause.text)


def with_details(
    language: AssistantLanguage, text: str, earlier: RequestStep
) -> RequestStep | None:
    """The earlier step again, with the details in the text."""
    clause = _bare_clause(language, text)
    kind = language.kinds.get(earlier.kind)
    found = match_details(clause, kind) if kind and clause.tokens else None
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


def understood_parts(language: AssistantLanguage, text: str) -> tuple[str, ...]:
    """The clauses that would be understood alone, of a request that is not understood as a
    whole."""
    tokens = _tokens(language, text)
    cutter = RequestSplitter(language, text, tokens)
    return tuple(
        RequestClause(language, text, tokens[start:end]).text
        for start, end in cutter.clauses()[:MAX_STEPS]
        if cutter.match(start, end, alone=False) is not None
    )


def _by_keywords(language: AssistantLanguage, cutter: RequestSplitter) -> tuple[RequestStep, ...]:
    gists = load_keywords(language.data.code)
    return (gists and cutter.use_keywords(gists).steps(0)) or ()


def _run(command: str) -> RequestStep:
    return RequestStep(kind="run", slots={"command": command}, words=command, sure=1.0)


def _is_echo_command(text: str, worded: tuple[RequestStep, ...]) -> bool:
    """True for "echo hi > a.txt", although "echo hi" is a request to say something."""
    return any(step.kind == "echo" for step in worded) and text.lstrip().startswith("echo ")


def _bare_clause(language: AssistantLanguage, text: str) -> RequestClause:
    """A whole text as one clause, without polite phrases."""
    tokens = _tokens(language, text)
    start, end = strip_polite_phrases(language, tokens, 0, len(tokens))
    return RequestClause(language, text, tokens[start:end])


def _tokens(language: AssistantLanguage, text: str) -> list[TextToken]:
    tokens = _with_corrections(language, tokenise(text, language.data.expand))
    return drop_asides(language, tokens)


def _with_corrections(language: AssistantLanguage, tokens: list[TextToken]) -> list[TextToken]:
    """Adds the words that a misspelt word may stand for."""
    found: list[TextToken] = []
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
def _near(language: AssistantLanguage, word: str) -> tuple[str, ...]:
    candidates = language.vocabulary.get(word[0], [])
    if len(word) > 1 and word[1] != word[0]:
        candidates = candidates + language.vocabulary.get(word[1], [])
    return near_words(word, candidates)
