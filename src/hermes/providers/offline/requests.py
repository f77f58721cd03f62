"""Turns what a person said last into steps, with the help of what was said before."""

from __future__ import annotations

from hermes.codec.values import Value, replace
from hermes.providers.offline.cutting import Intent
from hermes.providers.offline.language import available, load
from hermes.providers.offline.matching import CHANGING
from hermes.providers.offline.slots import looks_like_file
from hermes.providers.offline.transcript import Exchange
from hermes.providers.offline.understanding import follow_up, understand, with_details

MAX_LOOK_BACK = 20
MAX_FOLLOWED = 4
# What another language than the chosen one must reach: a single short word is no proof.
SURE_IN_OTHER_LANGUAGE = 3.5

# Kinds that are about the conversation itself: "again" does not mean them.
_ABOUT_TALK = frozenset({"talk"})
_LEANING = frozenset({"again", "same_for"})


class Request(Value):
    """The steps that were asked for, and in which language. Without steps: not understood."""

    text: str
    language: str
    steps: tuple[Intent, ...] = ()


def read_request(code: str, exchanges: tuple[Exchange, ...]) -> Request:
    """The request of the newest exchange. "Again" and "the same for …" become the steps that
    they stand for."""
    text = exchanges[-1].asked
    newest = _understood(code, text)
    if not _leans(newest):
        return _in_context(newest, code, exchanges[:-1])
    leaning = [newest.steps[0]]
    for exchange in exchanges[-2 : -2 - MAX_LOOK_BACK : -1]:
        earlier = _understood(code, exchange.asked)
        if _leans(earlier):
            leaning.append(earlier.steps[0])
        elif not _is_talk(earlier):
            steps = earlier.steps
            if any(_changes(earlier.language, step) for step in steps) and _is_vague(leaning[0]):
                return replace(newest, steps=())
            for wish in reversed(leaning):
                steps = _repeated(wish, steps)
            return replace(newest, language=earlier.language, steps=steps)
    nothing = Intent(kind="nothing_before", words=newest.text)
    return replace(newest, steps=(nothing,))


def _in_context(newest: Request, code: str, before: tuple[Exchange, ...]) -> Request:
    """What the request means after the one before, where that is more than it says by itself."""
    if not before or (newest.steps and not _changes_files(newest)):
        return newest
    following = follow_up(load(code), newest.text)
    if newest.steps and following is None:
        return newest
    for exchange in before[: -1 - MAX_FOLLOWED : -1]:
        earlier = _understood(code, exchange.asked)
        if not _is_talk(earlier):
            step = following if following and _of_one_sort(code, following, earlier) else None
            if step is None and not newest.steps and not _changes_files(earlier):
                step = with_details(load(earlier.language), newest.text, earlier.steps[-1])
            return replace(newest, language=earlier.language, steps=(step,)) if step else newest
    return newest


def _changes_files(request: Request) -> bool:
    """ "Remove milk" may be about a file, or about the list that was just shown."""
    return len(request.steps) == 1 and _changes(request.language, request.steps[0])


def _changes(code: str, step: Intent) -> bool:
    kind = load(code).kinds.get(step.kind)
    return kind is not None and kind.group == CHANGING


def _is_vague(wish: Intent) -> bool:
    """ "And Anna?" after "delete a.txt" is about something else."""
    path = wish.slots.get("path", "")
    return bool(path) and "/" not in path and not looks_like_file(path)


def _of_one_sort(code: str, following: Intent, earlier: Request) -> bool:
    kinds = load(code).kinds
    kind = kinds.get(earlier.steps[-1].kind)
    return kind is not None and bool(kind.follows) and kind.group == kinds[following.kind].group


def _leans(request: Request) -> bool:
    """It means something only together with an earlier request."""
    return len(request.steps) == 1 and request.steps[0].kind in _LEANING


def _understood(code: str, text: str) -> Request:
    steps = understand(load(code), text)
    if steps:
        return Request(text=text, language=code, steps=steps)
    for other in available():
        if other != code:
            steps = understand(load(other), text)
            if steps and min(step.sure for step in steps) >= SURE_IN_OTHER_LANGUAGE:
                return Request(text=text, language=other, steps=steps)
    return Request(text=text, language=code)


def _is_talk(request: Request) -> bool:
    """Nothing that could be done again: not understood, or about the conversation itself."""
    kinds = load(request.language).kinds
    return not any(
        step.kind not in kinds or kinds[step.kind].group not in _ABOUT_TALK
        for step in request.steps
    )


def _repeated(wish: Intent, steps: tuple[Intent, ...]) -> tuple[Intent, ...]:
    if wish.kind == "again":
        return steps
    if not any("path" in step.slots or "path" in step.references for step in steps):
        return (*steps[:-1], _elsewhere(steps[-1], wish))
    return tuple(
        _elsewhere(step, wish) if "path" in step.slots or "path" in step.references else step
        for step in steps
    )


def _elsewhere(step: Intent, wish: Intent) -> Intent:
    """The step with the path of the wish instead of its own."""
    slots = {name: value for name, value in step.slots.items() if name != "path"}
    references = {name: value for name, value in step.references.items() if name != "path"}
    if "path" in wish.slots:
        slots["path"] = wish.slots["path"]
    if "path" in wish.references:
        references["path"] = wish.references["path"]
    return replace(step, slots=slots, references=references)
