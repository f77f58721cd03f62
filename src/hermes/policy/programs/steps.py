"""Applies the steps of a record: conditions on a call, and what is found when they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.call import Call, Options
from hermes.policy.programs.records import Step
from hermes.policy.shell.state import ANYTHING, NOTHING, SOME, UNKNOWN, Stream

_SLICE = re.compile(r"(-?\d*)(:?)(-?\d*)")


def check_steps(call: Call) -> Stream | None:
    """The check of records that need only steps; returns the record's output."""
    match call.record.output:
        case "some":
            return Stream(text=SOME)
        case "file":
            return Stream(text=UNKNOWN, origin="file")
        case "same":
            return Stream(text=UNKNOWN, origin=call.stdin.origin)
        case "environment":
            return Stream(origin="environment")
        case "nothing":
            return NOTHING
        case "anything":
            return ANYTHING
    return None


def apply_steps(call: Call) -> bool:
    """Applies the steps of the record. True when a step with `stop` applied."""
    options = call.options(call.record.values, permute=not call.record.command)
    for step in call.record.steps:
        if _holds(step, call, options):
            _apply(step, call, options)
            if step.stop:
                return True
    return False


def _holds(step: Step, call: Call, options: Options) -> bool:
    words = options.operands
    if step.options and not options.has(*step.options.split()):
        return False
    if step.without and options.has(*step.without.split()):
        return False
    if step.verbs and not _verbs(words) & set(step.verbs.split()):
        return False
    if step.any and not set(step.any.split()) & set(call.arguments):
        return False
    if step.none and set(step.none.split()) & set(call.arguments):
        return False
    if len(words) < step.least or (step.below and len(words) >= step.below):
        return False
    if step.here and not (words and all(map(call.here, words))):
        return False
    if step.word and not _matching(step.word, call.arguments):
        return False
    if step.operand and not _matching(step.operand, words):
        return False
    if step.operands and not (words and all(re.fullmatch(step.operands, each) for each in words)):
        return False
    return not step.text or re.search(step.text, " ".join(call.arguments)) is not None


def _verbs(words: list[str]) -> set[str]:
    return {":".join(words[:count]) for count in (1, 2, 3) if len(words) >= count}


def _matching(pattern: str, words: list[str]) -> str:
    return next((word for word in words if re.fullmatch(pattern, word)), "")


def _apply(step: Step, call: Call, options: Options) -> None:
    word = _matching(step.word, call.arguments) if step.word else ""
    reason = step.reason.replace("{name}", call.name).replace("{word}", word)
    call.reads(*_select(step.reads, call, options))
    call.reads_all(*_select(step.reads_all, call, options))
    call.writes(*_select(step.writes, call, options))
    call.deletes(*_select(step.deletes, call, options), recursive=True)
    if step.ask:
        call.ask(step.ask, reason)
    if step.never:
        call.never(step.never, reason)
    if step.work is not None:
        call.work(step.work, reason)
    for script in _select(step.runs, call, options):
        call.runs_text(script)
    if command := list(_select(step.runs_words, call, options)):
        call.runs(command)


def _select(selectors: str, call: Call, options: Options) -> Iterator[str]:
    """`-o` is the value of an option, `0` an operand, `1:` some, `:` all of them, `.` the current
    folder and `stdin` the input if it is known."""
    for each in selectors.split():
        if each.startswith("-") and not each[1:].isdigit():
            yield from options.values(each)
        elif each == "stdin":
            yield from (call.stdin.text,) if call.stdin.known and call.stdin.text else ()
        elif each == ".":
            yield each
        elif found := _SLICE.fullmatch(each):
            start, colon, end = found.groups()
            first = int(start) if start else None
            last = (int(end) if end else None) if colon else (first or 0) + 1
            yield from options.operands[first:last]
