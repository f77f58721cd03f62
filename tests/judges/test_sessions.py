"""Long sessions through the whole program: every request begins with what was sent before it."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.codec.json import encode
from hermes.codec.values import JsonValue
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Interrupt, Say, Steer, SwitchModel
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.faults import hangs
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import ReasoningForm, Step, calls, calls_many, says, thinks
from tests.durability.stage import Stage
from tests.judges.prefixes import begins_with, departure, marks

# name -> provider, model, marks that a long request has
MODELS: dict[str, tuple[str, str, int]] = {
    "chat": ("custom", "plain", 0),
    "responses": ("replies", "gpt-5.2", 0),
    "messages": ("anthropic", "claude-opus-4-6", 4),
    "envelope": ("openrouter", "anthropic/claude-opus-4.6", 4),
}


KEY = "sk-test-0123456789"
SETTINGS = """
agent: {{reasoning_effort: high}}
providers:
  replies: {{base_url: "{url}/v1", api_key: {key}, api_mode: codex_responses}}
  openrouter: {{base_url: "{url}/v1", api_key: {key}}}
  anthropic: {{base_url: "{url}", api_key: {key}}}
"""


class Long:
    """A home at whose server every model answers, and one session in it."""

    def __init__(self, root: Path, server: ScriptedServer) -> None:
        self.stage = Stage(root, server)
        self.stage.home.joinpath("config.yaml").write_text(SETTINGS.format(url=server.url, key=KEY))
        self.server = server
        self.session_id = ""

    def app(self, name: str) -> App:
        provider, model, _ = MODELS[name]
        flags: dict[str, JsonValue] = {
            "model.default": model,
            "model.provider": provider,
            "approvals.mode": "off",
        }
        config = load(Home(self.stage.home), flags=flags, env=self.stage.env)
        return App(config, env=self.stage.env, world=World())

    async def command(self, name: str, text: str) -> None:
        """A turn of the session in a process of its own."""
        provider, model, _ = MODELS[name]
        words = ["-m", model, "--provider", provider, "--yolo", "-z", text]
        done = await self.stage.run(*words, "--resume", self.session_id)
        assert done.code == 0, done.err

    @asynccontextmanager
    async def opened(self, name: str) -> AsyncIterator[Session]:
        """The session in a program that has just been started."""
        async with self.app(name) as app:
            opening = SessionRequest(
                source="cli", attended=False, cwd=str(self.stage.work), resume=self.session_id
            )
            session = await app.open(opening)
            yield session
            self.session_id = session.id
            await app.close_session(session)


def model(request: Request) -> Step:
    """Does what the newest words of the user say."""
    if request.results:
        return says(f"Done, after {len(request.messages)} messages. é😀")
    word, _, rest = request.last_text.rpartition("\n")[2].partition(" ")
    # Aggregators have a form of their own, which they seal.
    form: ReasoningForm = "reasoning" if "/" in request.model else "reasoning_content"
    steps: dict[str, Step] = {
        "say": says(f"You said {rest}."),
        "think": thinks(f"About {rest}.", then=says("So it is."), form=form),
        "write": calls("write_file", path=f"{rest}.txt", content=f"{rest} é"),
        "both": thinks(
            "Both.",
            then=calls_many(
                ("write_file", {"path": "a.txt", "content": rest}),
                ("read_file", {"path": "missing.txt"}),
                text="I do both.",
            ),
            form=form,
        ),
        "run": calls("terminal", command=f"echo {rest}"),
        "wait": hangs(says("I begin and then" + " wait" * 30), after_chunks=3),
    }
    return steps[word]


async def turn(session: Session, text: str, server: ScriptedServer) -> None:
    asked = server.received.count
    async with asyncio.timeout(60):
        await session.send(Say(text=text))
        if text.startswith("wait"):
            await server.received.reaches(asked + 1)
            await session.send(Interrupt())
        if text.startswith("run"):
            await session.send(Steer(text="say by the way"))
        await session.wait_until_idle()


def hold(requests: Sequence[Request], *, most: int) -> None:
    """Each begins with the one before it, and has as many marks as it can carry."""
    for older, newer in pairwise(requests):
        assert begins_with(newer, older), f"{newer.n}: {departure(newer, older)}"
    for request in requests:
        if len(request.messages) > MANY or not most:
            assert marks(request) == most
        else:
            assert 2 <= marks(request) <= most


# A conversation of so many messages has three that can carry a mark, whatever is in it.
MANY = 12
SEALED = re.compile(rb'"seal_[0-9a-f]{32}"')
# Turns between two starts of the program.
PART = 9
WORDS = ("say", "think", "write", "both", "run", "wait")


@pytest.mark.parametrize("turns", [18, pytest.param(54, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
async def test_many_turns_share_their_beginning(name: str, turns: int, tmp_path: Path) -> None:
    chance = random.Random(name)
    words = [word for _ in range(turns // len(WORDS)) for word in chance.sample(WORDS, len(WORDS))]
    async with ScriptedServer(model, models=[MODELS[name][1]]) as server:
        long = Long(tmp_path, server)
        for start in range(0, turns, PART):
            async with long.opened(name) as session:
                for number in range(start, start + PART):
                    await turn(session, f"{words[number]} {number}", server)
                    change_surroundings(long.stage, number)
            await long.command(name, "say from another process")
            if not start:
                # A look at other things.
                assert (await long.stage.run("model", "list")).code == 0
        assert server.violations == []
    assert len(server.requests) >= turns + turns // PART
    hold(server.requests, most=MODELS[name][2])


def change_surroundings(stage: Stage, number: int) -> None:
    """What a prompt is made of changes while the session goes on."""
    (stage.work / "AGENTS.md").write_text(f"Rule {number}: be quick.")
    (stage.home / "SOUL.md").write_text(f"You are number {number}.")
    memories = stage.home / "memories"
    memories.mkdir(exist_ok=True)
    (memories / "MEMORY.md").write_text(f"The number is {number}.")


async def test_ten_messages_carry_exactly_four_marks(tmp_path: Path) -> None:
    carried: dict[str, list[bool]] = {}
    for name in MODELS:
        async with ScriptedServer(model, models=[MODELS[name][1]]) as server:
            long = Long(tmp_path / name, server)
            async with long.opened(name) as session:
                for number in range(3):
                    await turn(session, f"say {number}", server)
            async with long.opened(name) as session:
                for number in range(3, 5):
                    await turn(session, f"say {number}", server)
        last = server.requests[-1].body
        messages = last.get("messages") or last["input"]
        system = [last["system"]] if "system" in last else []
        carried[name] = ["cache_control" in encode(m).decode() for m in (*system, *messages)]
    four, none = [True, *[False] * 6, *[True] * 3], [False] * 10
    assert carried == {
        "chat": none,
        # The system text is no message there.
        "responses": none[1:],
        "messages": four,
        "envelope": four,
    }


async def test_twenty_switches_between_models_keep_history_and_caches(tmp_path: Path) -> None:
    chance = random.Random(20)
    names = [name for name in MODELS for _ in range(6)]
    chance.shuffle(names)
    async with ScriptedServer(model) as server:
        long = Long(tmp_path, server)
        async with long.opened("chat") as session:
            for number, name in enumerate(names):
                provider, chosen, _ = MODELS[name]
                await session.send(SwitchModel(model=chosen, provider=provider))
                for word in chance.sample(["say", "think", "both", "wait"], 2):
                    await turn(session, f"{word} {number}", server)
        assert server.violations == []
    by_model: dict[str, list[Request]] = {}
    for request in server.requests:
        by_model.setdefault(request.model, []).append(request)
    assert len(by_model) == len(MODELS)
    for provider, chosen, most in MODELS.values():
        hold(by_model[chosen], most=most)
        assert_thoughts_come_back(by_model[chosen], provider)
    keys = {request.body.get("prompt_cache_key") for request in by_model["gpt-5.2"]}
    assert len(keys) == 1 and None not in keys


def assert_thoughts_come_back(requests: list[Request], provider: str) -> None:
    """A model gets its own thoughts again after others had their turns; the server has refused
    any that are not its own."""
    seals = [len(SEALED.findall(request.raw)) for request in requests]
    assert seals == sorted(seals)
    assert (seals[-1] > 1) == (provider != "custom")
