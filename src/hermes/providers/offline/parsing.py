"""Parses a request into steps, alone or in the context of an earlier one."""

from __future__ import annotations

from functools import lru_cache

from hermes.codec.values import Value, replace
from hermes.providers.offline.keywords import Keywords, best_keyword_match, load_keywords
from hermes.providers.offline.language import (
    AssistantLanguage,
    Phrases,
    TextToken,
    phrase_ends,
    tokenise,
)
from hermes.providers.offline.matching import (
    RequestMatch,
    best_follow_up,
    best_match,
    match_details,
)
from hermes.providers.offline.phrases import (
    drop_asides,
    near_words,
    shell_line,
    strip_polite_phrases,
)
from hermes.providers.offline.slots import RequestClause

MAX_STEPS = 8
MAX_CUTS = 12

# Patterns of these kinds accept any words as a text or a name.
FREE_TEXT_KINDS = frozenset(
    {"find_text", "find_files", "count_matches", "version", "which_program"}
)
TEXTS = ("text", "name", "program")

_CUTTING_MARKS = frozenset(",;.!?\n")


class RequestStep(Value):
    """One requested step. `references` are slots whose value was mentioned before."""

    kind: str
    slots: dict[str, str] = {}
    references: dict[str, str] = {}
    words: str = ""
    sure: float = 0.0


def step_of(match: RequestMatch, words: str) -> RequestStep:
    return RequestStep(
        kind=match.kind.name,
        slots=match.slots,
        references=match.references,
        words=words,
        sure=match.score,
    )


class RequestSplitter:
    """Splits tokens at "and", "then" and punctuation where all parts match."""

    def __init__(self, language: AssistantLanguage, source: str, tokens: list[TextToken]) -> None:
        self._language = language
        self._source = source
        self._tokens = tokens
        self._cuts = _cuts(language.connectors, tokens)
        self._steps: dict[int, tuple[RequestStep, ...] | None] = {}
        self._gists: Keywords | None = None
        self._found: dict[tuple[int, int, bool], RequestMatch | None] = {}

    def use_keywords(self, gists: Keywords) -> RequestSplitter:
        """Also matches by keywords from now on; earlier matches stay cached."""
        self._gists = gists
        self._steps.clear()
        return self

    def clauses(self) -> list[tuple[int, int]]:
        """The token ranges between two cuts."""
        starts = [0, *(end for _, end in self._cuts)]
        ends = [*(start for start, _ in self._cuts), len(self._tokens)]
        return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]

    def steps(self, start: int, depth: int = 1) -> tuple[RequestStep, ...] | None:
        if start not in self._steps:
            self._steps[start] = self._find_steps(start, depth)
        return self._steps[start]

    def _find_steps(self, start: int, depth: int) -> tuple[RequestStep, ...] | None:
        end = len(self._tokens)
        whole = self.match(start, end, alone=start == 0)
        if whole is not None and whole.kind.greedy:
            return (self._intent(whole, start, end),)
        cuts = [cut for cut in self._cuts if cut[0] > start and cut[1] < end]
        for cut_start, cut_end in cuts if depth < MAX_STEPS else ():
            found = self._split(start, cut_start, cut_end, depth)
            if found is not None and whole is not None and whole.score >= _total_score(found):
                return (self._intent(whole, start, end),)
            if found is not None:
                return found
        if whole is None or (cuts and not self._is_one_step(whole, start, cuts[0][0])):
            return None
        return (self._intent(whole, start, end),)

    def _is_one_step(self, whole: RequestMatch, start: int, end: int) -> bool:
        """False if the words before the first cut alone are another request: then the rest is a
        step that is not understood, not part of a text."""
        left = self._match_pattern(start, end, alone=False)
        return left is None or left.kind is whole.kind

    def _split(
        self, start: int, end: int, after: int, depth: int
    ) -> tuple[RequestStep, ...] | None:
        left = self.match(start, end, alone=False)
        # A semicolon after a command belongs to the command.
        if left is None or ("command" in left.slots and self._tokens[end].word == ";"):
            return None
        first = self._intent(left, start, end)
        right = self.steps(after, depth + 1)
        if right is None:
            right = self._same_for_paths(first, after)
        return None if right is None else (first, *right)

    def _same_for_paths(self, first: RequestStep, start: int) -> tuple[RequestStep, ...] | None:
        """Handles "read a.txt, b.txt and c.txt": the rest are paths for the same request."""
        if "path" not in first.slots:
            return None
        found: list[RequestStep] = []
        for begin, end in self.clauses():
            if begin < start:
                continue
            tokens = [token for token in self._tokens[begin:end] if token.kind != "mark"]
            if len(tokens) != 1 or tokens[0].kind not in ("path", "quoted"):
                return None
            slots = {**first.slots, "path": tokens[0].text}
            found.append(replace(first, slots=slots, words=tokens[0].text))
        return tuple(found[:MAX_STEPS]) or None

    def match(self, start: int, end: int, *, alone: bool) -> RequestMatch | None:
        found = self._match_pattern(start, end, alone=alone)
        if self._gists is None or (found is not None and found.kind.name not in FREE_TEXT_KINDS):
            return found
        by_keywords = self._match_keywords(self._gists, start, end)
        if by_keywords and (found is None or self._takes_known_words(self._gists, found)):
            return by_keywords
        return found

    def _takes_known_words(self, gists: Keywords, found: RequestMatch) -> bool:
        """True if what it takes for a text are known words: "which files have I touched"."""
        texts = [found.slots[name] for name in TEXTS if name in found.slots] or ["="]
        quoted = {token.text for token in self._tokens if token.kind == "quoted"}
        return all(text not in quoted and gists.knows(text) for text in texts)

    def _match_keywords(self, gists: Keywords, start: int, end: int) -> RequestMatch | None:
        """Tries the clause with and without its polite phrases."""
        whole = end - start == len(self._tokens)
        spans = dict.fromkeys(
            [(start, end), strip_polite_phrases(self._language, self._tokens, start, end)]
        )
        found = [best_keyword_match(self._clause(*span), gists, whole=whole) for span in spans]
        return max((each for each in found if each), key=_score, default=None)

    def _match_pattern(self, start: int, end: int, *, alone: bool) -> RequestMatch | None:
        key = (start, end, alone)
        if key not in self._found:
            self._found[key] = self._find(start, end, alone=alone)
        return self._found[key]

    def _find(self, start: int, end: int, *, alone: bool) -> RequestMatch | None:
        """Tries without polite phrases, and with them if they are all there is."""
        inner = strip_polite_phrases(self._language, self._tokens, start, end)
        found = best_match(self._clause(*inner), alone=alone)
        # "And a.txt" refers to the request before; "a.txt" alone does not.
        if inner == (start, end) or (found is not None and not found.kind.alone):
            return found
        polite = best_match(self._clause(start, end), alone=alone)
        return max((each for each in (polite, found) if each), key=_score, default=None)

    def _clause(self, start: int, end: int) -> RequestClause:
        return RequestClause(self._language, self._source, self._tokens[start:end])

    def _intent(self, match: RequestMatch, start: int, end: int) -> RequestStep:
        return step_of(match, self._clause(start, end).text)


def _total_score(steps: tuple[RequestStep, ...]) -> float:
    return sum(step.sure for step in steps)


def _score(match: RequestMatch) -> float:
    return match.score


def _cuts(connectors: Phrases, tokens: list[TextToken]) -> list[tuple[int, int]]:
    """The ranges of connecting words and punctuation; adjacent ones are merged. A text with very
    many of them is prose and has no steps."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(tokens) and len(found) <= MAX_CUTS:
        ends = [end for end, _, slips in phrase_ends(connectors, tokens, at) if not slips]
        if tokens[at].kind == "mark" and tokens[at].word in _CUTTING_MARKS:
            ends = [at + 1]
        if not ends:
            at += 1
            continue
        if found and found[-1][1] == at:
            found[-1] = (found[-1][0], ends[0])
        else:
            found.append((at, ends[0]))
        at = ends[0]
    return found if len(found) <= MAX_CUTS else []


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
