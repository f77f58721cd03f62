"""Sums that people write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.offline.arithmetic import evaluate, format_number

SUMS = {
    "2 + 2": "4",
    "2+3*4": "14",
    "(2+3)*4": "20",
    "10 - 4 - 3": "3",
    "-3 + 5": "2",
    "7 / 2": "3.5",
    "6 / 3": "2",
    "10 mod 4": "2",
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
    "3 × 4 ÷ 2": "6",
    "two plus three times four": "14",
    "12 squared": "144",
    "2 ^ 64": "18446744073709551616",
}


@pytest.mark.parametrize(("text", "expected"), SUMS.items())
def test_a_sum_is_worked_out(text: str, expected: str) -> None:
    value = evaluate(text)
    assert value is not None
    assert format_number(value) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "hello",
        "2 +",
        "(2",
        "2 apples",
        "__import__('os')",
        "1e",
        "a.b",
        "%",
        "10 % 4",
        "5!",
    ],
)
def test_other_text_is_not_a_sum(text: str) -> None:
    assert evaluate(text) is None


@pytest.mark.parametrize("text", ["9/11", "24/7", "2024-01-05", "1/2/2024", "555-123-4567"])
def test_dates_and_names_are_not_sums(text: str) -> None:
    assert evaluate(text) is None


@pytest.mark.parametrize("text", ["9^9^9^9", "2^5000", "10^300 * 10^300 * 10.0 ^ 9"])
def test_a_result_that_is_too_large_ends_at_once(text: str) -> None:
    with pytest.raises(OverflowError):
        evaluate(text)


@pytest.mark.parametrize("text", ["1/0", "5 mod 0", "5 / (3 - 3)", "0 ^ -1"])
def test_a_division_by_zero_is_named(text: str) -> None:
    with pytest.raises(ZeroDivisionError):
        evaluate(text)


@pytest.mark.parametrize("text", ["sqrt(-1)", "(-8) ^ 0.5"])
def test_a_sum_without_a_real_result_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        evaluate(text)


def test_brackets_are_not_endless() -> None:
    assert evaluate("(" * 90 + "1" + ")" * 90) is None
    assert evaluate("-" * 150 + "1 + 1") is None


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9), st.sampled_from("+-*"))
def test_whole_numbers_are_exact(one: int, two: int, sign: str) -> None:
    expected = {"+": one + two, "-": one - two, "*": one * two}[sign]
    assert evaluate(f"{one} {sign} ({two})") == expected


@given(st.text(alphabet="0123456789+-*/^%!().,e sqrtmod", max_size=60))
def test_any_text_is_a_number_or_a_clear_refusal(text: str) -> None:
    try:
        value = evaluate(text)
    except (ArithmeticError, ValueError):
        return
    assert value is None or format_number(value)
