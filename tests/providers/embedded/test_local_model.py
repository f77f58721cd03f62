"""The real runtime with the small weights."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from hermes.codec.values import JsonObject
from hermes.core.commands import Say
from hermes.core.errors import ConfigError
from hermes.core.events import Event, ReplyAdded, SessionOpened, TurnEnded
from hermes.core.messages import AssistantMessage, Text, ToolMessage, ToolResult, user_says
from hermes.core.metering import Metered
from hermes.core.prompt import CallNamed, Delta, Notice, Prompt, Reply, TextDelta, ToolSpec
from hermes.core.recorder import Recorder
from hermes.core.session import Session
from hermes.core.session_deps import SessionDeps, TurnLimits
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.net.http import HttpClient
from hermes.policy.rules import PolicySettings, SessionPolicy
from hermes.providers.embedded.constrained_calls import answer_schema
from hermes.providers.embedded.engine_client import EngineClient, GenerationSettings, PromptFitter
from hermes.providers.embedded.engines import EnginePool
from hermes.providers.embedded.model_file import describe_model_file
from hermes.providers.embedded.provider import EmbeddedModel
from hermes.tools.catalogue import built_in_entries
from hermes.workspaces.local import LocalWorkspace
from tests.providers.embedded.conftest import heard
from tests.providers.embedded.gguf_files import write_model
from tests.timing import check_in_time, tries

pytestmark = pytest.mark.local_model

SYSTEM = "You are a helpful AI assistant named Hermes."
TOOLS = (
    ToolSpec(
        name="list_files",
        description="List the files of a folder.",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
            "required": ["path"],
        },
    ),
    ToolSpec(
        name="set_light",
        description="Switch a lamp.",
        parameters={
            "type": "object",
            "properties": {"on": {"type": "boolean"}, "room": {"enum": ["kitchen", "hall"]}},
            "required": ["on", "room"],
        },
    ),
)


@pytest.fixture
def model(weights: Path, engines: EnginePool, http: HttpClient) -> EmbeddedModel:
    return EmbeddedModel(weights, http=http, world=World(), engines=engines)


@pytest.fixture
def caller(weights: Path, engines: EnginePool, http: HttpClient) -> EmbeddedModel:
    """The small model, forced to call tools: silly calls, but calls."""
    return EmbeddedModel(weights, http=http, world=World(), engines=engines, reduced=False)


def asking(text: str, *, most: int = 24, tools: tuple[ToolSpec, ...] = ()) -> Prompt:
    return Prompt(system=SYSTEM, messages=(user_says(text),), tools=tools, max_tokens=most)


def fits(arguments: JsonObject, tool: ToolSpec) -> bool:
    """The arguments are of the shape that the tool's schema describes."""
    kinds = {"string": str, "integer": int, "boolean": bool}
    properties = tool.parameters["properties"]
    return all(name in arguments for name in tool.parameters["required"]) and all(
        value in properties[name]["enum"]
        if "enum" in properties[name]
        else type(value) is kinds[properties[name]["type"]]
        for name, value in arguments.items()
    )


async def test_a_question_is_answered_in_streamed_words_with_usage(model: EmbeddedModel) -> None:
    said: list[str] = []
    # So small a model knows it, but not every time.
    while not any("Berlin" in text for text in said) and len(said) < 10:
        items = await heard(model, asking("What is the capital of Germany?"))
        reply = items[-1]
        assert isinstance(reply, Reply)
        texts = [item.text for item in items if isinstance(item, TextDelta)]
        assert len(texts) > 2
        assert "".join(texts) == reply.message.text
        assert reply.usage.prompt > 20
        assert reply.usage.output > 2
        assert (reply.usage.requests, reply.usage.cost, reply.usage.estimated) == (1, 0.0, False)
        said.append(reply.message.text)
    assert any("Berlin" in text for text in said)


async def test_two_sessions_share_a_process_and_may_ask_at_once(
    weights: Path, engines: EnginePool, http: HttpClient, model: EmbeddedModel
) -> None:
    other = EmbeddedModel(weights, http=http, world=World(), engines=engines)
    first, second = await asyncio.gather(
        heard(model, asking("Say hello.", most=8)), heard(other, asking("Say goodbye.", most=8))
    )
    assert isinstance(first[-1], Reply)
    assert isinstance(second[-1], Reply)
    assert engines.find_running(model.weights) is engines.find_running(other.weights) is not None


async def test_what_the_model_has_read_is_not_read_again(model: EmbeddedModel) -> None:
    first = asking("My name is Ada. " * 10, most=4)
    reply = (await heard(model, first))[-1]
    assert isinstance(reply, Reply)
    grown = Prompt(
        system=SYSTEM,
        messages=(*first.messages, reply.message, user_says("And yours?")),
        max_tokens=4,
    )
    again = (await heard(model, grown))[-1]
    assert isinstance(again, Reply)
    assert again.usage.cache_read > reply.usage.prompt * 0.8


async def test_an_interrupt_is_felt_at_once_by_us_and_by_the_model(model: EmbeddedModel) -> None:
    async def listen(begun: asyncio.Event) -> None:
        async with aclosing(model.reply(asking("Tell me a long story.", most=512))) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    begun.set()

    for one in tries():
        with one:
            begun = asyncio.Event()
            listening = asyncio.create_task(listen(begun))
            async with asyncio.timeout(120):
                await begun.wait()
            start = time.monotonic()
            listening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await listening
            felt = time.monotonic()
            await heard(model, asking("Say hello.", most=4))
            answered = time.monotonic()
            check_in_time(felt - start, 1)
            # 512 tokens would take many seconds; the next answer comes because nobody writes them.
            check_in_time(answered - felt, 6)


async def test_forced_to_call_it_writes_calls_that_fit_their_schema(caller: EmbeddedModel) -> None:
    prompt = asking("Switch on the light in the kitchen.", most=64, tools=TOOLS)
    # It may choose words; as good as never four times.
    for _ in range(4):
        items = await heard(caller, prompt)
        message = judged(items)
        if message.calls:
            break
    assert message.calls
    messages = (*prompt.messages, message, answered(message))
    judged(
        await heard(caller, Prompt(system=SYSTEM, messages=messages, tools=TOOLS, max_tokens=64))
    )


def judged(items: list[Delta | Reply]) -> AssistantMessage:
    """The message, after a look whether it has the form and was shown as it is."""
    reply = items[-1]
    assert isinstance(reply, Reply)
    message = reply.message
    if message.calls:
        (call,) = message.calls
        assert CallNamed(name=call.name) in items
        tool = next(tool for tool in TOOLS if tool.name == call.name)
        assert call.broken or fits(call.arguments, tool)
    else:
        assert message.text == "".join(i.text for i in items if isinstance(i, TextDelta))
    return message


def answered(message: AssistantMessage) -> ToolMessage:
    return ToolMessage(
        results=tuple(
            ToolResult(call_id=call.id, name=call.name, parts=(Text(text="done"),))
            for call in message.calls
        )
    )


async def test_the_runtime_takes_the_schemas_of_all_built_in_tools(
    weights: Path, engines: EnginePool, http: HttpClient
) -> None:
    specs = tuple(entry.spec for entry in built_in_entries())
    assert len(specs) > 5
    schema = answer_schema(specs)
    prompt = Prompt(system="", messages=(user_says("Hi"),), max_tokens=32)
    known = describe_model_file(weights)
    asking = EngineClient(
        known,
        http=http,
        world=World(),
        engines=engines,
        threads=None,
        fitter=PromptFitter(known.window),
        generation=GenerationSettings(max_tokens=32, sampling={"temperature": 0}),
    )
    items = [item async for item in asking.reply(prompt, schema=schema)]
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert re.match(r'\s*\{\s*"(text|tool)"', reply.message.text)


async def test_a_conversation_longer_than_the_window_goes_on(
    weights: Path, engines: EnginePool, http: HttpClient
) -> None:
    model = EmbeddedModel(weights, http=http, world=World(), engines=engines, window=320)
    messages = tuple(
        message
        for number in range(30)
        for message in (
            user_says(f"Question {number}: 你好，世界 🙂"),
            AssistantMessage(parts=(Text(text=f"Answer {number}."),)),
        )
    )
    prompt = Prompt(system=SYSTEM, messages=(*messages, user_says("Say hello.")), max_tokens=8)
    items = await heard(model, prompt)
    assert isinstance(items[-1], Reply)
    assert items[-1].message.text
    assert any(isinstance(item, Notice) and "newest part" in item.text for item in items)


async def test_a_file_that_only_looks_like_a_model_is_refused_by_the_runtime(
    weights: Path, engines: EnginePool, http: HttpClient, tmp_path: Path
) -> None:
    path = write_model(tmp_path / "fake.gguf", parameters=9)
    model = EmbeddedModel(path, http=http, world=World(), engines=engines)
    with pytest.raises(ConfigError, match=r"^fake\.gguf cannot be loaded: .+; choose another file"):
        await heard(model, asking("Hi"))


class NoTools:
    specs: tuple[ToolSpec, ...] = ()

    def load(self, name: str) -> None:
        return None


async def test_a_whole_session_in_reduced_mode(model: EmbeddedModel, tmp_path: Path) -> None:
    world = World()
    (tmp_path / "project").mkdir()
    journal = SqliteJournal(tmp_path / "hermes.db", world)
    root = str(tmp_path / "project")
    parts = SessionDeps(
        journal=journal,
        connect=lambda _model, _provider, meter: (
            Metered(
                model,
                meter,
                world=world,
                model="m",
                provider="p",
                cost=lambda _usage: 0.0,
                max_output=None,
            ),
            TurnLimits(window=model.window),
        ),
        view=lambda said: Prompt(system=SYSTEM, messages=said.seen, max_tokens=16),
        toolbox=NoTools(),
        workspace=LocalWorkspace(root, state=tmp_path / "state", world=world, env={}),
        policy=SessionPolicy(
            PolicySettings(), root=root, home=root, state=root, keep=lambda _subject: None
        ),
        world=world,
        attended=False,
        approval_seconds=1.0,
    )
    opened = SessionOpened(
        source="test", cwd=root, model=str(model.weights.path), provider="embedded", system=SYSTEM
    )
    session = Session(parts, Recorder(journal, world.new_session_id(), world, opening=opened))
    await session.send(Say(text="What is the capital of Germany?"))
    await session.wait_until_idle()
    events: list[Event] = [record.event for record in await journal.read(session.id)]
    await session.close()
    await journal.close()
    replies = [event for event in events if isinstance(event, ReplyAdded)]
    ends = [event for event in events if isinstance(event, TurnEnded)]
    assert [(reply.provider, bool(reply.message.text)) for reply in replies] == [("embedded", True)]
    assert [(end.reason, end.usage.cost) for end in ends] == [("done", 0.0)]
