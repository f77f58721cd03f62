"""Transcripts of any kind for property tests, and the models that may go on with them."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

from hypothesis import strategies as st

from hermes.codec.values import JsonObject
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.providers.endpoint import Endpoint
from hermes.providers.profile import ModelProfile, WireName

# Pictures by the name of their file: those that exist hold their own name, the other is gone.
PICTURES = ("cat.png", "dog.png")
GONE = "gone.png"


class Target(NamedTuple):
    """A model that takes over. Its name is in every thought that it seals."""

    model: str
    wire: WireName
    profile: ModelProfile
    effort: str = ""

    @property
    def endpoint(self) -> Endpoint:
        url = "http://127.0.0.1"
        return Endpoint(
            name="scripted", wire=self.wire, url=url, model=self.model, profile=self.profile
        )


TARGETS = (
    Target("plain", "chat", ModelProfile()),
    Target("deepseek", "chat", ModelProfile(replay="reasoning_content", image_results=False)),
    Target(
        "aggregated",
        "chat",
        ModelProfile(marks="envelope", replay="reasoning_details", effort="envelope"),
        "high",
    ),
    Target("blind", "chat", ModelProfile(images=False, ascii=True, developer=True)),
    Target("gpt", "responses", ModelProfile(replay="sealed", effort="responses"), "low"),
    Target("gpt-blind", "responses", ModelProfile(replay="sealed", image_results=False)),
    Target(
        "claude",
        "messages",
        ModelProfile(replay="sealed", marks="native", effort="adaptive"),
        "high",
    ),
    Target(
        "claude-old",
        "messages",
        ModelProfile(replay="sealed", marks="native", effort="budget", max_output=64_000),
        "high",
    ),
    Target("stranger", "messages", ModelProfile(image_results=False, ascii=True)),
)

# Text


anything = st.text(st.characters(exclude_categories=()), max_size=9)
words = st.one_of(
    st.sampled_from(["", " ", "\n", "hi", "a\ud800b", "\ud83d\ude00", "naïve ☃", "}]}", '"}]}']),
    anything,
    st.just("x" * 90),
)
said = st.one_of(st.sampled_from(["hi", "two\nlines", " padded ", "😀"]), words)
texts = st.builds(Text, text=said)
images = st.builds(Image, file=st.sampled_from([*PICTURES, GONE]), media_type=st.just("image/png"))


def several(
    *kinds: st.SearchStrategy[Any], most: int, least: int = 0
) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.one_of(*kinds), min_size=least, max_size=most).map(tuple)


users = st.builds(UserMessage, parts=several(texts, texts, images, most=3))

# Thoughts


def sealed_by(target: Target, number: int, text: str, *, hidden: bool) -> JsonObject:
    """A thought as the model would have sealed it; `hidden` is a form without words."""
    seal = f"{target.model}#{number}"
    if target.wire == "responses":
        summary = [] if hidden else [{"type": "summary_text", "text": text}]
        return {"type": "reasoning", "summary": summary, "encrypted_content": seal}
    if target.wire == "messages":
        if hidden:
            return {"type": "redacted_thinking", "data": seal}
        return {"type": "thinking", "thinking": text, "signature": seal}
    detail = {"type": "reasoning.text", "text": text, "signature": seal, "index": 0}
    return {"reasoning_content": seal, "reasoning_details": [detail]}


@st.composite
def thoughts(draw: st.DrawFn, by: Target) -> Reasoning:
    text = draw(words)
    if draw(st.integers(0, 3)) == 0:
        return Reasoning(text=text)
    sealed = sealed_by(by, draw(st.integers(0, 99)), text, hidden=draw(st.booleans()))
    return Reasoning(text=text, sealed=sealed, issuer=by.endpoint.issuer)


# Calls and their results


ids = st.one_of(st.sampled_from(["", "a", "a", "b", "call|x", "c" * 80, "ü", "call_1"]), anything)
names = st.one_of(st.sampled_from(["read_file", "functions.run", "", "n" * 80]), anything)


def json_objects(text: st.SearchStrategy[str]) -> st.SearchStrategy[JsonObject]:
    single = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        text,
    )
    several = st.recursive(
        single,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
        max_leaves=4,
    )
    return st.dictionaries(text, several, max_size=3)


arguments = json_objects(words)
calls = st.one_of(
    st.builds(ToolCall, id=ids, name=names, arguments=arguments),
    st.builds(ToolCall, id=ids, name=names, broken=st.just("the arguments are no JSON: {")),
)


@st.composite
def replies(draw: st.DrawFn) -> AssistantMessage:
    """Of any of the models."""
    by = draw(st.sampled_from(TARGETS))
    parts = draw(several(texts, thoughts(by), calls, most=5))
    return AssistantMessage(parts=parts, stop=draw(st.sampled_from(get_args(StopReason))))


@st.composite
def answers(draw: st.DrawFn, to: tuple[ToolCall, ...]) -> tuple[Message, ...]:
    """Results of these calls: all of them or some, once or twice, in any order, in one message or
    several, with words of the user in between; and some that answer nothing."""
    results = [draw(result_of(call)) for call in to if draw(st.integers(0, 5))]
    results += [draw(result_of(call)) for call in to if not draw(st.integers(0, 7))]
    if not draw(st.integers(0, 7)):
        results.append(
            draw(st.builds(ToolResult, call_id=ids, name=names, parts=several(texts, most=1)))
        )
    if not draw(st.integers(0, 3)):
        results = draw(st.permutations(results))
    cut = draw(st.integers(0, len(results))) if not draw(st.integers(0, 3)) else len(results)
    steering = draw(several(users, most=1)) if not draw(st.integers(0, 3)) else ()
    halves = (tuple(results[:cut]), tuple(results[cut:]))
    first, second = (ToolMessage(results=half) for half in halves)
    return tuple(m for m in (first, *steering, second) if m != ToolMessage(results=()))


@st.composite
def result_of(draw: st.DrawFn, call: ToolCall) -> ToolResult:
    parts = draw(several(texts, texts, images, most=2))
    return ToolResult(call_id=call.id, name=call.name, parts=parts, failed=draw(st.booleans()))


@st.composite
def transcripts(draw: st.DrawFn) -> tuple[Message, ...]:
    """Mostly in an order that a session could make, with whatever may go wrong in one."""
    messages: list[Message] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["talk", "talk", "work", "work", "work", "users", "any"]))
        if kind == "users":
            messages += draw(several(users, most=2))
        elif kind == "any":
            loose = st.builds(ToolMessage, results=several(result_of(draw(calls)), most=2))
            messages += draw(several(users, replies(), loose, most=2))
        else:
            messages.append(draw(users))
            reply = draw(replies())
            messages.append(reply)
            if kind == "work":
                messages += draw(answers(reply.calls))
    return tuple(messages)
