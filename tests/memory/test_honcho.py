"""The model of the user on a Honcho server: what goes there, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.errors import ConfigError
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.memory.honcho.settings import HonchoSettings, load_settings, safe_name
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.memory.honcho_server import Honcho, serving


@pytest.fixture
def honcho() -> Iterator[Honcho]:
    with serving(Honcho()) as server:
        yield server


def app_of(folder: Path, server: ScriptedServer, honcho: Honcho, **more: object) -> App:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    settings = {"sessionStrategy": "per-session", "apiKey": honcho.key, **more}
    (home / "honcho.json").write_text(json.dumps(settings))
    flags: JsonObject = {
        "model.provider": "custom",
        "model.default": "scripted",
        "model.base_url": f"{server.url}/v1",
        "memory.provider": "honcho",
        "context.direct_tool_tokens": 5_000,
    }
    env = {"OPENAI_API_KEY": "k", "HONCHO_BASE_URL": honcho.url}
    return App(load(Home(home), flags=flags, env=env), env=env, world=World())


async def test_turns_are_told_and_what_is_known_stands_beside_the_message(
    tmp_path: Path, honcho: Honcho
) -> None:
    honcho.cards["hermes", "user"] = ["Lives in Lisbon"]
    async with ScriptedServer([says("Hello Ann."), says("Sure.")]) as server:
        async with app_of(tmp_path, server, honcho) as app:
            session = await app.open(SessionRequest(source="cli", attended=False, cwd="/"))
            for text in ("I am Ann", "Tea, please"):
                await session.send(Say(text=text))
                await session.wait_until_idle()
            name = session.id
        first, second = server.requests
        assert first.last_text.startswith("I am Ann\n\n<memory-context>\n")
        assert "- Lives in Lisbon" in first.last_text
        assert "They like tea (low)." in first.last_text
        # What stood beside a message stays there: prompts only grow.
        assert second.body["messages"][: len(first.body["messages"])] == first.body["messages"]
        assert {"honcho_reasoning", "honcho_search"} <= set(first.tools)
    told = [(m["peer_id"], m["content"]) for m in honcho.messages[safe_name(name)]]
    assert told == [
        ("user", "I am Ann"),
        ("hermes", "Hello Ann."),
        ("user", "Tea, please"),
        ("hermes", "Sure."),
    ]
    assert honcho.sessions[safe_name(name)]["hermes"] == {
        "observe_me": False,
        "observe_others": True,
    }


async def test_a_resumed_session_sends_the_same_beginning(tmp_path: Path, honcho: Honcho) -> None:
    async with ScriptedServer([says("Hello."), says("Again.")]) as server:
        ids: list[str] = []
        for _ in range(2):
            async with app_of(tmp_path, server, honcho) as app:
                opening = SessionRequest(
                    source="cli", attended=False, cwd="/", resume=ids[0] if ids else ""
                )
                session = await app.open(opening)
                await session.send(Say(text="I am Ann"))
                await session.wait_until_idle()
                ids.append(session.id)
        first, second = (request.body["messages"] for request in server.requests)
        assert second[: len(first)] == first


async def test_the_tools_ask_change_and_conclude(tmp_path: Path, honcho: Honcho) -> None:
    steps = [
        calls("honcho_profile", card=["Name: Ann"]),
        calls("honcho_conclude", conclusion="Ann prefers tea"),
        calls("honcho_context"),
        calls("honcho_reasoning", query="x" * 130),
        calls("honcho_search", query="Hello"),
        calls("honcho_conclude", delete_id="c1"),
        says("Done."),
    ]
    async with ScriptedServer(steps) as server:
        async with app_of(tmp_path, server, honcho, recallMode="tools") as app:
            session = await app.open(SessionRequest(source="cli", attended=False, cwd="/"))
            await session.send(Say(text="Hello"))
            await session.wait_until_idle()
        answers = [said.text for said in server.requests[-1].messages if said.role == "tool"]
        assert "<memory-context>" not in server.requests[-1].raw.decode()
    assert answers == [
        "- Name: Ann",
        "c1: Ann prefers tea",
        "- Name: Ann\nAnn prefers tea",
        "They like tea (medium).",
        "Honcho knows nothing about that yet.",
        "c1 is deleted.",
    ]
    assert honcho.conclusions == {}


async def test_what_is_remembered_of_the_user_is_concluded_there_and_forgotten_too(
    tmp_path: Path, honcho: Honcho
) -> None:
    from hermes.memory.forgetting import forget, plan_forget

    fact = "The user collects stamps of Malta"
    steps = [calls("memory", target="user", action="add", content=fact), says("Done.")]
    async with ScriptedServer(steps) as server, app_of(tmp_path, server, honcho) as app:
        session = await app.open(SessionRequest(source="cli", attended=False, cwd="/"))
        await session.send(Say(text="Remember my stamps"))
        await session.wait_until_idle()
        await app.close_session(session)
        assert [one["content"] for one in honcho.conclusions.values()] == [fact]
        done = await forget(app.memory, app.archive, await plan_forget(app.memory, "m1"))
        assert honcho.conclusions == {}
        assert "may still say it" in done.left[0]


async def test_a_server_that_fails_costs_no_turn(tmp_path: Path, honcho: Honcho) -> None:
    honcho.failures = [404] * 50
    async with ScriptedServer([says("Hello.")]) as server:
        async with app_of(tmp_path, server, honcho) as app:
            session = await app.open(SessionRequest(source="cli", attended=False, cwd="/"))
            await session.send(Say(text="I am Ann"))
            await session.wait_until_idle()
        assert server.requests[0].last_text == "I am Ann"


async def test_a_busy_server_is_asked_again(tmp_path: Path, honcho: Honcho) -> None:
    honcho.failures = [503]
    async with ScriptedServer([says("Hello.")]) as server:
        async with app_of(tmp_path, server, honcho) as app:
            session = await app.open(SessionRequest(source="cli", attended=False, cwd="/"))
            await session.send(Say(text="I am Ann"))
            await session.wait_until_idle()
        assert "They like tea" in server.requests[0].last_text


async def test_strangers_words_are_not_told_as_the_users(tmp_path: Path, honcho: Honcho) -> None:
    steps = [says("Hello."), says("Hm.")]
    async with ScriptedServer(steps) as server, app_of(tmp_path, server, honcho) as app:
        session = await app.open(SessionRequest(source="cli", attended=False, cwd="/"))
        await session.send(Say(text="I am Ann"))
        await session.wait_until_idle()
        await session.send(Say(text="I am the owner's bank", origin="mail:eve"))
        await session.wait_until_idle()
    told = [m["content"] for said in honcho.messages.values() for m in said]
    assert told == ["I am Ann", "Hello."]


def test_settings_come_from_the_home_then_from_the_person(tmp_path: Path) -> None:
    home, person = tmp_path / "home", tmp_path / "person"
    (person / ".honcho").mkdir(parents=True)
    home.mkdir()
    (person / ".honcho" / "config.json").write_text('{"apiKey": "p", "recallMode": "tools"}')
    assert load_settings(home, person, {}).recall_mode == "tools"
    (home / "honcho.json").write_text('{"apiKey": "h", "writeFrequency": 3}')
    found = load_settings(home, person, {"HONCHO_API_KEY": "e"})
    assert (found.api_key, found.write_frequency, found.recall_mode) == ("e", 3, "hybrid")
    (home / "honcho.json").write_text('{"recallMode": "loud"}')
    with pytest.raises(ConfigError, match=r"honcho\.json is not valid"):
        load_settings(home, person, {})


@pytest.mark.parametrize(
    ("length", "level"), [(10, "low"), (120, "medium"), (400, "high"), (9_000, "high")]
)
def test_longer_questions_are_thought_about_harder(length: int, level: str) -> None:
    assert HonchoSettings().level_for("x" * length) == level


@pytest.mark.parametrize(
    ("strategy", "name"),
    [("global", "hermes"), ("per-session", "s1"), ("per-directory", "src"), ("per-repo", "repo")],
)
def test_a_session_has_the_name_that_the_strategy_gives(
    tmp_path: Path, strategy: str, name: str
) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    settings = HonchoSettings(session_strategy=strategy)  # type: ignore[arg-type]
    assert settings.session_name("s1", str(tmp_path / "repo" / "src")) == name
    assert safe_name("a b/ü") != safe_name("a b/ö")
