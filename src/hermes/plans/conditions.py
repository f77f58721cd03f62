"""Conditions of steps: comparisons of references and literals, joined by and, or, not. An own
interpreter over a few kinds of nodes; nothing is ever passed to `eval`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from hermes.codec.values import JsonValue
from hermes.plans.references import reference_value, replace_references

MOST_CHARS = 500
_WORDS: dict[str, JsonValue] = {"true": True, "false": False, "null": None, "none": None}
_COMPARISONS: dict[type[ast.cmpop], Callable[[JsonValue, JsonValue], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}


class ConditionError(ValueError):
    """A condition cannot be read, or compares what cannot be compared."""


class Condition:
    """A parsed condition. Raises ConditionError for anything but the few allowed forms."""

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARS:
            raise ConditionError(f"A condition has at most {MOST_CHARS} characters.")
        self._references: dict[str, object] = {}

        def name(found: object) -> str:
            key = f"_r{len(self._references)}"
            self._references[key] = found
            # Spaces, because a reference may follow a word.
            return f" {key} "

        source = replace_references(text, name).strip()
        try:
            self._tree = ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ConditionError(f"{text!r} is not a condition.") from error
        self._check(self._tree, text)

    def _check(self, node: ast.expr, text: str) -> None:
        match node:
            case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
                pass
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=part):
                parts = [part]
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                type(op) in _COMPARISONS for op in ops
            ):
                parts = [left, *others]
            case ast.Constant(value=str() | int() | float() | bool() | None):
                parts = []
            case ast.Name(id=id) if id in self._references or id.lower() in _WORDS:
                parts = []
            case _:
                raise ConditionError(
                    f"{text!r} is not allowed; use references, literals, comparisons, and, or, not."
                )
        for part in parts:
            self._check(part, text)

    def holds(self, lookup: Callable[[str, str], JsonValue]) -> bool:
        try:
            return bool(self._value(self._tree, lookup))
        except TypeError as error:
            raise ConditionError(f"The condition cannot be decided: {error}.") from error

    def _value(self, node: ast.expr, lookup: Callable[[str, str], JsonValue]) -> JsonValue:
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self._value(part, lookup) for part in parts)
            case ast.BoolOp(values=parts):
                return any(self._value(part, lookup) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return not self._value(part, lookup)
            case ast.UnaryOp(operand=part):
                return -self._value(part, lookup)
            case ast.Compare(left=left, ops=ops, comparators=others):
                values = [self._value(part, lookup) for part in (left, *others)]
                pairs = zip(ops, values, values[1:], strict=False)
                return all(_COMPARISONS[type(op)](one, other) for op, one, other in pairs)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [self._value(part, lookup) for part in parts]
            case ast.Constant(value=value):
                return value
            case ast.Name(id=id) if id in self._references:
                return reference_value(self._references[id], lookup)  # type: ignore[arg-type]
            case ast.Name(id=id):
                return _WORDS[id.lower()]
        raise ConditionError("This condition is not allowed.")
