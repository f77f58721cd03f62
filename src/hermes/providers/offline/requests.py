"""Turns what a person said last into steps, with the help of what was said before."""

from __future__ import annotations

from hermes.codec.values import Value, replace
from hermes.providers.offline.language import available, load
from hermes.providers.offline.transcript import Exchange
from hermes.providers.offline.understanding import Intent, understand

MAX_LOOK_BACK = 20
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
    newest = _understood(code, exchanges[-1].asked)
    if not _leans(newest):
        return newest
    leaning = [newest.steps[0]]
    for exchange in exchanges[-2 : -2 - MAX_LOOK_BACK : -1]:
        earlier = _understood(code, exchange.asked)
        if _leans(earlier):
            leaning.append(earlier.steps[0])
        elif not _is_talk(earlier):
            steps = earlier.steps
            for wish in reversed(leaning):
                steps = _repeated(wish, steps)
            return replace(newest, language=earlier.language, steps=steps)
    nothing = Intent(kind="nothing_before", words=newest.text)
    return replace(newest, steps=(nothing,))


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
