"""Evaluates arithmetic as people write it, within fixed limits."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

Number = int | float

MAX_LENGTH = 200
MAX_BITS = 4096
MAX_DEPTH = 30

_NUMBER = r"\d+(?:\.\d+)?"
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "²": "^2", "³": "^3"})
_DIGIT_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
_OPERATOR_WORDS = {
    r"plus": "+",
    r"minus": "-",
    r"times|multiplied by": "*",
    r"divided by": "/",
    r"to the power of": "^",
    r"mod|modulo": "mod",
    r"squared": "^2",
    r"cubed": "^3",
    r"(?:the )?square root of": "sqrt",
}
# Names and dates that only look like arithmetic.
_NOT_A_SUM = re.compile(r"9/11|24/7|50/50|\d{4}-\d\d?-\d\d?|\d+/\d+/\d+|[-\d]+-\d{3}-\d{4}")
_TOKEN = re.compile(rf"\s*({_NUMBER}|\*\*|mod|sqrt|[-+*/^()])")


def evaluate(text: str) -> Number | None:
    """Return the result, or None if the text is not arithmetic. Raise ZeroDivisionError,
    OverflowError if the result is too large, and ValueError if there is none."""
    plain = _normalise(text)
    if plain is None:
        return None
    tokens: list[str] = []
    at = 0
    while at < len(plain):
        match = _TOKEN.match(plain, at)
        if match is None:
            return None
        tokens.append(match[1])
        at = match.end()
    if len(tokens) < 2 or not any(token[0].isdigit() for token in tokens):
        return None
    try:
        return _Evaluator(tokens).result()
    except SyntaxError:
        return None


def format_number(number: Number) -> str:
    """Format a number with at most 15 significant digits; whole numbers without a fraction."""
    if isinstance(number, float) and number.is_integer() and abs(number) < 1e15:
        number = int(number)
    return str(number) if isinstance(number, int) else format(number, ".15g")


def _normalise(text: str) -> str | None:
    """Return only digits, operators and brackets; None for other text."""
    plain = text.casefold().translate(_SIGNS).strip().rstrip("?= ").strip()
    if not plain or len(plain) > MAX_LENGTH or _NOT_A_SUM.fullmatch(plain):
        return None
    for words, sign in _OPERATOR_WORDS.items():
        plain = re.sub(rf"\b(?:{words})\b", f" {sign} ", plain)
    for digit, word in enumerate(_DIGIT_WORDS):
        plain = re.sub(rf"\b{word}\b", str(digit), plain)
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", plain)
    plain = re.sub(r"(?<=\d)\s*x\s*(?=\d)", "*", plain)
    return _resolve_percentages(plain)


def _resolve_percentages(plain: str) -> str | None:
    plain = re.sub(rf"({_NUMBER})\s*(?:%|percent)\s+of\s+", r"(\1/100)*", plain)
    plain = re.sub(rf"([*/]\s*)({_NUMBER})\s*(?:%|percent)\s*$", r"\1(\2/100)", plain)
    # A percentage that is added or subtracted refers to the number before it.
    plain = re.sub(
        rf"^({_NUMBER})\s*([-+])\s*({_NUMBER})\s*(?:%|percent)$", r"\1*(1\2(\3/100))", plain.strip()
    )
    return None if "%" in plain else plain


class _Evaluator:
    """Evaluates a sum by recursive descent: sum, product, sign, power, atom. Raises SyntaxError."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def result(self) -> Number:
        value = self._sum()
        if self._at != len(self._tokens):
            raise SyntaxError
        return value

    def _take(self, *wanted: str) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        if token not in wanted:
            return ""
        self._at += 1
        return token

    def _binary(self, operand: Callable[[], Number], *signs: str) -> Number:
        value = operand()
        while sign := self._take(*signs):
            value = _check_size(_apply(sign, value, operand()))
        return value

    def _sum(self) -> Number:
        return self._binary(lambda: self._binary(self._signed, "*", "/", "mod"), "+", "-")

    def _signed(self) -> Number:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SyntaxError
        sign = self._take("+", "-")
        value = self._signed() if sign else self._power()
        self._depth -= 1
        return -value if sign == "-" else value

    def _power(self) -> Number:
        value = self._atom()
        return _raise_to(value, self._signed()) if self._take("^", "**") else value

    def _atom(self) -> Number:
        if self._take("("):
            value = self._sum()
            if not self._take(")"):
                raise SyntaxError
            return value
        if self._take("sqrt"):
            return math.sqrt(self._atom())
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        if not token[:1].isdigit():
            raise SyntaxError
        self._at += 1
        return _check_size(float(token) if "." in token else int(token))


def _apply(sign: str, one: Number, two: Number) -> Number:
    match sign:
        case "+":
            return one + two
        case "-":
            return one - two
        case "*":
            return one * two
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


def _check_size(value: Number) -> Number:
    too_large = (
        value.bit_length() > MAX_BITS if isinstance(value, int) else not math.isfinite(value)
    )
    if too_large:
        raise OverflowError
    return value
