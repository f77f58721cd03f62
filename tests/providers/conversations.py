"""Conversations for property tests: any that could be stored, and those that are valid."""

from __future__ import annotations

from hypothesis import strategies as st

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


def issuer(wire: str) -> str:
    return f"{wire}:127.0.0.1/scripted"


words = st.sampled_from(
    ["", " ", "\n", "hi", "what?", "a\ud800b", "naïve ☃", "😀", "}]}", "x" * 90]
)
some_words = st.sampled_from(["hi", "what?", "naïve ☃", "😀", "}]}", '"quoted"', "two\nlines"])
ids = st.sampled_from(["", "a", "b", "call|x", "c" * 80, "ü"])
names = st.sampled_from(["read_file", "functions.run", "", "bad name", "n" * 80])
arguments = st.dictionaries(
    st.sampled_from(["path", "n", "ü"]), st.one_of(words, st.integers(), st.none()), max_size=2
)


def sealed_for(wire: str) -> dict[str, object]:
    if wire == "messages":
        return {"type": "thinking", "thinking": "hm", "signature": "sig"}
    if wire == "responses":
        return {"type": "reasoning", "summary": [], "encrypted_content": "enc"}
    return {"reasoning_content": "hm"}


texts = st.builds(Text, text=words)
images = st.builds(Image, file=st.just("/nowhere/cat.png"), media_type=st.just("image/png"))
thoughts = st.one_of(
    st.builds(Reasoning, text=words),
    *(
        st.builds(Reasoning, text=words, sealed=st.just(sealed_for(wire)), issuer=st.just(by))
        for wire in ("chat", "responses", "messages")
        for by in (issuer(wire), "elsewhere")
    ),
)
calls = st.builds(ToolCall, id=ids, name=names, arguments=arguments)


def _tuples(
    *kinds: st.SearchStrategy[object], most: int = 3
) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(st.one_of(*kinds), max_size=most).map(tuple)


users = st.builds(UserMessage, parts=_tuples(texts, images))
assistants = st.builds(AssistantMessage, parts=_tuples(texts, thoughts, calls, most=4))
results = st.builds(ToolResult, call_id=ids, name=names, parts=_tuples(texts, images, most=2))
tool_messages = st.builds(ToolMessage, results=st.lists(results, max_size=3).map(tuple))
any_conversation: st.SearchStrategy[tuple[Message, ...]] = st.lists(
    st.one_of(users, assistants, tool_messages), max_size=9
).map(tuple)


@st.composite
def growing_conversation(draw: st.DrawFn, wire: str) -> tuple[Message, ...]:
    """As a session makes it: a question, then rounds of calls or an answer and a new question."""
    messages: list[Message] = [UserMessage(parts=(Text(text=draw(some_words)),))]
    for number in range(draw(st.integers(1, 5))):
        parts: list[Text | Reasoning | ToolCall] = []
        if draw(st.booleans()):
            parts.append(Reasoning(text="hm", sealed=sealed_for(wire), issuer=issuer(wire)))
        if draw(st.booleans()):
            parts.append(Text(text=draw(some_words)))
            messages.append(AssistantMessage(parts=tuple(parts)))
            messages.append(UserMessage(parts=(Text(text=draw(some_words)),)))
            continue
        made = [
            ToolCall(id=f"call_{number}_{k}", name="read_file", arguments={"b": k, "a": 1})
            for k in range(draw(st.integers(1, 3)))
        ]
        messages.append(AssistantMessage(parts=(*parts, *made), stop="calls"))
        messages.append(ToolMessage(results=tuple(_answer(call, draw(words)) for call in made)))
        if draw(st.booleans()):
            messages.append(UserMessage(parts=(Text(text=draw(some_words)),)))
    return tuple(messages)


def _answer(call: ToolCall, text: str) -> ToolResult:
    clean = text.encode("utf-8", "replace").decode()
    return ToolResult(call_id=call.id, name=call.name, parts=(Text(text=clean),))
