"""Several models answer over real HTTP, and one combines their answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.commands.catalogue import COMMANDS
from hermes.commands.registry import CommandRegistry, ShowText, StartWork
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.events import ModelCalled
from hermes.core.messages import AssistantMessage, Text, user_says
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, fails, says, says_nothing

KEY = "sk-ant-api03-" + "Zq9" * 20


class Panel:
    """Models on one server that answer by name; `main` is the model of the session."""

    def __init__(self, **answers: Step) -> None:
        self.answers = answers
        self.server = ScriptedServer(self._reply)

    def _reply(self, request: Request) -> Step:
        step = self.answers[request.body["model"]]
        if request.body["model"] == "main" and len(request.body["messages"]) > 2:
            return says("Combined.")
        return step

    def asked(self, model: str) -> list[Request]:
        return [each for each in self.server.requests if each.body["model"] == model]


def settings(url: str, references: str, extra: str, least: int) -> str:
    entries = ", ".join(f"{{provider: box, model: {name}}}" for name in references.split())
    return f"""\
model: {{default: main, provider: box}}
providers:
  box: {{base_url: '{url}/v1', models: {{a: {{price_input: 1, price_output: 2}}, b: {{}}}}}}
toolsets: [hermes-cli, moa]
auxiliary: {{title_generation: {{provider: none}}}}
moa:
  {extra}
  presets:
    default:
      reference_models: [{entries}]
      aggregator: {{provider: box, model: c}}
      min_successful_references: {least}
      max_retries: 0
"""


class Chat:
    def __init__(self, app: App, session: Session) -> None:
        self.app = app
        self.session = session
        self.registry = CommandRegistry(COMMANDS, "cli")
        self.background_work = None

    async def moa(self, line: str) -> str:
        outcome = await self.registry.run(line, self)
        assert isinstance(outcome, StartWork), outcome
        return await outcome.work()


Start = Callable[..., Awaitable[Chat]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def make(
            panel: Panel, references: str = "a b", *, extra: str = "", least: int = 1
        ) -> Chat:
            await stack.enter_async_context(panel.server)
            home = tmp_path / "home"
            home.mkdir()
            text = settings(panel.server.url, references, extra, least)
            (home / "config.yaml").write_text(text)
            app = App(load(Home(home), env={}), env={}, world=World())
            await stack.enter_async_context(app)
            request = SessionRequest(source="cli", attended=False, cwd=str(tmp_path))
            return Chat(app, await app.open(request))

        yield make


async def test_the_aggregator_sees_all_answers_and_its_text_joins_the_conversation(
    start: Start,
) -> None:
    panel = Panel(a=says("Four."), b=says("Five."), c=says("It is four."))
    chat = await start(panel)

    assert await chat.moa("/moa What is 2 + 2?") == "↪ What is 2 + 2?\nIt is four."

    for model in "ab":
        (asked,) = panel.asked(model)
        assert [each["content"] for each in asked.body["messages"]] == ["What is 2 + 2?"]
        assert asked.body["temperature"] == 0.6
        assert "tools" not in asked.body
    (asked,) = panel.asked("c")
    assert "[1]\nFour.\n\n[2]\nFive." in asked.body["messages"][0]["content"]
    assert asked.body["temperature"] == 0.4
    question, answer = chat.session.transcript.messages
    assert (question, answer) == (
        user_says("What is 2 + 2?"),
        AssistantMessage(parts=(Text(text="It is four."),)),
    )


async def test_the_cost_of_all_models_is_booked_on_the_session(
    start: Start,
) -> None:
    panel = Panel(a=says("Four."), b=says("Four."), c=says("Four."))
    chat = await start(panel)
    await chat.moa("/moa What is 2 + 2?")
    records = await chat.app.journal.read(chat.session.id)
    called = [record.event for record in records if isinstance(record.event, ModelCalled)]
    assert sorted((each.model, each.cause) for each in called) == [(name, "moa") for name in "abc"]
    assert chat.session.transcript.unsettled == {}


async def test_a_failing_and_an_empty_reference_are_named_and_the_rest_suffices(
    start: Start,
) -> None:
    panel = Panel(
        main=calls("mixture_of_agents", user_prompt="What is 2 + 2?"),
        a=says("Four."),
        b=fails(500),
        d=says_nothing(),
        c=says("It is four."),
    )
    chat = await start(panel, "a b d")
    await chat.session.send(Say(text="Ask the others."))
    await chat.session.wait_until_idle()

    result = json.loads(panel.asked("main")[1].last_text)
    assert result["success"] is True
    assert result["response"] == "It is four."
    assert result["models_used"] == {"reference_models": ["a"], "aggregator_model": "c"}
    assert sorted(result["failed_models"]) == ["b", "d"]


async def test_too_few_answers_are_an_error_for_the_model(start: Start) -> None:
    panel = Panel(
        main=calls("mixture_of_agents", user_prompt="What is 2 + 2?"), a=says("Four."), b=fails(500)
    )
    chat = await start(panel, least=2)
    await chat.session.send(Say(text="Ask the others."))
    await chat.session.wait_until_idle()
    answer = panel.asked("main")[1].last_text
    assert answer.startswith("1 of 2 models answered, at least 2 must (b: ")
    assert panel.asked("c") == []


async def test_a_trace_has_every_answer_and_no_secret(start: Start) -> None:
    panel = Panel(a=says(f"The key is {KEY}."), b=says("Five."), c=says("Done."))
    chat = await start(panel, extra="save_traces: true")
    await chat.moa("/moa Which key?")
    file = chat.app.context.home.root / "moa-traces" / f"{chat.session.id}.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    (line,) = file.read_text().splitlines()
    trace = json.loads(line)
    assert KEY not in line
    assert [each["model"] for each in trace["references"]] == ["a", "b"]
    assert trace["aggregator"]["text"] == "Done."


async def test_the_tool_is_offered_only_while_enough_models_can_be_used(
    start: Start,
) -> None:
    panel = Panel(main=says("Hi."))
    chat = await start(panel, "a", least=2)
    await chat.session.send(Say(text="Hello"))
    await chat.session.wait_until_idle()
    names = [each["function"]["name"] for each in panel.asked("main")[0].body["tools"]]
    assert "mixture_of_agents" not in names


async def test_a_missing_preset_says_how_to_create_one(start: Start) -> None:
    panel = Panel(main=says("Hi."))
    chat = await start(panel, extra="default_preset: other")
    outcome = await chat.registry.run("/moa Why?", chat)
    assert outcome == ShowText(
        text="There is no preset 'other' for a mixture of agents; "
        "`hermes moa configure` creates one."
    )
