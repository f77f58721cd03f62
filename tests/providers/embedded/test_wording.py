"""Tools, calls and results told in plain words."""

from __future__ import annotations

from hermes.core.messages import (
    AssistantMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    user_says,
)
from hermes.core.prompt import Prompt, ToolSpec
from hermes.providers.embedded.constrained_calls import with_tools_as_text, without_tools

LS = ToolSpec(name="ls", description="List files.", parameters={"type": "object"})
CALL = ToolCall(id="c1", name="ls", arguments={"path": "."})
RESULT = ToolResult(call_id="c1", name="ls", parts=(Text(text="a.txt"),))
FAILED = ToolResult(call_id="c2", name="rm", parts=(Text(text="no such file"),), failed=True)
PROMPT = Prompt(
    system="Be brief.",
    messages=(
        user_says("What is here?"),
        AssistantMessage(parts=(Text(text="I look."), CALL), stop="calls"),
        ToolMessage(results=(RESULT, FAILED)),
        AssistantMessage(parts=(Text(text='Only "a.txt".'),)),
        user_says("Thanks."),
    ),
    tools=(LS,),
    max_tokens=50,
)
TOLD = UserMessage(
    parts=(Text(text="Result of ls:\na.txt\n\nrm failed:\nno such file"),), origin="tool"
)


def assistant(text: str) -> AssistantMessage:
    return AssistantMessage(parts=(Text(text=text),))


def test_a_model_without_tools_is_told_results_but_no_calls() -> None:
    assert without_tools(PROMPT) == Prompt(
        system="Be brief.",
        messages=(
            user_says("What is here?"),
            assistant("I look."),
            TOLD,
            assistant('Only "a.txt".'),
            user_says("Thanks."),
        ),
        max_tokens=50,
    )


def test_a_model_with_tools_sees_its_own_answers_in_the_form_it_must_use() -> None:
    made = with_tools_as_text(PROMPT)
    assert made.messages == (
        user_says("What is here?"),
        assistant('{"tool":"ls","arguments":{"path":"."}}'),
        TOLD,
        assistant('{"text":"Only \\"a.txt\\"."}'),
        user_says("Thanks."),
    )
    assert made.tools == ()
    assert made.system.startswith("Be brief.\n\n# Tools\n")
    line = '{"name":"ls","description":"List files.","parameters":{"type":"object"}}'
    assert line in made.system.splitlines()


def test_the_beginning_does_not_move_when_the_conversation_grows() -> None:
    shorter = Prompt(system=PROMPT.system, messages=PROMPT.messages[:3], tools=PROMPT.tools)
    before, after = with_tools_as_text(shorter), with_tools_as_text(PROMPT)
    assert after.system == before.system
    assert after.messages[:3] == before.messages
