"""A bound on the tokens of a prompt is never below what a tokenizer makes of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.json import encode
from hermes.codec.values import replace
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.core.prompt import Prompt, ToolSpec
from hermes.core.prompt_bound import FIXED_TOKENS, IMAGE_TOKENS, PromptBound, message_bound

WORDS = st.text(st.characters(codec="utf-8"), max_size=40)
TEXTS = st.builds(Text, text=WORDS)
CALLS = st.builds(ToolCall, id=WORDS, name=WORDS, arguments=st.dictionaries(WORDS, WORDS))
SAID = st.one_of(TEXTS, CALLS, st.builds(Reasoning, text=WORDS))
RESULTS = st.builds(ToolResult, call_id=WORDS, name=WORDS, parts=st.tuples(TEXTS))
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, parts=st.lists(TEXTS, max_size=3).map(tuple)),
    st.builds(AssistantMessage, parts=st.lists(SAID, max_size=3).map(tuple)),
    st.builds(ToolMessage, results=st.lists(RESULTS, max_size=3).map(tuple)),
)
PROMPTS = st.builds(
    Prompt,
    system=WORDS,
    messages=st.lists(MESSAGES, max_size=4).map(tuple),
    tools=st.lists(
        st.builds(ToolSpec, name=WORDS, description=WORDS, parameters=st.just({"type": "object"})),
        max_size=2,
    ).map(tuple),
)


def letters(message: Message) -> int:
    """The bytes of all words in a message."""
    if isinstance(message, ToolMessage):
        return sum(len(result.text.encode()) for result in message.results)
    reasoning = message.reasoning if isinstance(message, AssistantMessage) else ""
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    size = len(message.text.encode()) + len(reasoning.encode())
    return size + sum(len(call.name.encode()) + len(encode(call.arguments)) for call in calls)


@given(PROMPTS)
def test_a_token_has_at_least_one_byte(prompt: Prompt) -> None:
    words = len(prompt.system.encode()) + sum(map(letters, prompt.messages))
    tools = sum(len(encode(tool)) for tool in prompt.tools)
    assert PromptBound().of(prompt) >= words + tools + FIXED_TOKENS


@given(PROMPTS, st.lists(MESSAGES, max_size=3), st.integers(0, 50))
def test_only_what_is_new_is_guessed(prompt: Prompt, more: list[Message], told: int) -> None:
    bound = PromptBound()
    bound.learn(prompt, told)
    longer = replace(prompt, messages=(*prompt.messages, *more))
    assert bound.of(longer) == told + sum(map(message_bound, more))


def test_another_beginning_is_guessed_as_a_whole() -> None:
    bound, prompt = PromptBound(), Prompt(system="Be kind.", messages=())
    bound.learn(prompt, 5)
    assert bound.of(prompt) == 5
    assert bound.of(replace(prompt, system="Be brief.")) > FIXED_TOKENS


def test_a_side_way_does_not_make_it_forget_the_main_one() -> None:
    bound, first, aside = PromptBound(), Text(text="one"), Text(text="aside")
    prompt = Prompt(system="", messages=(UserMessage(parts=(first,)),))
    bound.learn(prompt, 7)
    bound.learn(replace(prompt, messages=(*prompt.messages, UserMessage(parts=(aside,)))), 11)
    assert bound.of(prompt) == 7


def test_a_picture_counts_as_the_dearest_one() -> None:
    picture = Image(file="a.png", media_type="image/png")
    assert message_bound(UserMessage(parts=(picture,))) > IMAGE_TOKENS
