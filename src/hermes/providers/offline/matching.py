"""Finds the kind of request whose pattern matches a clause best."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import Value
from hermes.providers.offline.language import IndexedPattern, RequestKind, may_match, phrase_ends
from hermes.providers.offline.slots import (
    PatternElement,
    RequestClause,
    RequestPattern,
    parse_pattern,
)

WORD_GAIN = 2.0
SLIP_LOSS = 1.0
SKIP_LOSS = 0.02
MAX_SKIPPED = 8
# The group of kinds that change files, and the group that runs commands.
CHANGING = "change"
RUNNING = "run"


class RequestMatch(Value):
    """A clause matched as a request of one kind. `references` are slots that refer to something
    mentioned before (see slots.Reading)."""

    kind: RequestKind
    slots: dict[str, str]
    references: dict[str, str]
    score: float
    slips: int = 0


class MatchState(Value):
    """The progress of a pattern: the next token and what was read so far."""

    at: int
    score: float = 0.0
    slips: int = 0
    slots: tuple[tuple[str, str], ...] = ()
    references: tuple[tuple[str, str], ...] = ()


def best_match(clause: RequestClause, *, alone: bool) -> RequestMatch | None:
    """The best match; `alone` kinds count only if the clause is the whole request."""
    if not clause.tokens:
        return None
    walker = PatternMatcher(clause)
    best: RequestMatch | None = None
    for _, kind, text in sorted(walker.candidates(), key=lambda indexed: indexed[0]):
        if kind.alone and not alone:
            continue
        found = walker.best_of(kind, text)
        if found is not None and (best is None or found.score > best.score):
            best = found
    return best


def best_follow_up(clause: RequestClause) -> RequestMatch | None:
    """What the clause means only after a request of the same group."""
    walker = PatternMatcher(clause)
    found = [
        match
        for kind in clause.language.data.kinds
        for text in kind.follows
        if (match := walker.best_of(kind, text)) is not None
    ]
    return max(found, key=lambda match: match.score, default=None)


def match_details(clause: RequestClause, earlier: RequestKind) -> RequestMatch | None:
    """The clause as nothing but details of a request of that kind: "sorted by size"."""
    found = PatternMatcher(clause).best_of(earlier, "")
    return found if found is not None and found.score > 0 else None


class PatternMatcher:
    """Matches patterns against one clause."""

    def __init__(self, clause: RequestClause) -> None:
        self.clause = clause
        self.tokens = clause.tokens
        self._places = frozenset(clause.language.data.places.values())
        self._careful = False
        self._wary = False
        self._phrases = {
            at: phrase_ends(clause.language.classes, self.tokens, at)
            for at in range(len(self.tokens))
        }

    def candidates(self) -> Iterator[IndexedPattern]:
        """The patterns whose required words all occur in the clause."""
        present = {name for ends in self._phrases.values() for _, name, _ in ends}
        for token in self.tokens:
            present.add(token.word)
            present.update(token.near)
        found: dict[int, IndexedPattern] = {}
        for form in present | {""}:
            for indexed in self.clause.language.patterns.get(form, ()):
                if may_match(indexed[2], present):
                    found[indexed[0]] = indexed
        yield from found.values()

    def best_of(self, kind: RequestKind, text: str) -> RequestMatch | None:
        self._careful = kind.group == CHANGING
        self._wary = kind.exact
        extras = tuple(parse_pattern(extra) for extra in kind.extras)
        best: MatchState | None = None
        for state in self._whole(parse_pattern(text), extras):
            if (best is None or state.score > best.score) and not self._is_rejected(kind, state):
                best = state
        if best is None:
            return None
        return RequestMatch(
            kind=kind,
            slots=dict(best.slots),
            references=dict(best.references),
            score=best.score,
            slips=best.slips,
        )

    def _is_rejected(self, kind: RequestKind, state: MatchState) -> bool:
        if state.slips and kind.exact:
            return True
        if kind.fresh and any(name == "path" for name, _ in state.references):
            return True
        if kind.group not in (CHANGING, RUNNING):
            return False
        slots = dict(state.slots)
        # "Delete this project" is never meant like that. Commands may run in this folder.
        if "command" not in slots and slots.get("path") in self._places:
            return True
        return "text" in slots and self.clause.must_be_composed(slots["text"])

    def _whole(
        self, pattern: RequestPattern, extras: tuple[RequestPattern, ...]
    ) -> Iterator[MatchState]:
        for state in self._pattern(pattern, MatchState(at=0)):
            yield from self._cover_rest(state, extras)
        for number, extra in enumerate(extras):
            others = extras[:number] + extras[number + 1 :]
            for before in self._pattern(extra, MatchState(at=0)):
                for state in self._pattern(pattern, before):
                    yield from self._cover_rest(state, others)

    def _cover_rest(
        self, state: MatchState, extras: tuple[RequestPattern, ...]
    ) -> Iterator[MatchState]:
        """The states in which extras and fillers cover the rest."""
        at, skipped = state.at, 0
        while at < len(self.tokens) and self.clause.skippable(at):
            at, skipped = at + 1, skipped + 1
        if at == len(self.tokens):
            yield _advance(state, at, -SKIP_LOSS * skipped)
        if state.at == len(self.tokens):
            return
        for number, extra in enumerate(extras):
            for after in self._pattern(extra, state):
                yield from self._cover_rest(after, extras[:number] + extras[number + 1 :])

    def _pattern(self, pattern: RequestPattern, state: MatchState) -> Iterator[MatchState]:
        for end in self._elements(pattern.elements, 0, state):
            yield _apply_constants(end, pattern.sets)

    def _elements(
        self, elements: tuple[PatternElement, ...], index: int, state: MatchState
    ) -> Iterator[MatchState]:
        if index == len(elements):
            yield state
            return
        element = elements[index]
        for after in self._element(element, state):
            yield from self._elements(elements, index + 1, after)
        if element.optional:
            yield from self._elements(elements, index + 1, state)

    def _element(self, element: PatternElement, state: MatchState) -> Iterator[MatchState]:
        if element.op == "slot" and element.slot in ("text", "sum"):
            # Fillers are part of a verbatim text.
            yield from self._slot(element, _advance(state, self.clause.after_marks(state.at), 0.0))
            return
        at, loss = state.at, 0.0
        for _ in range(MAX_SKIPPED + 1):
            if at >= len(self.tokens):
                return
            yield from self._here(element, _advance(state, at, -loss))
            if not self.clause.skippable(at):
                return
            at, loss = at + 1, loss + SKIP_LOSS

    def _here(self, element: PatternElement, state: MatchState) -> Iterator[MatchState]:
        match element.op:
            case "word":
                token = self.tokens[state.at]
                if token.word in element.names:
                    yield _advance(state, state.at + 1, WORD_GAIN)
                elif any(name in token.near for name in element.names):
                    yield _advance(state, state.at + 1, WORD_GAIN - SLIP_LOSS, slips=1)
            case "class":
                for end, name, slips in self._phrases[state.at]:
                    if name == element.names[0]:
                        gain = WORD_GAIN * (end - state.at) - SLIP_LOSS * slips
                        yield _advance(state, end, gain, slips=slips)
            case "slot":
                yield from self._slot(element, state)

    def _slot(self, element: PatternElement, state: MatchState) -> Iterator[MatchState]:
        name = "path" if element.slot == "item" else element.names[0]
        readings = self.clause.readings(element, state.at, careful=self._careful, wary=self._wary)
        for reading in readings:
            moved = _advance(state, reading.end, reading.gain)
            pair = (name, reading.value)
            if reading.reference:
                yield _with(moved, references=(pair,))
            else:
                yield _with(moved, slots=(pair,))


def _advance(state: MatchState, at: int, gain: float, *, slips: int = 0) -> MatchState:
    return MatchState(
        at=at,
        score=state.score + gain,
        slips=state.slips + slips,
        slots=state.slots,
        references=state.references,
    )


def _apply_constants(state: MatchState, pairs: tuple[tuple[str, str], ...]) -> MatchState:
    """Adds the values that the pattern itself gives; "@it" and the like are references."""
    for name, value in pairs:
        if value[0] == "@":
            state = _with(state, references=((name, value[1:]),))
        else:
            state = _with(state, slots=((name, value),))
    return state


def _with(
    state: MatchState,
    *,
    slots: tuple[tuple[str, str], ...] = (),
    references: tuple[tuple[str, str], ...] = (),
) -> MatchState:
    return MatchState(
        at=state.at,
        score=state.score,
        slips=state.slips,
        slots=(*state.slots, *slots),
        references=(*state.references, *references),
    )
