"""`/model` as a person uses it in a running session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.commands.catalogue import COMMANDS
from hermes.commands.model import models_like, parse_arguments
from hermes.commands.registry import Outcome, ShowText
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.errors import UsageError
from hermes.core.events import ModelSwitched, Record
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.commands.conftest import Talk

MODELS = ("alpha-1", "alpha-2", "beta-large")


class Place:
    """A session with two endpoints of different wire formats, and one vendor without a key."""

    def __init__(self, talk: Talk, server: ScriptedServer) -> None:
        self.talk = talk
        self.server = server
        self.home = talk.app.context.home

    @property
    def now(self) -> tuple[str, str]:
        transcript = self.talk.session.transcript
        return transcript.model, transcript.provider

    async def run(self, line: str) -> str:
        outcome: Outcome = await self.talk.registry.run(line, self.talk)
        assert isinstance(outcome, ShowText)
        return outcome.text


Make = Callable[..., Awaitable[Place]]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Make]:
    apps: list[App] = []
    servers: list[ScriptedServer] = []

    async def make(*steps: Step, more: str = "") -> Place:
        server = await ScriptedServer(steps, models=MODELS).__aenter__()
        servers.append(server)
        home = tmp_path / "home"
        home.mkdir()
        (home / "config.yaml").write_text(
            "model: {default: alpha-1, provider: box}\n"
            "auxiliary: {title_generation: {provider: main}}\n"
            "providers:\n"
            f"  box: {{base_url: '{server.url}/v1'}}\n"
            f"  other: {{base_url: '{server.url}', api_mode: anthropic_messages,\n"
            "          models: {tiny: {context_length: 200, vision: false}}}\n" + more
        )
        app = App(load(Home(home), env={}), env={}, world=World())
        apps.append(app)
        opening = SessionRequest(
            source="cli", attended=False, cwd=str(tmp_path), context_files=False
        )
        return Place(Talk(app, await app.open(opening)), server)

    yield make
    for app in apps:
        await app.close()
    for server in servers:
        await server.__aexit__(None, None, None)


async def test_alone_it_shows_what_answers_and_what_could(place: Make) -> None:
    here = await place()
    text = await here.run("/model")
    assert text.splitlines()[0].startswith("alpha-1 (box): context window ")
    assert "  1  alpha-1" in text
    assert "(current)" in text
    assert "Other providers: other, " in text
    assert here.server.requests == []


async def test_a_switch_holds_for_the_session_and_keeps_the_conversation_valid(
    place: Make,
) -> None:
    here = await place(calls("todo"), says("done"), says("from the other side"))
    await here.talk.say("look")
    text = await here.run("/model beta-large --provider other")
    assert text.splitlines()[0].startswith("beta-large (other): context window ")
    assert text.splitlines()[-1] == "This applies to this session; --global makes it the default."
    await here.talk.say("and now?")
    wires = [request.wire for request in here.server.requests]
    assert wires == ["chat", "chat", "messages"]
    assert here.server.violations == []
    assert "beta-large" not in (here.home.config).read_text()


async def test_twenty_switches_leave_a_valid_conversation(place: Make) -> None:
    here = await place(*[step for n in range(20) for step in (calls("todo"), says(f"{n}"))])
    for number in range(20):
        name = ("alpha-2 --provider box", "beta-large --provider other")[number % 2]
        await here.run(f"/model {name}")
        await here.talk.say(f"turn {number}")
    assert len(here.server.requests) == 40
    assert here.server.violations == []


async def test_a_number_of_the_list_is_a_name_too(place: Make) -> None:
    here = await place()
    await here.run("/model 2")
    assert here.now == ("alpha-2", "box")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/model x --provider nope", "There is no provider 'nope'"),
        ("/model claude-x --provider anthropic", "ANTHROPIC_API_KEY is not set"),
        ("/model --sideways", "has no option --sideways"),
        ("/model a b", "takes one name"),
        ("/model a --once --global", "Give only one of"),
    ],
)
async def test_what_cannot_be_leaves_the_old_model_untouched(
    place: Make, line: str, words: str
) -> None:
    here = await place(says("still here"))
    assert words in await here.run(line)
    assert here.now == ("alpha-1", "box")
    await here.talk.say("hi")
    assert here.server.requests[0].body["model"] == "alpha-1"


async def test_an_unlisted_model_of_ones_own_endpoint_needs_force(place: Make) -> None:
    here = await place()
    told = "box does not list 'alpha-3'; similar: alpha-2, alpha-1."
    assert await here.run("/model alpha-3") == f"{told} Nothing was changed."
    assert here.now == ("alpha-1", "box")
    text = await here.run("/model alpha-3 --force")
    assert text.splitlines()[0] == told
    assert here.now == ("alpha-3", "box")


async def test_an_unlisted_model_of_a_vendor_is_refused_with_near_names(place: Make) -> None:
    here = await place()
    more = f"  zai: {{base_url: '{here.server.url}/v1', api_key: zai-0123456789}}\n"
    config = here.home.config.read_text() + more
    here.home.config.write_text(config)
    async with App(load(here.home, env={}), env={}, world=World()) as app:
        opening = SessionRequest(source="cli", attended=False, context_files=False)
        talk = Talk(app, await app.open(opening))
        outcome = await talk.registry.run("/model alpha-9 --provider zai", talk)
        assert isinstance(outcome, ShowText)
        assert outcome.text == (
            "Z.AI does not list 'alpha-9'; similar: alpha-2, alpha-1. Nothing was changed."
        )
        assert talk.session.transcript.model == "alpha-1"


async def test_once_is_for_the_next_turn_only(place: Make) -> None:
    here = await place(says("one"), says("two"), says("three"))
    text = await here.run("/model alpha-2 --once")
    assert text.endswith("This applies to the next turn; then alpha-1 answers again.")
    await here.talk.say("first")
    await here.talk.say("second")
    asked = [request.body["model"] for request in here.server.requests]
    assert asked == ["alpha-2", "alpha-1"]
    assert here.now == ("alpha-1", "box")


async def test_global_is_saved_and_drops_what_belonged_to_the_old_choice(place: Make) -> None:
    here = await place(more="")
    here.home.config.write_text(
        here.home.config.read_text().replace(
            "provider: box}", "provider: box, context_length: 9000, api_mode: chat_completions}"
        )
    )
    async with App(load(here.home, env={}), env={}, world=World()) as app:
        talk = Talk(
            app, await app.open(SessionRequest(source="cli", attended=False, context_files=False))
        )
        outcome = await talk.registry.run("/model beta-large --provider other --global", talk)
        assert isinstance(outcome, ShowText)
        assert outcome.text.endswith("New sessions use it, too.")
    settings = load(here.home, env={}).settings.model
    assert (settings.default, settings.provider) == ("beta-large", "other")
    assert (settings.context_length, settings.api_mode) == (None, "")


async def test_a_conversation_that_does_not_fit_stays_where_it_is(place: Make) -> None:
    here = await place(says("a long story"))
    await here.talk.say("tell me a story " * 100)
    text = await here.run("/model tiny --provider other")
    assert "of tiny is 200. Nothing was changed. Use /compress or /new first" in text
    assert here.now == ("alpha-1", "box")
    await here.run("/model tiny --provider other --force")
    assert here.now == ("tiny", "other")


async def test_a_switch_is_in_the_journal(place: Make) -> None:
    here = await place()
    events = here.talk.session.subscribe()
    await here.run("/model alpha-2")
    events.close()
    records: list[Record] = [record async for record in events]
    assert [record.event for record in records] == [
        *(record.event for record in records[:-1]),
        ModelSwitched(model="alpha-2", provider="box"),
    ]


async def test_names_are_suggested_from_any_part_of_them(place: Make) -> None:
    here = await place(more="model_aliases: {quick: 'other:tiny'}\n")
    await here.run("/model")
    texts = [each.text for each in await models_like(here.talk, "large")]
    assert texts == ["beta-large"]
    assert "quick" in [each.text for each in await models_like(here.talk, "qui")]
    assert [each.text for each in await models_like(here.talk, "x --o")] == ["--once"]


async def test_an_alias_may_lead_to_another_provider(place: Make) -> None:
    here = await place(more="model_aliases: {quick: 'other:tiny'}\n")
    text = await here.run("/model quick")
    assert here.now == ("tiny", "other")
    assert "window 200" in text
    assert "no vision" in text


def test_options_are_read_in_any_order() -> None:
    assert parse_arguments("--once name --provider p") == ("name", "p", {"--once"})
    with pytest.raises(UsageError):
        parse_arguments("name --provider")


def test_it_is_among_the_commands() -> None:
    assert "model" in [command.name for command in COMMANDS]
