"""Evaluates arithmetic as people write it: bounded, with percentages and number words.

sum     = product (("+" | "-") product)*        a percentage refers to the value before it
product = signed (("*" | "/" | "//" | "mod" | "of") signed)*
signed  = ("-" | "+") signed | power
power   = counted (("^" | "**") signed)?
counted = atom ("%" | "!")*
atom    = number | name | name atom | name "(" sum ("," sum)* ")" | "(" sum ")"
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache

from hermes.codec.values import Value

Number = int | float

MAX_LENGTH = 300
MAX_DEPTH = 40
MAX_BITS = 4096
MAX_FACTORIAL = 300
MAX_DIGITS = 30


class NumberStyle(Value):
    """How a language writes numbers: its decimal separator, and its words as operators and
    digits."""

    decimal: str = "."
    words: dict[str, str] = {}


_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "sqrt": math.sqrt,
    "abs": abs,
    "round": lambda value, digits=0: _round(value, digits),
    "floor": math.floor,
    "ceil": math.ceil,
    "min": min,
    "max": max,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "ln": math.log,
    "log": math.log10,
    "log2": math.log2,
    "exp": math.exp,
}
_CONSTANTS = {"pi": math.pi, "π": math.pi, "e": math.e}
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "²": "^2", "³": "^3"})
_PIECE = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+|\*\*|//|[-+*/^%!(),]|[^\W\d]\w*|π)")


def is_expression(text: str, style: NumberStyle) -> bool:
    """True for an expression to evaluate, not a lone number."""
    if len(text) > MAX_LENGTH:
        return False
    try:
        pieces = _pieces(text, style)
        if len(pieces) < 2 or not any(piece[0].isdigit() for piece in pieces):
            return False
        _Evaluator(pieces).whole()
    except ValueError:
        return False
    except ArithmeticError:
        return True
    return True


def evaluate(text: str, style: NumberStyle) -> Number:
    """Raises ValueError if it is not an expression or undefined, ZeroDivisionError, and
    OverflowError if too large."""
    return _Evaluator(_pieces(text[:MAX_LENGTH], style)).whole()


def format_number(number: Number, style: NumberStyle) -> str:
    """Up to twelve significant digits; integers without a fraction."""
    if isinstance(number, float) and number.is_integer() and abs(number) < 1e15:
        number = int(number)
    text = str(number) if isinstance(number, int) else format(number, ".12g")
    return text.replace(".", style.decimal)


def _pieces(text: str, style: NumberStyle) -> list[str]:
    plain = _plain_numbers(text.casefold().translate(_SIGNS), style.decimal)
    if style.words:
        words = tuple(sorted(style.words, key=lambda word: (-len(word), word)))
        plain = _word_pattern(words).sub(lambda found: f" {style.words[found[0]]} ", plain)
    plain = plain.strip().rstrip("?=.! ") + ("!" if plain.rstrip("?= ").endswith("!") else "")
    pieces: list[str] = []
    at = 0
    while at < len(plain):
        found = _PIECE.match(plain, at)
        if found is None:
            raise ValueError(plain[at:])
        pieces.append(found[1])
        at = found.end()
    return pieces


def _plain_numbers(text: str, decimal: str) -> str:
    """Removes thousands separators and uses a point for decimals."""
    if decimal == ",":
        text = re.sub(r"(?<=\d)\.(?=\d{3}(?!\d))", "", text)
        return re.sub(r"(?<=\d),(?=\d)", ".", text)
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)


@lru_cache(maxsize=8)
def _word_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + "|".join(re.escape(word) for word in words) + r")(?!\w)")


class _Evaluator:
    """A recursive-descent evaluator over the pieces."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces
        self._at = 0
        self._depth = 0

    def whole(self) -> Number:
        value = self._sum()
        if self._at != len(self._pieces):
            raise ValueError(self._pieces[self._at])
        return value

    def _next(self) -> str:
        return self._pieces[self._at] if self._at < len(self._pieces) else ""

    def _take(self, *wanted: str) -> str:
        piece = self._next()
        if piece and piece in wanted:
            self._at += 1
            return piece
        return ""

    def _sum(self) -> Number:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError("depth")
        value, _ = self._product()
        while sign := self._take("+", "-"):
            change, percent = self._product()
            if percent:
                change = value * change
            value = _check_size(value + change if sign == "+" else value - change)
        self._depth -= 1
        return value

    def _product(self) -> tuple[Number, bool]:
        value, percent = self._signed()
        while sign := self._take("*", "/", "//", "mod", "of"):
            other, _ = self._signed()
            value, percent = _check_size(_apply(sign, value, other)), False
        return value, percent

    def _signed(self) -> tuple[Number, bool]:
        if sign := self._take("+", "-"):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise ValueError("depth")
            value, percent = self._signed()
            self._depth -= 1
            return (-value if sign == "-" else value), percent
        return self._power()

    def _power(self) -> tuple[Number, bool]:
        value, percent = self._postfix()
        if self._take("^", "**"):
            exponent, _ = self._signed()
            return _raise_to(value, exponent), False
        return value, percent

    def _postfix(self) -> tuple[Number, bool]:
        value, percent = self._atom(), False
        while sign := self._take("%", "!"):
            if sign == "!":
                value = _factorial(value)
            elif self._next()[:1].isdigit() or self._next() == "(":
                value = _apply("mod", value, self._atom())
            else:
                value, percent = value / 100, True
        return value, percent

    def _atom(self) -> Number:
        piece = self._next()
        self._at += 1
        if piece[:1].isdigit() or piece[:1] == ".":
            return _check_size(float(piece) if "." in piece else int(piece))
        if piece in _CONSTANTS:
            return _CONSTANTS[piece]
        if piece == "(":
            value = self._sum()
            if not self._take(")"):
                raise ValueError(")")
            return value
        if piece in _FUNCTIONS:
            return _call(piece, self._arguments())
        raise ValueError(piece)

    def _arguments(self) -> list[Number]:
        if self._next() != "(":
            return [self._postfix()[0]]
        self._at += 1
        found = [self._sum()]
        while self._take(","):
            found.append(self._sum())
        if not self._take(")"):
            raise ValueError(")")
        return found


def _call(name: str, arguments: list[Number]) -> Number:
    try:
        return _check_size(_FUNCTIONS[name](*arguments))
    except TypeError as error:
        raise ValueError(name) from error


def _round(value: Number, digits: Number) -> Number:
    if abs(digits) > MAX_DIGITS:
        raise OverflowError
    return round(value, int(digits)) if digits else round(value)


def _apply(sign: str, one: Number, two: Number) -> Number:
    match sign:
        case "*" | "of":
            return one * two
        case "//":
            return one // two
        case "mod":
            return one % two
        case _:
            exact = isinstance(one, int) and isinstance(two, int) and two and one % two == 0
            return one // two if exact else one / two


def _raise_to(value: Number, exponent: Number) -> Number:
    if isinstance(value, int) and isinstance(exponent, int) and exponent >= 0:
        if value.bit_length() * exponent > MAX_BITS:
            raise OverflowError
        return int(value**exponent)
    result = value**exponent
    if isinstance(result, complex):
        raise ValueError("complex")
    return _check_size(float(result))


def _factorial(value: Number) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("!")
    if value > MAX_FACTORIAL:
        raise OverflowError
    return math.factorial(value)


def _check_size(value: Number) -> Number:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise OverflowError
    if isinstance(value, float) and not math.isfinite(value):
        raise OverflowError
    return value
