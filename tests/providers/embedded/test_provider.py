"""The embedded model over a runtime that plays a script: prompts, tools, failures."""

from __future__ import annotations

import json

import pytest

from hermes.codec.values import replace
from hermes.core.errors import ProviderError
from hermes.core.messages import AssistantMessage, Message, Text, ToolCall, Usage, user_says
from hermes.core.prompt import (
    CallNamed,
    Delta,
    Notice,
    Prompt,
    Reply,
    Restarted,
    TextDelta,
    ToolSpec,
)
from hermes.providers.embedded.constrained_calls import UNCONSTRAINED, answer_schema
from hermes.providers.embedded.engines import EnginePool
from tests.providers.embedded.conftest import Played, heard

LS = ToolSpec(
    name="ls",
    description="List files.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)
ASKED = Prompt(system="Be brief.", messages=(user_says("What is here?"),), tools=(LS,))
CALLED = {"content": '{"tool": "ls", "arguments": {"path": "/tmp"}}'}
SAID = {"content": '{"text": "Two files."}'}


def notices(items: list[Delta | Reply]) -> list[str]:
    return [item.text for item in items if isinstance(item, Notice)]


def text_of(items: list[Delta | Reply]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))


def replied(items: list[Delta | Reply]) -> Reply:
    *deltas, reply = items
    assert isinstance(reply, Reply)
    assert not any(isinstance(item, Reply) for item in deltas)
    return reply


def long_talk(messages: int, size: int) -> tuple[Message, ...]:
    made: list[Message] = []
    for number in range(messages):
        made.append(user_says(f"question {number} " + "word " * size))
        made.append(AssistantMessage(parts=(Text(text=f"answer {number}"),)))
    return (*made, user_says("the newest question"))


async def test_a_call_in_the_imposed_form_is_a_real_call(played: Played) -> None:
    model = played.model([CALLED])
    items = await heard(model, ASKED)
    call = ToolCall(id="call_1", name="ls", arguments={"path": "/tmp"})
    path = str(model.weights.path)
    assert items == [
        Notice(text="Loading model.gguf (1 MB)…"),
        CallNamed(name="ls"),
        Reply(
            message=AssistantMessage(parts=(call,), stop="calls"),
            usage=Usage(input=20, output=5, requests=1, cost=0.0),
            model=path,
            provider="embedded",
        ),
    ]
    (request,) = played.requests()
    assert request["known"]
    body = request["body"]
    assert "tools" not in body
    assert body["response_format"]["json_schema"]["schema"] == answer_schema((LS,))
    assert '{"name":"ls"' in body["messages"][0]["content"]


async def test_an_answer_in_the_imposed_form_is_streamed_words(played: Played) -> None:
    text = "Two files, and many more words than are ever joined to one piece. " * 64
    items = await heard(played.model([{"content": json.dumps({"text": text})}]), ASKED)
    texts = [item.text for item in items if isinstance(item, TextDelta)]
    assert len(texts) > 1
    assert "".join(texts) == text
    assert replied(items).message == AssistantMessage(parts=(Text(text=text),))


async def test_text_only_leaves_no_way_to_call(played: Played) -> None:
    model = played.model([SAID])
    await heard(model, Prompt(system="", messages=ASKED.messages, tools=(LS,), text_only=True))
    body = played.requests()[0]["body"]
    assert body["response_format"]["json_schema"]["schema"] == answer_schema(())
    assert '{"name":"ls"' in body["messages"][0]["content"]


async def test_a_small_model_gets_no_tools_and_no_form(played: Played) -> None:
    items = await heard(played.model([{"content": "Hello."}], parameters=135_000_000), ASKED)
    assert text_of(items) == "Hello."
    body = played.requests()[0]["body"]
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is here?"},
    ]
    assert "response_format" not in body
    assert (body["temperature"], body["max_tokens"]) == (0.2, 512)


async def test_a_small_model_that_does_not_stop_is_stopped(played: Played) -> None:
    model = played.model([{"content": "la la", "finish": "length"}], parameters=9)
    items = await heard(model, ASKED)
    assert text_of(items) == "la la …"
    assert replied(items).message.text == "la la …"
    assert len(played.requests()) == 1


@pytest.mark.parametrize("parameters", [9, 8_000_000_000])
async def test_silence_is_asked_about_once_and_then_said(played: Played, parameters: int) -> None:
    silent = {"content": '{"text": ""}' if parameters > 9 else ""}
    spoken = SAID if parameters > 9 else {"content": "Two files."}
    model = played.model([silent, spoken, silent, silent], parameters=parameters)
    first, second = await heard(model, ASKED), await heard(model, ASKED)
    assert text_of(first) == replied(first).message.text == "Two files."
    assert text_of(second) == replied(second).message.text == "(no answer)"
    assert replied(second).usage == Usage(input=40, output=10, requests=2, cost=0.0)


async def test_a_call_that_was_cut_off_is_asked_for_again(played: Played) -> None:
    cut = {"content": '{"tool": "ls", "arguments": {"pa', "finish": "length"}
    items = await heard(played.model([cut, CALLED]), ASKED)
    assert [call.arguments for call in replied(items).message.calls] == [{"path": "/tmp"}]
    first, second = (request["body"]["max_tokens"] for request in played.requests())
    assert second > first


async def test_a_long_conversation_never_fails(played: Played) -> None:
    prompt = Prompt(system="Be brief.", messages=long_talk(100, 40))
    refused = {
        "status": 400,
        "body": {
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "message": "request (2000 tokens) exceeds the available context size",
                "n_prompt_tokens": 2000,
                "n_ctx": 1024,
            }
        },
    }
    model = played.model([refused, refused, {"content": "Fine."}], parameters=9, window=1024)
    items = await heard(model, prompt)
    assert text_of(items) == "Fine."
    assert notices(items)[1:] == [
        "The conversation is longer than the model's window (1024 tokens); it sees only the"
        " newest part."
    ]
    asked = [request["body"]["messages"] for request in played.requests()]
    assert len(asked[0]) > len(asked[1]) >= len(asked[2])
    for messages in asked:
        assert messages[0] == {"role": "system", "content": "Be brief."}
        assert messages[-1] == {"role": "user", "content": "the newest question"}


async def test_tools_that_have_no_room_are_left_out_and_that_is_said_once(played: Played) -> None:
    large = ToolSpec(name="x", description="word " * 900, parameters={"type": "object"})
    model = played.model([{"content": "One."}, {"content": "Two."}], window=1024)
    prompt = Prompt(system="", messages=ASKED.messages, tools=(large,))
    first, second = await heard(model, prompt), await heard(model, prompt)
    assert (text_of(first), text_of(second)) == ("One.", "Two.")
    assert "too small for the tools" in notices(first)[0]
    assert notices(second) == []
    assert "response_format" not in played.requests()[0]["body"]


async def test_a_runtime_that_dies_in_an_answer_is_started_again(played: Played) -> None:
    dying = {"content": '{"te', "die": True}
    items = await heard(played.model([dying, SAID]), ASKED)
    assert replied(items).message.text == "Two files."
    assert notices(items) == ["Loading model.gguf (1 MB)…"] * 2
    assert len({request["pid"] for request in played.requests()}) == 2


async def test_words_that_were_shown_before_a_death_are_continued(played: Played) -> None:
    dying = {"content": '{"text": "One, two', "die": True}
    rest = {"content": '{"text": ", three."}'}
    items = await heard(played.model([dying, rest]), ASKED)
    assert Restarted() not in items
    assert text_of(items) == replied(items).message.text == "One, two, three."


async def test_a_runtime_that_keeps_dying_is_given_up(played: Played) -> None:
    dying = {"content": "", "die": True}
    with pytest.raises(ProviderError, match="lack of memory; free memory or choose a smaller"):
        await heard(played.model([dying] * 9), ASKED)
    assert len(played.starts()) == 2


async def test_a_connection_that_is_just_closed_is_no_failure(played: Played) -> None:
    plain = replace(ASKED, tools=())
    items = await heard(played.model([{"hang_up": True}, {"content": "Two files."}]), plain)
    assert replied(items).message.text == "Two files."
    assert len({request["pid"] for request in played.requests()}) == 1


async def test_a_runtime_that_never_answers_is_given_up(played: Played) -> None:
    with pytest.raises(ProviderError, match="closed the connection before it responded"):
        await heard(played.model([{"hang_up": True}] * 9), replace(ASKED, tools=()))
    assert len(played.requests()) == 3


async def test_a_file_that_cannot_be_held_to_the_form_is_asked_freely(played: Played) -> None:
    refused = {"status": 400, "body": {"error": {"code": 400, "message": "no samplers"}}}
    model = played.model([refused, CALLED, SAID])
    items = await heard(model, ASKED)
    assert notices(items)[1:] == [UNCONSTRAINED]
    assert [call.name for call in replied(items).message.calls] == ["ls"]
    assert notices(await heard(model, ASKED)) == []
    formed = ["response_format" in request["body"] for request in played.requests()]
    assert formed == [True, False, False]


async def test_ids_of_calls_are_new_and_always_the_same(played: Played) -> None:
    model = played.model([CALLED, CALLED])
    earlier = ToolCall(id="call_2", name="ls")
    prompt = Prompt(
        system="",
        messages=(user_says("a"), AssistantMessage(parts=(earlier,), stop="calls")),
        tools=(LS,),
    )
    first, second = await heard(model, prompt), await heard(model, prompt)
    ids = [replied(items).message.calls[0].id for items in (first, second)]
    assert ids == ["call_2_2", "call_2_2"]


async def test_closing_the_engines_ends_the_process_of_a_model(played: Played) -> None:
    played.model([{"content": "Hi."}], parameters=9)
    engines = EnginePool()
    await heard(played.with_engines(engines), ASKED)
    (request,) = played.requests()
    await engines.close()
    with pytest.raises(ProcessLookupError):
        played.signal(request["pid"])


async def test_thinking_is_switched_off_where_the_form_leaves_no_place_for_it(
    played: Played,
) -> None:
    model = played.model([SAID], tokenizer__chat_template="{{ enable_thinking }}")
    await heard(model, ASKED)
    body = json.dumps(played.requests()[0]["body"])
    assert '"chat_template_kwargs": {"enable_thinking": false}' in body
