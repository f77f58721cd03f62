"""Steps between versions: pure, in order, losing nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.values import JsonObject
from hermes.config.migrations import (
    MIGRATIONS,
    REMOVED,
    VERSION_KEY,
    Changes,
    Migration,
    changes_between,
    migrate_document,
    newest_version,
    version_of,
)


def rename(data: JsonObject) -> JsonObject:
    if "old" in data:
        data["new"] = data.pop("old")
    return data


def double(data: JsonObject) -> JsonObject:
    if isinstance(data.get("new"), int):
        data["new"] *= 2
    return data


STEPS = (Migration(to=2, change=rename), Migration(to=3, change=double))


def test_the_shipped_steps_have_no_gaps() -> None:
    assert [step.to for step in MIGRATIONS] == list(range(2, newest_version() + 1))


def test_steps_run_in_order_from_the_version_of_the_document() -> None:
    assert migrate_document({"old": 5, "other": 1}, STEPS) == {
        "new": 10,
        "other": 1,
        VERSION_KEY: 3,
    }
    assert migrate_document({"new": 5, VERSION_KEY: 2}, STEPS) == {"new": 10, VERSION_KEY: 3}
    assert migrate_document({"new": 5, VERSION_KEY: 3}, STEPS) == {"new": 5, VERSION_KEY: 3}


def test_the_given_document_is_left_alone() -> None:
    document = {"old": 5, "deep": {"a": [1]}}
    migrate_document(document, STEPS)
    assert document == {"old": 5, "deep": {"a": [1]}}


def test_a_document_of_the_future_is_not_touched() -> None:
    document = {"old": 5, VERSION_KEY: 9}
    assert migrate_document(document, STEPS) == document


def test_a_version_that_is_none_counts_as_the_first() -> None:
    for said in (None, "2", True, 0, -1, 2.0):
        assert version_of({VERSION_KEY: said}) == 1


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abcd"), values)


@given(documents, documents)
def test_the_changes_between_two_documents_lead_from_one_to_the_other(
    old: JsonObject, new: JsonObject
) -> None:
    assert applied(old, changes_between(old, new)) == new
    assert changes_between(old, old) == {}


def applied(document: JsonObject, changes: Changes) -> JsonObject:
    for path, value in changes.items():
        document = _applied(document, path, value)
    return document


def _applied(document: JsonObject, path: tuple[str, ...], value: Any) -> JsonObject:
    if len(path) > 1:
        return {**document, path[0]: _applied(document[path[0]], path[1:], value)}
    kept = {name: held for name, held in document.items() if name != path[0]}
    return kept if value is REMOVED else {**kept, path[0]: value}
