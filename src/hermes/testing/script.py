"""A script of steps: a list, or a function of the request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from hermes.codec.values import JsonObject, JsonValue
from hermes.testing.steps import Step

Asked = TypeVar("Asked")
Rule = Callable[[Asked], Step | Awaitable[Step]]


class ScriptExhausted(Exception):
    """The script has no more steps."""


class StepScript(Generic[Asked]):
    """Steps in order. With `loop`, the last one repeats. A rule never ends."""

    def __init__(self, steps: Iterable[Step] | Rule[Asked], *, loop: bool = False) -> None:
        self._rule: Rule[Asked] | None = None
        self._steps: list[Step] = []
        if callable(steps):
            self._rule = steps
        else:
            self._steps = list(steps)
        self._loop = loop
        self._used = 0

    @property
    def left(self) -> int:
        """Unused steps."""
        return len(self._steps) - self._used

    def add(self, *steps: Step) -> None:
        self._steps.extend(steps)

    def next(self, asked: Asked) -> Step | Awaitable[Step]:
        if self._rule is not None:
            return self._rule(asked)
        if self._used < len(self._steps):
            self._used += 1
            return self._steps[self._used - 1]
        if self._loop and self._steps:
            return self._steps[-1]
        raise ScriptExhausted(f"the script has only {len(self._steps)} steps")


def mismatch(expected: JsonValue, found: JsonValue, where: str = "body") -> str | None:
    """Where `found` differs from `expected`. Objects may have more keys."""
    if not isinstance(expected, dict):
        return None if expected == found else f"{where} is {found!r}, not {expected!r}"
    if not isinstance(found, dict):
        return f"{where} is {found!r}, not an object"
    return _first_mismatch(expected, found, where)


def _first_mismatch(expected: JsonObject, found: JsonObject, where: str) -> str | None:
    for key, part in expected.items():
        if key not in found:
            return f"{where}.{key} is missing"
        if reason := mismatch(part, found[key], f"{where}.{key}"):
            return reason
    return None
