"""Conversations that are longer than the window."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.messages import AssistantMessage, Message, Text, UserMessage, user_says
from hermes.core.prompt import Prompt
from hermes.providers.embedded.engine_client import CUT, PromptFitter


def talk(*texts: str) -> tuple[Message, ...]:
    """A conversation of these texts, the person first."""
    return tuple(
        AssistantMessage(parts=(Text(text=text),)) if number % 2 else user_says(text)
        for number, text in enumerate(texts)
    )


def words(prompt: Prompt) -> list[str]:
    return [m.text for m in prompt.messages if isinstance(m, UserMessage | AssistantMessage)]


def estimated(fitting: PromptFitter, prompt: Prompt) -> int:
    return fitting.tokens(prompt.system) + sum(fitting.tokens(text) + 8 for text in words(prompt))


@given(
    st.integers(256, 8192),
    st.text(max_size=3000),
    st.lists(st.integers(1, 6000).map(lambda size: "wörd " * (size // 5 + 1)), min_size=1),
)
def test_whatever_is_said_it_fits_and_ends_with_the_newest_message(
    window: int, system: str, texts: list[str]
) -> None:
    fitting = PromptFitter(window)
    prompt = Prompt(system=system, messages=talk(*texts))
    made = fitting.fit(prompt, most_tokens=100)
    assert estimated(fitting, made) <= fitting.budget + len(CUT)
    assert made.messages
    shown = len(made.messages)
    if made.messages[-1] != prompt.messages[-1]:
        assert shown == 1
        assert CUT in words(made)[-1]
    else:
        assert made.messages == prompt.messages[-shown:]


def test_what_fits_is_sent_as_it_is() -> None:
    prompt = Prompt(system="Be brief.", messages=talk("a", "b", "c"), max_tokens=7)
    assert PromptFitter(4096).fit(prompt, most_tokens=512) == prompt


def test_the_beginning_stays_put_while_the_conversation_grows_after_a_cut() -> None:
    fitting = PromptFitter(1024)
    texts: list[str] = []
    starts: list[Message] = []
    for number in range(60):
        texts.append(f"{number} " + "word " * 20)
        made = fitting.fit(Prompt(system="", messages=talk(*texts)), most_tokens=64)
        starts.append(made.messages[0])
    moves = sum(before != after for before, after in itertools.pairwise(starts))
    assert 2 <= moves <= 12
    assert fitting.is_cut


def test_a_conversation_that_was_rewound_is_seen_from_its_beginning_again() -> None:
    fitting = PromptFitter(512)
    long = talk(*(f"{number} " + "word " * 50 for number in range(20)))
    fitting.fit(Prompt(system="", messages=long), most_tokens=64)
    assert fitting.is_cut
    short = long[:2]
    assert fitting.fit(Prompt(system="", messages=short), most_tokens=64).messages == short
    assert not fitting.is_cut


def test_the_answer_gets_what_the_window_leaves() -> None:
    fitting = PromptFitter(1024)
    prompt = Prompt(system="", messages=talk("word " * 450))
    made = fitting.fit(prompt, most_tokens=4096)
    assert made.messages == prompt.messages
    assert 64 <= (made.max_tokens or 0) <= 1024 - 750
    wish = Prompt(system="", messages=talk("hi"), max_tokens=9)
    assert fitting.fit(wish, most_tokens=4096).max_tokens == 9


def test_the_count_of_the_model_corrects_the_guess() -> None:
    fitting = PromptFitter(4096)
    prompt = Prompt(system="x" * 4000, messages=talk("hi"))
    before = fitting.tokens("x" * 4000)
    fitting.learn(prompt, 1016)
    assert before == 1334
    assert 1000 <= fitting.tokens("x" * 4000) <= 1060


def test_every_refusal_leads_to_a_shorter_prompt() -> None:
    fitting = PromptFitter(1024)
    prompt = Prompt(system="", messages=talk("你好" * 2000))
    sizes = []
    for body in ('{"n_prompt_tokens":2950,"n_ctx":1024}', "too long", "too long"):
        made = fitting.fit(prompt, most_tokens=64)
        sizes.append(len(words(made)[0]))
        fitting.learn_refusal(made, body)
    made = fitting.fit(prompt, most_tokens=64)
    sizes.append(len(words(made)[0]))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 4
    assert sizes[1] < sizes[0] / 3
