from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.values import JsonObject
from hermes.providers.wire.reply_builder import Arguments, read_arguments


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  \n", {}),
        ("null", {}),
        ("{}", {}),
        ({"a": 1}, {"a": 1}),
        (None, {}),
        ('{"a": 1}}', {"a": 1}),
        ('{"a": 1}<|im_end|>', {"a": 1}),
        ('{"a": 1}{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('{"a": "x\ny"}', {"a": "x\ny"}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": ",}"}', {"a": ",}"}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}),
    ],
)
def test_arguments_are_read_as_they_are_meant(raw: object, value: JsonObject) -> None:
    assert read_arguments(raw, whole=True) == Arguments(value=value)


@pytest.mark.parametrize(
    "raw",
    [
        '{"a": 1',
        '{"files": ["a", "b"',
        '{"a": "b',
        "[1]",
        "5",
        '{"a": 1}{"a": 2}',
        "{bad",
        "[" * 9999,
    ],
)
def test_what_is_no_whole_object_is_broken_and_quoted(raw: str) -> None:
    found = read_arguments(raw, whole=True)
    assert found.value == {}
    assert found.broken.startswith("the arguments are not a valid JSON object: ")
    assert raw[:300] in found.broken


def test_a_quote_of_broken_arguments_is_short() -> None:
    found = read_arguments("{" + "x" * 10_000, whole=True)
    assert len(found.broken) < 600
    assert found.broken.endswith("…")


@pytest.mark.parametrize("raw", ["", "{}x", '{"a": 1,', "null", '{"a": [1,]}', {"a": 1}])
def test_nothing_is_mended_when_the_answer_was_cut(raw: object) -> None:
    assert read_arguments(raw, whole=False).broken


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=9),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        min_size=1,
        max_size=4,
    ),
    st.data(),
)
def test_no_cut_of_valid_arguments_is_ever_taken_for_other_arguments(
    value: dict[str, object], data: st.DataObject
) -> None:
    text = json.dumps(value)
    size = data.draw(st.integers(0, len(text) - 1))
    for whole in (True, False):
        if not (whole and not text[:size].strip()):
            assert read_arguments(text[:size], whole=whole).broken
    assert not read_arguments(text, whole=False).broken
