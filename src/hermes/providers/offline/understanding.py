"""Understands a request: cuts it into steps and finds the kind of each."""

from __future__ import annotations

from hermes.codec.values import Value, replace
from hermes.providers.offline.language import Language, Phrases, phrase_ends
from hermes.providers.offline.matching import Match, best_match
from hermes.providers.offline.shell_lines import shell_line
from hermes.providers.offline.slots import Clause
from hermes.providers.offline.spelling import near_words
from hermes.providers.offline.tokens import Token, tokenise

MAX_STEPS = 8
MAX_CUTS = 12
MAX_CORRECTED = 12

_CUTTING_MARKS = frozenset(",;.!?\n")


class Intent(Value):
    """One step that was asked for. `references` are slots whose value was said before."""

    kind: str
    slots: dict[str, str] = {}
    references: dict[str, str] = {}
    words: str = ""
    sure: float = 0.0


def understand(language: Language, text: str) -> tuple[Intent, ...]:
    """The steps of a request in their order; nothing when any part of it is not understood."""
    tokens = _corrected(language, tokenise(text, language.data.expand))
    if not tokens:
        return ()
    found = _Cutter(language, text, tokens).steps(0)
    if found is None:
        command = shell_line(text)
        if command is None:
            return ()
        return (Intent(kind="run", slots={"command": command}, words=command, sure=1.0),)
    return found


def understood_parts(language: Language, text: str) -> tuple[str, ...]:
    """The clauses that would be understood by themselves, of a request that as a whole is not."""
    tokens = _corrected(language, tokenise(text, language.data.expand))
    cutter = _Cutter(language, text, tokens)
    return tuple(
        Clause(language, text, tokens[start:end]).text
        for start, end in cutter.clauses()[:MAX_STEPS]
        if cutter.match(start, end, alone=False) is not None
    )


def _corrected(language: Language, tokens: list[Token]) -> list[Token]:
    """With the words that a misspelt one may be."""
    found: list[Token] = []
    left = MAX_CORRECTED
    for token in tokens:
        if left and token.kind == "word" and token.word not in language.known:
            left -= 1
            start = token.word[0]
            candidates = language.vocabulary.get(start, [])
            if len(token.word) > 1 and token.word[1] != start:
                candidates = candidates + language.vocabulary.get(token.word[1], [])
            near = near_words(token.word, candidates)
            found.append(replace(token, near=near) if near else token)
        else:
            found.append(token)
    return found


class _Cutter:
    """Cuts tokens at "and", "then" and punctuation wherever all parts make sense."""

    def __init__(self, language: Language, source: str, tokens: list[Token]) -> None:
        self._language = language
        self._source = source
        self._tokens = tokens
        self._cuts = _cuts(language.connectors, tokens)
        self._steps: dict[int, tuple[Intent, ...] | None] = {}

    def clauses(self) -> list[tuple[int, int]]:
        """All that stands between two cuts."""
        starts = [0, *(end for _, end in self._cuts)]
        ends = [*(start for start, _ in self._cuts), len(self._tokens)]
        return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]

    def steps(self, start: int, depth: int = 1) -> tuple[Intent, ...] | None:
        if start not in self._steps:
            self._steps[start] = self._find_steps(start, depth)
        return self._steps[start]

    def _find_steps(self, start: int, depth: int) -> tuple[Intent, ...] | None:
        end = len(self._tokens)
        whole = self.match(start, end, alone=start == 0)
        if whole is not None and whole.kind.greedy:
            return (self._intent(whole, start, end),)
        cuts = [cut for cut in self._cuts if cut[0] > start and cut[1] < end]
        for cut_start, cut_end in cuts if depth < MAX_STEPS else ():
            found = self._split(start, cut_start, cut_end, depth)
            if found is not None:
                return found
        if whole is None or (cuts and not self._holds_together(whole, start, cuts[0][0])):
            return None
        return (self._intent(whole, start, end),)

    def _holds_together(self, whole: Match, start: int, end: int) -> bool:
        """Not when the words before the first cut would by themselves be another request: then
        the rest is a step that is not understood, and no part of a text."""
        left = self.match(start, end, alone=False)
        return left is None or left.kind is whole.kind

    def _split(self, start: int, end: int, after: int, depth: int) -> tuple[Intent, ...] | None:
        left = self.match(start, end, alone=False)
        # A semicolon after a command belongs to the command.
        if left is None or ("command" in left.slots and self._tokens[end].word == ";"):
            return None
        first = self._intent(left, start, end)
        right = self.steps(after, depth + 1)
        if right is None:
            right = self._same_for_others(first, after)
        return None if right is None else (first, *right)

    def _same_for_others(self, first: Intent, start: int) -> tuple[Intent, ...] | None:
        """ "read a.txt, b.txt and c.txt": what follows are paths for the same request."""
        if "path" not in first.slots:
            return None
        found: list[Intent] = []
        for begin, end in self.clauses():
            if begin < start:
                continue
            tokens = [token for token in self._tokens[begin:end] if token.kind != "mark"]
            if len(tokens) != 1 or tokens[0].kind not in ("path", "quoted"):
                return None
            slots = {**first.slots, "path": tokens[0].text}
            found.append(replace(first, slots=slots, words=tokens[0].text))
        return tuple(found[:MAX_STEPS]) or None

    def match(self, start: int, end: int, *, alone: bool) -> Match | None:
        """Without the politeness around it, or, when that is all there is, with it."""
        bare_start = _past(self._language.openers, self._tokens, start, end)
        bare_end = _before(self._language.closers, self._tokens, bare_start, end)
        if bare_start < bare_end:
            clause = Clause(self._language, self._source, self._tokens[bare_start:bare_end])
            found = best_match(clause, alone=alone)
            if found is not None or (bare_start, bare_end) == (start, end):
                return found
        return best_match(
            Clause(self._language, self._source, self._tokens[start:end]), alone=alone
        )

    def _intent(self, match: Match, start: int, end: int) -> Intent:
        return Intent(
            kind=match.kind.name,
            slots=match.slots,
            references=match.references,
            words=Clause(self._language, self._source, self._tokens[start:end]).text,
            sure=match.score,
        )


def _cuts(connectors: Phrases, tokens: list[Token]) -> list[tuple[int, int]]:
    """Where connecting words and marks begin and end; several in a row are one. A text with
    very many of them is prose: no steps."""
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


def _past(openers: Phrases, tokens: list[Token], start: int, end: int) -> int:
    """After all opening phrases and the marks between them."""
    while start < end:
        ends = [to for to, _, _ in phrase_ends(openers, tokens, start) if to <= end]
        if ends:
            start = ends[0]
        elif tokens[start].kind == "mark":
            start += 1
        else:
            break
    return start


def _before(closers: Phrases, tokens: list[Token], start: int, end: int) -> int:
    """Before all closing phrases. Marks stay unless a closing phrase follows them."""
    backwards = tokens[start:end][::-1]
    at = kept = 0
    while at < len(backwards):
        ends = [to for to, _, _ in phrase_ends(closers, backwards, at)]
        if ends:
            at = kept = ends[0]
        elif backwards[at].kind == "mark":
            at += 1
        else:
            break
    while kept and kept < len(backwards) and backwards[kept].kind == "mark":
        kept += 1
    return end - kept
