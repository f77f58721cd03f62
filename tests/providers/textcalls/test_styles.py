"""Every style, whole and split anywhere, alone and inside prose."""

from __future__ import annotations

import pytest

from hermes.core.messages import Reasoning, ToolCall
from hermes.core.prompt import CallNamed, Restarted
from tests.providers.textcalls.each import every, with_each
from tests.providers.textcalls.forms import EMPTY, FORMS, PLAN, READ, RUN, WRITE, Call, Form
from tests.providers.textcalls.hearing import calls_in, hear, streamed, texts_in

STRIDE = 4
marked = with_each([form for form in FORMS if not form.plain])
plain = with_each([form for form in FORMS if form.plain])


def expected(form: Form, calls: list[Call]) -> list[Call]:
    return calls[:1] if form.one else calls


@every
async def test_one_call(form: Form) -> None:
    for call in (READ, RUN, WRITE, PLAN, EMPTY):
        heard = await hear([form.write([call])])
        assert calls_in(heard) == [call]
        assert texts_in(heard) == [] and heard.shown == ""
        assert heard.whole.message.stop == "calls"
        assert [d for d in heard.deltas if isinstance(d, CallNamed)] == [CallNamed(name=call[0])]


@every
async def test_several_calls_in_order(form: Form) -> None:
    calls = [READ, WRITE, RUN]
    heard = await hear([form.write(calls)])
    assert calls_in(heard) == expected(form, calls)
    assert texts_in(heard) == [] and heard.shown == ""
    assert [call.id for call in heard.whole.message.calls] == [
        f"call_1_{n}" for n in range(len(expected(form, calls)))
    ]


@every
async def test_in_small_pieces(form: Form) -> None:
    text = form.write([WRITE, PLAN])
    for size in (1, 2, 3, 7):
        heard = await hear([text[at : at + size] for at in range(0, len(text), size)])
        assert calls_in(heard) == expected(form, [WRITE, PLAN]), size
        assert heard.shown == "" and not any(isinstance(d, Restarted) for d in heard.deltas)


@every
async def test_split_at_some_places(form: Form) -> None:
    """At others in each form."""
    await understood_split(form, first=FORMS.index(form) % STRIDE, stride=STRIDE)


@pytest.mark.slow
@every
async def test_split_at_every_place(form: Form) -> None:
    await understood_split(form, first=0, stride=1)


async def understood_split(form: Form, *, first: int, stride: int) -> None:
    before = "" if form.plain else "I will look.\n"
    text = before + form.write([READ, RUN])
    for at in range(first, len(text) + 1, stride):
        heard = await hear([text[:at], text[at:]])
        assert calls_in(heard) == expected(form, [READ, RUN]), text[:at]
        assert heard.shown == before, text[:at]


@marked
async def test_between_words(form: Form) -> None:
    if form.name == "hermes-no-end":
        return
    text = f"I will look at it.\n\n{form.write([READ])}\n\nThat is all."
    for size in (1, 5, len(text)):
        heard = await hear([text[at : at + size] for at in range(0, len(text), size)])
        assert calls_in(heard) == [READ]
        assert [t.strip() for t in texts_in(heard)] == ["I will look at it.", "That is all."]
        assert heard.shown == heard.whole.message.text
        assert not any(isinstance(d, Restarted) for d in heard.deltas)
        order = [type(part).__name__ for part in heard.whole.message.parts]
        assert order == ["Text", "ToolCall", "Text"]


@plain
async def test_what_looks_like_text_counts_only_at_the_end_after_an_announcement(
    form: Form,
) -> None:
    said = form.write([READ])
    announced = await hear([f"I'll look at it.\n\n{said}\n"])
    assert calls_in(announced) == [READ] and texts_in(announced) == ["I'll look at it.\n\n"]
    for text in (
        f"I'll look at it.\n\n{said}\n\nThat is all.",
        f"Files are fun.\n\n{said}",
        f"{said}\nis what I mean.",
    ):
        heard = await hear([text])
        assert calls_in(heard) == []
        assert heard.shown == text and texts_in(heard) == [text]


@plain
async def test_a_model_that_is_known_for_it_needs_no_announcement(form: Form) -> None:
    text = f"Files are fun.\n\n{form.write([READ])}"
    heard = await hear([text], style=form.style if form.style != "auto" else "llama")
    assert calls_in(heard) == [READ] and heard.shown == "Files are fun.\n\n"


@every
async def test_after_a_thought(form: Form) -> None:
    heard = await hear(list(form.write([RUN])), thought="Hm, <tool_call> or not?")
    assert calls_in(heard) == [RUN]
    assert heard.whole.message.parts[0] == Reasoning(text="Hm, <tool_call> or not?")
    assert isinstance(heard.whole.message.parts[-1], ToolCall)


@every
async def test_no_delta_ever_shows_a_part_of_the_mark_up(form: Form) -> None:
    before = "" if form.plain else "On it!\n"
    text = before + form.write([WRITE])
    heard = await hear(list(text))
    assert "".join(streamed(heard)) == before
