"""Single keys change; comments and all other lines stay."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.codec.values import JsonObject
from hermes.config.migrations import REMOVED, Changes
from hermes.config.settings_file import apply_changes, block_lines, flow
from hermes.config.yaml_parser import BadYaml, parse_text, parse_yaml

EXAMPLE = """\
# My settings
model: slug  # the best

agent:
    # how far
    max_turns: 5   # enough

    # how hard
    reasoning_effort: "high"

toolsets:   # which
  - a   # first
  # between
  - b
# about the note
note: |
  text
  # no comment

empty:
flow: {x: 1, y: [2, 3]}  # inline
last: 'quoted'
"""


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({("agent", "max_turns"): 40}, "max_turns: 5 ", "max_turns: 40 "),
        ({("agent", "reasoning_effort"): "low"}, '"high"', "low"),
        ({("last",): "new one"}, "'quoted'", '"new one"'),
        ({("flow", "x"): 5}, "{x: 1,", "{x: 5,"),
        ({("flow", "z"): None}, "[2, 3]}", "[2, 3], z: null}"),
        ({("flow", "y"): []}, "y: [2, 3]", "y: []"),
        ({("new", "deep"): True}, "last: 'quoted'\n", "last: 'quoted'\nnew:\n  deep: true\n"),
        ({("empty", "key"): 1}, "empty:\n", "empty:\n  key: 1\n"),
        ({("empty",): 1}, "empty:\n", "empty: 1\n"),
        (
            {("agent", "system_prompt"): "a\nb"},
            '    reasoning_effort: "high"\n',
            '    reasoning_effort: "high"\n    system_prompt: "a\\x0ab"\n',
        ),
        (
            {("toolsets",): ["c"]},
            "toolsets:   # which\n  - a   # first\n  # between\n  - b\n",
            "toolsets: [c]   # which\n",
        ),
        ({("note",): "short"}, "|\n  text\n  # no comment\n\n", "short\n"),
        ({("agent", "max_turns"): REMOVED}, "    max_turns: 5   # enough\n", ""),
        ({("note",): REMOVED}, "note: |\n  text\n  # no comment\n\n", ""),
        ({("last",): REMOVED}, "last: 'quoted'\n", ""),
        ({("empty",): REMOVED}, "empty:\n", ""),
        (
            {("toolsets",): REMOVED},
            "toolsets:   # which\n  - a   # first\n  # between\n  - b\n",
            "",
        ),
    ],
)
def test_nothing_but_the_key_changes(changes: Changes, old: str, new: str) -> None:
    assert EXAMPLE.count(old) == 1
    assert apply_changes(EXAMPLE, changes) == EXAMPLE.replace(old, new)


def test_a_change_that_changes_nothing_leaves_the_text_alone() -> None:
    assert apply_changes(EXAMPLE, {("agent", "max_turns"): 5, ("none", "such"): REMOVED}) == EXAMPLE


def test_the_last_key_of_a_section_may_go() -> None:
    text = apply_changes(
        "agent:\n  # why\n  max_turns: 5\nmodel: x\n", {("agent", "max_turns"): REMOVED}
    )
    assert text == "agent:\n  # why\nmodel: x\n"
    assert apply_changes(text, {("agent", "max_turns"): 6}) == (
        "agent:\n  max_turns: 6\n  # why\nmodel: x\n"
    )


def test_windows_line_ends_stay() -> None:
    text = "a: 1\r\nb:\r\n  c: 2\r\n"
    assert apply_changes(text, {("b", "d"): 3}) == "a: 1\r\nb:\r\n  c: 2\r\n  d: 3\r\n"
    assert apply_changes(text, {("b", "c"): REMOVED}) == "a: 1\r\nb:\r\n"


def test_a_file_of_comments_only_gets_its_first_key() -> None:
    assert apply_changes("# nothing yet", {("a", "b"): 1}) == "# nothing yet\na:\n  b: 1\n"
    assert apply_changes("", {("a",): "x"}) == "a: x\n"


def test_anchors_and_flow_mappings_are_left_to_the_library() -> None:
    text = "# top\na: &one 1  # first\nb: *one\nc: {x: 1, y: 2}\n"
    edited = apply_changes(text, {("a",): 2, ("c", "x"): REMOVED})
    assert parse_text(edited)["a"] == 2
    assert parse_text(edited)["c"] == {"y": 2}
    assert "# top" in edited and "# first" in edited


def test_what_cannot_be_parsed_is_not_edited() -> None:
    with pytest.raises(BadYaml, match="line 3, column 1"):
        apply_changes("a: 1\nb: [\n", {("a",): 2})


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"a: 1\n  b: 2\n", "line 2, column 4: "),
        (b"a: 1\na: 2\n", "line 2, column 1: "),
        (b"- a\n", "line 1, column 1: the file must hold"),
        (b"a: \xff\n", "line 1 is not UTF-8"),
        (b"a: &x [*x]\n", "deeper"),
        (b"a: 1\n---\nb: 2\n", "line 2, column 1: "),
        (b"a: !!python/name:os.system\n", "line 1, column 4: "),
        (b"a: @\n", "line 1, column 4: "),
    ],
)
def test_a_broken_file_is_located(raw: bytes, words: str) -> None:
    with pytest.raises(BadYaml, match=words):
        parse_yaml(raw)


@given(st.binary())
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    with contextlib.suppress(BadYaml):
        assert isinstance(parse_yaml(raw), dict)


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=6)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
values: st.SearchStrategy[Any] = st.one_of(scalars, st.lists(scalars, max_size=3))
documents: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from("abcd"),
    st.one_of(values, st.dictionaries(st.sampled_from("xyz"), values, max_size=3)),
    max_size=4,
)
edits = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.sampled_from("abcd")),
            st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")),
        ),
        st.one_of(values, st.just(REMOVED)),
    ),
    min_size=1,
    max_size=4,
)


@given(values, names)
def test_what_is_written_is_read_back(value: Any, name: str) -> None:
    assert parse_text(f"k: {flow(value)}") == {"k": value}
    text = "\n".join(block_lines((name, name), value, 0))
    assert parse_text(text) == {name: {name: value}}


def commented(document: JsonObject, notes: st.DataObject) -> tuple[str, dict[str, str]]:
    """A document as a person would write it, with comments between its keys; for each comment the
    section that it stands in."""
    lines: list[str] = []
    comments: dict[str, str] = {}

    def note(section: str) -> None:
        if notes.draw(st.booleans()):
            words = f"# note {len(comments)}."
            comments[words] = section
            lines.append(f"    {words}" if section else words)

    for name, value in document.items():
        note("")
        if isinstance(value, dict) and value:
            lines.append(f"{name}:")
            for inner, held in value.items():
                note(name)
                lines.append(f"    {inner}: {flow(held)}")
        elif isinstance(value, list) and value and notes.draw(st.booleans()):
            lines.append(f"{name}:")
            lines += [f"- {flow(item)}" for item in value]
        else:
            lines.append(f"{name}: {flow(value)}")
    note("")
    return "\n".join(lines) + notes.draw(st.sampled_from(["", "\n", "\n\n"])), comments


@settings(max_examples=100, deadline=None)
@given(documents, edits, st.data())
def test_edits_keep_every_comment_and_all_other_data(
    document: JsonObject, steps: list[tuple[tuple[str, ...], Any]], notes: st.DataObject
) -> None:
    text, comments = commented(document, notes)
    for path, value in steps:
        before = parse_text(text)
        if len(path) == 2 and not isinstance(before.get(path[0]), dict):
            continue
        text = apply_changes(text, {path: value})
        after = parse_text(text)
        assert _without(after, path) == _without(before, path)
        assert _at(after, path) == (None if value is REMOVED else value)
    whole = {path[0] for path, _ in steps if len(path) == 1}
    for note, section in comments.items():
        assert note in text or section in whole


def _without(data: JsonObject, path: tuple[str, ...]) -> JsonObject:
    kept = {name: value for name, value in data.items() if name != path[0]}
    if len(path) == 2 and isinstance(data.get(path[0]), dict):
        inner = {name: value for name, value in data[path[0]].items() if name != path[1]}
        return {**kept, path[0]: inner} if inner else kept
    return kept


def _at(data: JsonObject, path: tuple[str, ...]) -> Any:
    held: Any = data
    for name in path:
        held = held.get(name) if isinstance(held, dict) else None
    return held
