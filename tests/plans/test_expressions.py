"""References and conditions: what they select, and what they refuse."""

from __future__ import annotations

import pytest

from hermes.codec.values import JsonValue
from hermes.plans.conditions import Condition, ConditionError
from hermes.plans.references import MissingValue, StepResult, names_in, resolve

RESULTS = {
    "s1": StepResult('{"items": [{"url": "a", "n": 1}, {"url": "b", "n": 2}], "count": 2}', {}),
    "s2": StepResult("plain text", {"exit_code": 3}),
}


def look(name: str, path: str) -> JsonValue:
    return RESULTS[name].at(path) if name in RESULTS else None


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("${s1.count}", 2),
        ("${s1.items[0].url}", "a"),
        ("${s1.items[-1].n}", 2),
        ("${s1.items[0:2].url}", ["a", "b"]),
        ("${s1.items[:1].url}", ["a"]),
        ("${s1.items.url}", ["a", "b"]),
        ("n=${s1.count}, ${s2}", "n=2, plain text"),
        ("urls: ${s1.items.url}", 'urls: ["a","b"]'),
        ("${s2}", "plain text"),
        ("${s2.exit_code}", 3),
        ("${s2.text}", "plain text"),
        ("${s1.nothing|7}", 7),
        ("${s1.nothing|none at all}", "none at all"),
        ("${other|[]}", []),
        ("${other}", None),
        ({"a": ["${s1.count}", {"b": "x${s1.count}"}]}, {"a": [2, {"b": "x2"}]}),
        ("costs $5 {s1}", "costs $5 {s1}"),
    ],
)
def test_a_reference_selects(given: JsonValue, found: JsonValue) -> None:
    assert resolve(given, look) == found


@pytest.mark.parametrize("given", ["${s1.items[9]}", "${s1.items[0].x}", "${s1.count[0]}"])
def test_a_reference_to_nothing_is_an_error(given: str) -> None:
    with pytest.raises(MissingValue):
        resolve(given, look)


def test_references_are_found_everywhere() -> None:
    value: JsonValue = {"a": "${x} and ${y.z[0]|d}", "b": [{"${k}": 1}]}
    assert list(names_in(value)) == ["k", "x", "y"] or set(names_in(value)) == {"x", "y", "k"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("${s1.count} > 0", True),
        ("${s1.count} >= 3 or ${s2.exit_code} == 3", True),
        ("not (${s1.count} == 2)", False),
        ("'b' in ${s1.items.url} and true", True),
        ("${s1.count} not in [1, 2]", False),
        ("1 < ${s1.count} < 3", True),
        ("${other} == null", True),
        ("${s2} == 'plain text'", True),
        ("-1 < 0", True),
        ("${s1.items}", True),
    ],
)
def test_a_condition_is_decided(text: str, holds: bool) -> None:
    assert Condition(text).holds(look) is holds


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "().__class__",
        "${s1.count}.__class__ == 1",
        "open('x')",
        "[x for x in [1]]",
        "lambda: 1",
        "(a := 1)",
        "1 + 1 == 2",
        "f'{1}'",
        "name == 1",
        "1 if true else 2",
        "{1: 2}",
        "b'x' == 'x'",
        "",
        "1 ==",
        "1 < " * 300 + "1",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConditionError):
        Condition(text)


def test_what_cannot_be_compared_is_an_error() -> None:
    with pytest.raises(ConditionError):
        Condition("${s1.items} < 3").holds(look)
