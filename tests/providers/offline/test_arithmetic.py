"""Sums that people write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.offline.arithmetic import NumberStyle, evaluate, format_number, is_expression
from hermes.providers.offline.language import load_language

ENGLISH = load_language("en").data.numbers_written
GERMAN = load_language("de").data.numbers_written

SUMS = {
    "2 + 2": "4",
    "2+3*4": "14",
    "(2+3)*4": "20",
    "10 - 4 - 3": "3",
    "-3 + 5": "2",
    "7 / 2": "3.5",
    "6 / 3": "2",
    "7 // 2": "3",
    "10 mod 4": "2",
    "10 % 4": "2",
    "2^10": "1024",
    "2 ** 3 ** 2": "512",
    "-2 ^ 2": "-4",
    "15% of 80": "12",
    "15 percent of 80": "12",
    "200 + 10%": "220",
    "200 - 10%": "180",
    "50 * 10%": "5",
    "0.1 + 0.2": "0.3",
    "1,000 + 1": "1001",
    "sqrt(16) + 1": "5",
    "the square root of 144": "12",
    "max(3, 7, 5)": "7",
    "round(2.567, 2)": "2.57",
    "5!": "120",
    "3 × 4 ÷ 2": "6",
    "two plus three times four": "14",
    "12 squared": "144",
    "2 * pi": "6.28318530718",
    "2 ^ 64": "18446744073709551616",
}


@pytest.mark.parametrize(("text", "expected"), SUMS.items())
def test_a_sum_is_worked_out(text: str, expected: str) -> None:
    assert is_expression(text, ENGLISH)
    assert format_number(evaluate(text, ENGLISH), ENGLISH) == expected


@pytest.mark.parametrize(
    "text",
    ["", "5", "hello", "2 +", "(2", "2 apples", "__import__('os')", "1e", "min(1)", "a.b", "%"],
)
def test_what_is_no_sum_is_not_taken_for_one(text: str) -> None:
    assert not is_expression(text, ENGLISH)


@pytest.mark.parametrize(
    "text",
    ["9^9^9^9", "999!", "2^5000", "10^300 * 10^300 * 10.0", "round(5, -99999999999)", "exp(9999)"],
)
def test_what_is_too_big_ends_at_once(text: str) -> None:
    with pytest.raises(OverflowError):
        evaluate(text, ENGLISH)
    assert is_expression(text, ENGLISH)


@pytest.mark.parametrize("text", ["1/0", "5 mod 0", "5 // (3 - 3)", "0 ^ -1"])
def test_dividing_by_zero_is_named(text: str) -> None:
    with pytest.raises(ZeroDivisionError):
        evaluate(text, ENGLISH)


@pytest.mark.parametrize("text", ["sqrt(-1)", "(-8) ^ 0.5", "2.5!"])
def test_what_has_no_result_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        evaluate(text, ENGLISH)


def test_a_language_has_its_own_words_and_decimal_sign() -> None:
    assert format_number(evaluate("2,5 mal 1.000", GERMAN), GERMAN) == "2500"
    assert format_number(evaluate("7 durch 2", GERMAN), GERMAN) == "3,5"


def test_brackets_are_not_endless() -> None:
    assert not is_expression("(" * 100 + "1" + ")" * 100, ENGLISH)
    assert not is_expression("-" * 200 + "1 + 1", ENGLISH)


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9), st.sampled_from("+-*"))
def test_whole_numbers_are_exact(one: int, two: int, sign: str) -> None:
    expected = {"+": one + two, "-": one - two, "*": one * two}[sign]
    assert evaluate(f"{one} {sign} ({two})", NumberStyle()) == expected


@given(st.text(alphabet="0123456789+-*/^%!().,e pisqrtmaxround", max_size=60))
def test_any_text_is_a_number_or_a_clear_refusal(text: str) -> None:
    if not is_expression(text, ENGLISH):
        return
    try:
        value = evaluate(text, ENGLISH)
    except ArithmeticError:
        return
    assert format_number(value, ENGLISH)
