"""Whatever the arguments hold and wherever the text is split: the right calls, or text."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.providers.textcalls.styles.tags import strip_value
from tests.providers.asking import Heard
from tests.providers.textcalls.forms import FORMS, Call, Form
from tests.providers.textcalls.hearing import calls_in, heard_now, texts_in

MARKS = (
    "<tool_call>", "</tool_call>", "</parameter>", "</function>", "<function=", "[TOOL_CALLS]",
    "</invoke>", "<escape>", '<|"|>', "</arg_value>", "</content>", "<|call|>",
    "<｜tool▁call▁end｜>", '"', "'", "\\", "{", "}", "[", "]", "(", ")", "\n", "Observation:",
    "`", "```", '"""',
)  # fmt: skip

any_text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
texts = st.lists(any_text | st.sampled_from(MARKS), max_size=6).map("".join)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
a_call: st.SearchStrategy[Call] = st.one_of(
    st.builds(lambda p, c: ("write_file", {"path": p, "content": c}), texts, texts),
    st.builds(lambda items: ("todo", {"items": items}), st.lists(objects, max_size=3)),
    st.builds(
        lambda c, t, b: ("terminal", {"command": c, "timeout": t, "background": b}),
        texts,
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
    ),
)
forms = st.sampled_from(FORMS)
cuts = st.lists(st.integers(0, 4000), max_size=6)
# Their values may hold what ends them, because nothing in them can be escaped.
UNSAFE = ("functiongemma", "gemma4")


def split(text: str, at: list[int]) -> list[str]:
    places = [0, *sorted(min(place, len(text)) for place in at), len(text)]
    return [text[a:b] for a, b in pairwise(places)]


def escapes(form: Form) -> bool:
    """The style can write any value so that it can be read again."""
    return form.typed and form.name not in UNSAFE


@settings(max_examples=150, deadline=None)
@given(forms, st.lists(a_call, min_size=1, max_size=3), cuts)
def test_any_arguments_split_anywhere(form: Form, calls: list[Call], at: list[int]) -> None:
    if form.one:
        calls = calls[:1]
    text = form.write(calls)
    heard = heard_now(split(text, at))
    if calls_in(heard) == calls:
        assert heard.shown == "" and texts_in(heard) == []
        return
    assert not escapes(form), text
    assert all(set_off(call) in map(set_off, calls) for call in usable_calls(heard))


def usable_calls(heard: Heard) -> list[Call]:
    return [(c.name, c.arguments) for c in heard.whole.message.calls if not c.broken]


def set_off(call: Call) -> Call:
    """Some styles may or may not set a value off from its tags by lines: nobody can tell."""
    name, arguments = call
    return name, {key: strip_value(v) if isinstance(v, str) else v for key, v in arguments.items()}


@settings(max_examples=100, deadline=None)
@given(st.lists(any_text | st.sampled_from(MARKS), max_size=30), cuts)
def test_any_text_is_said_as_it_is(pieces: list[str], at: list[int]) -> None:
    text = "".join(pieces)
    heard = heard_now(split(text, at))
    assert usable_calls(heard) == []
    # Markup without a call in it is reported.
    if not calls_in(heard):
        assert heard.shown.strip() == text.strip()
