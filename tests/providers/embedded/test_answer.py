"""Answers in the imposed form, read piece by piece."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.messages import AssistantMessage, Reasoning, StopReason, Text, ToolCall
from hermes.core.prompt import CallNamed, Delta, TextDelta
from hermes.providers.embedded.constrained_calls import ConstrainedReply


def read(*pieces: str, stop: StopReason = "done") -> tuple[list[Delta], AssistantMessage]:
    answer = ConstrainedReply()
    deltas = [delta for piece in pieces for delta in answer.feed(piece)]
    deltas += answer.finish()
    whole = AssistantMessage(parts=(Text(text="".join(pieces)),), stop=stop)
    return deltas, answer.message(whole, call_id="c1")


def text_of(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def cut_at(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in itertools.pairwise(edges)]


TEXTS = st.text()


@given(TEXTS, st.booleans(), st.sampled_from([None, 1, 4]), st.lists(st.integers(0, 999)))
def test_text_comes_out_as_it_was_meant_however_it_is_cut(
    text: str, ascii: bool, indent: int | None, places: list[int]
) -> None:
    raw = json.dumps({"text": text}, ensure_ascii=ascii, indent=indent)
    deltas, message = read(*cut_at(raw, places))
    assert text_of(deltas) == text
    assert message == AssistantMessage(parts=(Text(text=text),) if text else ())


@given(
    st.dictionaries(
        TEXTS, TEXTS | st.integers() | st.booleans() | st.none() | st.lists(TEXTS, max_size=3)
    ),
    st.sampled_from([None, 2]),
    st.lists(st.integers(0, 999)),
)
def test_a_call_comes_out_as_it_was_meant_however_it_is_cut(
    arguments: dict[str, object], indent: int | None, places: list[int]
) -> None:
    raw = json.dumps({"tool": "read_file", "arguments": arguments}, indent=indent)
    deltas, message = read(*cut_at(raw, places))
    assert deltas == [CallNamed(name="read_file")]
    call = ToolCall(id="c1", name="read_file", arguments=arguments)
    assert message == AssistantMessage(parts=(call,), stop="calls")


def test_text_is_shown_while_it_grows() -> None:
    answer = ConstrainedReply()
    shown = [list(answer.feed(piece)) for piece in ('{"te', 'xt": "Hel', "lo", "\\", "n!", '"}')]
    texts = ["".join(d.text for d in deltas if isinstance(d, TextDelta)) for deltas in shown]
    assert texts == ["", "Hel", "lo", "", "\n!", ""]


def test_a_character_of_two_escapes_is_shown_once() -> None:
    deltas, _ = read('{"text": "\\ud83d', "\\ude", '00!"}')
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["😀!"]


def test_half_a_character_can_be_stored() -> None:
    _, message = read('{"text": "\\ud83dx"}')
    assert message.text == "?x"


def test_text_that_is_cut_off_is_kept_as_far_as_it_came() -> None:
    deltas, message = read('{"text": "The answer is \\u00e', stop="length")
    assert text_of(deltas) == "The answer is "
    assert message == AssistantMessage(parts=(Text(text="The answer is "),), stop="length")


@pytest.mark.parametrize("stop", ["length", "cut"])
def test_a_call_that_is_cut_off_is_broken_and_never_run(stop: StopReason) -> None:
    _, message = read('{"tool": "write_file", "arguments": {"path": "a", "cont', stop=stop)
    (call,) = message.calls
    assert (call.name, call.arguments, message.stop) == ("write_file", {}, stop)
    assert call.broken == "the call is incomplete"


def test_an_answer_without_the_form_is_taken_as_words() -> None:
    deltas, message = read("I would ", "rather talk.")
    assert text_of(deltas) == "I would rather talk."
    assert message.text == "I would rather talk."


@pytest.mark.parametrize("fence", ["```json\n", "\n```\n", "  "])
def test_a_fence_around_the_form_is_no_part_of_it(fence: str) -> None:
    _, words = read(fence, '{"text": "Hi."}', "\n```")
    assert words.text == "Hi."
    deltas, message = read(fence, '{"tool": "ls", "arguments": {"a": 1}}', "\n```")
    assert deltas == [CallNamed(name="ls")]
    assert message.calls == (ToolCall(id="c1", name="ls", arguments={"a": 1}),)


def test_nothing_is_nothing() -> None:
    assert read("", "  ") == ([], AssistantMessage(parts=()))


def test_reasoning_stays_before_the_call() -> None:
    answer = ConstrainedReply()
    raw = '{"tool": "ls", "arguments": {}}'
    list(answer.feed(raw))
    thought = Reasoning(text="hm")
    whole = AssistantMessage(parts=(thought, Text(text=raw)))
    made = answer.message(whole, call_id="c9")
    assert made.parts == (thought, ToolCall(id="c9", name="ls", arguments={}))
