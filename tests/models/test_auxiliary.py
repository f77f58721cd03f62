"""Side work: who does it, what it may cost, and what is said when nobody can."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.config.load import Config, load
from hermes.core.errors import ProviderError
from hermes.core.messages import Image, Text, UserMessage, user_says
from hermes.core.prompt import Prompt
from hermes.core.world import World
from hermes.models.models import Models
from hermes.models.side_model import SideModel, timeout_for
from hermes.testing.faults import paced
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import fails, says
from tests.models.ledger import Ledger
from tests.providers.asking import NapClock

TITLE = Prompt(system="Name it.", messages=(user_says("hello"),))
ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-ant-0123456789"}
OPENAI = {"OPENAI_API_KEY": "sk-proj-0123456789"}


class Side:
    """Side work of one session."""

    def __init__(self, config: Config, main: tuple[str, str]) -> None:
        self.clock = NapClock()
        self.models = Models(config, World(clock=self.clock), env={})
        self.told: list[str] = []
        self.model, self.provider = main
        self.config = config
        self.auxiliary = self.session()

    def session(self) -> SideModel:
        return SideModel(self.models, self.config.settings, self, self.told.append)

    def order(self, task: str = "title_generation", prompt: Prompt = TITLE) -> list[str]:
        return [str(link) for link in self.auxiliary.links(task, prompt, Ledger())]


Make = Callable[..., Side]


@pytest.fixture
async def side(tmp_path: Path) -> AsyncIterator[Make]:
    made: list[Side] = []

    def make(config: str, env: dict[str, str], model: str, provider: str) -> Side:
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        (home / "config.yaml").write_text(config)
        made.append(Side(load(Home(home), env=env), (model, provider)))
        return made[-1]

    yield make
    for each in made:
        await each.models.close()


def box(server: ScriptedServer, name: str = "box", model: str = "m") -> str:
    return f"{name}: {{base_url: '{server.url}/v1', default_model: {model}}}"


async def test_auto_takes_the_small_model_of_the_same_vendor_then_the_main_one(side: Make) -> None:
    found = side("", ANTHROPIC | OPENAI, "claude-opus-5-5", "anthropic")
    assert found.order() == ["claude-haiku-5-5 (anthropic)", "claude-opus-5-5 (anthropic)"]


async def test_auto_takes_nothing_that_is_dearer_than_the_main_model(side: Make) -> None:
    config = "fallback_providers: [{provider: openai-api, model: gpt-6.1-sol}]\n"
    found = side(config, ANTHROPIC | OPENAI, "claude-haiku-5-5", "anthropic")
    assert found.order() == ["claude-haiku-5-5 (anthropic)"]


async def test_auto_takes_nothing_whose_price_it_cannot_compare(side: Make) -> None:
    found = side("", ANTHROPIC, "claude-that-nobody-priced", "anthropic")
    assert found.order() == ["claude-that-nobody-priced (anthropic)"]


async def test_a_key_of_another_vendor_is_no_invitation(side: Make) -> None:
    env = ANTHROPIC | OPENAI | {"OPENROUTER_API_KEY": "sk-or-0123456789"}
    found = side("", env, "claude-opus-5-5", "anthropic")
    assert all(who.endswith("(anthropic)") for who in found.order())


async def test_the_settings_of_a_task_are_followed_whatever_they_cost(side: Make) -> None:
    config = (
        "auxiliary:\n"
        "  title_generation: {provider: openai-api, model: gpt-6.1-sol}\n"
        "  approval: {provider: main}\n"
        "  mcp: {provider: openai}\n"
        "  curator: {model: 'openai:gpt-x', fallback_chain: [{provider: anthropic, model: c}]}\n"
        "  flush_memories: {base_url: 'http://10.0.0.1/v1', model: tiny}\n"
    )
    found = side(config, ANTHROPIC | OPENAI, "claude-opus-5-5", "anthropic")
    assert found.order("title_generation") == ["gpt-6.1-sol (openai-api)"]
    assert found.order("approval") == ["claude-opus-5-5 (anthropic)"]
    assert found.order("mcp") == ["gpt-6-luna (openai-api)"]
    assert found.order("curator") == ["gpt-x (openai-api)", "c (anthropic)"]
    assert found.order("flush_memories") == ["tiny (custom)"]


async def test_pictures_go_to_a_model_that_sees(side: Make) -> None:
    config = (
        "providers:\n"
        "  blind: {base_url: 'http://10.0.0.1/v1', models: {m: {vision: false}}}\n"
        "  eye: {base_url: 'http://10.0.0.2/v1', default_model: v, models: {v: {vision: true}}}\n"
    )
    look = Prompt(
        system="Look.",
        messages=(UserMessage(parts=(Text(text="?"), Image(file="x", media_type="image/png"))),),
    )
    found = side(config, {}, "m", "blind")
    assert found.order("vision", look) == ["v (eye)"]


async def test_who_cannot_hold_the_prompt_is_left_out(side: Make) -> None:
    config = (
        "providers:\n"
        "  small: {base_url: 'http://10.0.0.1/v1', models: {s: {context_length: 100}}}\n"
        "  large: {base_url: 'http://10.0.0.2/v1', default_model: l}\n"
    )
    long = Prompt(system="Sum up.", messages=(user_says("word " * 1_000),))
    found = side(config, {}, "s", "small")
    assert found.order("compression", long) == ["l (large)"]
    assert found.order("compression") == ["s (small)", "l (large)"]


async def test_the_offline_assistant_does_no_side_work(side: Make) -> None:
    assert side("", {}, "offline-assistant", "offline").order() == []


async def test_an_answer_is_booked_under_its_task(side: Make) -> None:
    async with ScriptedServer([says("A title")]) as server:
        found = side(f"providers: {{{box(server)}}}\n", {}, "m", "box")
        ledger = Ledger()
        reply = await found.auxiliary.ask("title_generation", TITLE, ledger)
        assert (reply.message.text, reply.model, reply.provider) == ("A title", "m", "box")
        assert ledger.causes == ["title_generation"]
        assert [usage.requests for usage in ledger.settled] == [1]
        assert found.told == []


async def test_after_an_error_the_next_one_is_asked_and_that_is_told_once(side: Make) -> None:
    async with (
        ScriptedServer([fails(402)]) as broke,
        ScriptedServer([says("one"), says("two")]) as spare,
    ):
        config = f"providers: {{{box(broke)}, {box(spare, 'spare', 's')}}}\n"
        found = side(config, {}, "m", "box")
        texts = [
            (await found.auxiliary.ask("title_generation", TITLE, Ledger())).message.text
            for _ in range(2)
        ]
        assert texts == ["one", "two"]
        assert found.told == ["s (spare) is used for title generation instead of the main model."]
        assert len(broke.requests) == 1  # not asked again while it is unwell


async def test_an_unwell_model_is_asked_again_after_ten_minutes(side: Make) -> None:
    async with ScriptedServer([fails(402), says("well again")]) as server:
        found = side(f"providers: {{{box(server)}}}\n", {}, "m", "box")
        for _ in range(2):
            with pytest.raises(ProviderError):
                await found.auxiliary.ask("approval", TITLE, Ledger())
        await found.clock.sleep(600)
        reply = await found.session().ask("approval", TITLE, Ledger())
        assert reply.message.text == "well again"
        assert len(server.requests) == 2


async def test_a_failure_is_told_once_per_task_and_raised_each_time(side: Make) -> None:
    async with ScriptedServer([fails(401)]) as server:
        found = side(f"providers: {{{box(server)}}}\n", {}, "m", "box")
        for _ in range(3):
            with pytest.raises(ProviderError):
                await found.auxiliary.ask("approval", TITLE, Ledger())
        assert len(found.told) == 1
        assert found.told[0].startswith("Approval failed: box (127.0.0.1, m) refused the key")


async def test_passing_troubles_are_retried_as_often_as_set(side: Make) -> None:
    async with ScriptedServer([fails(500), fails(500), says("third")]) as server:
        found = side(f"providers: {{{box(server)}}}\n", {}, "m", "box")
        reply = await found.auxiliary.ask("mcp", TITLE, Ledger())
        assert reply.message.text == "third"


async def test_a_task_has_its_time(side: Make) -> None:

    async with ScriptedServer([paced(says("late"), first_seconds=30)]) as server:
        config = f"providers: {{{box(server)}}}\nauxiliary: {{approval: {{timeout: 0.2}}}}\n"
        found = side(config, {}, "m", "box")
        with pytest.raises(ProviderError, match=r"did not answer within 0\.2 s"):
            await found.auxiliary.ask("approval", TITLE, Ledger())


def test_the_usual_times_are_those_of_the_tasks() -> None:
    assert [timeout_for(task) for task in ("vision", "web_extract", "curator", "approval")] == [
        120,
        360,
        600,
        30,
    ]
