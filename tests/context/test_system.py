"""The system text: layers in their order, frozen with the session, and what may stand behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.settings import Settings
from hermes.context.persona import (
    BUILT_IN_PERSONALITIES,
    STARTER,
    find_personality,
    personality_overlay,
    personality_text,
)
from hermes.context.system import (
    DEFAULT_IDENTITY,
    SLOT_CHARS,
    PromptFacts,
    Slots,
    build_layers,
    fit_block,
    join_layers,
    platform_hint,
)
from hermes.core.commands import Overlay
from hermes.core.errors import NotFound
from hermes.testing.steps import says
from tests.context.ground import say, stage

HERE = PromptFacts(
    platform="cli",
    cwd="/w",
    system="Linux",
    model="gpt-5",
    provider="openai",
    now=0.0,
    platform_hint="You are in a terminal.",
    profile="work",
)
SLOTS = Slots(skills="- ride: how to ride", memory="M", external_memory="P")


def test_layers_come_in_their_order() -> None:
    made = build_layers(
        HERE, tools=("terminal", "session_search"), extra="E", project="F", slots=SLOTS
    )
    assert [layer.name for layer in made] == [
        "identity", "completion", "parallel calls", "about tools", "tool use", "skills index",
        "environment", "profile", "platform", "caller", "project files", "memory",
        "external memory", "facts",
    ]  # fmt: skip
    assert join_layers(made).endswith("Model: gpt-5\nProvider: openai")


def test_without_tools_nothing_is_said_about_them() -> None:
    names = {layer.name for layer in build_layers(HERE)}
    assert not names & {"completion", "parallel calls", "about tools", "tool use"}


@pytest.mark.parametrize(
    ("wanted", "model", "there"),
    [
        ("auto", "gpt-5", True),
        ("auto", "claude-sonnet", False),
        ("true", "claude-sonnet", True),
        ("false", "gpt-5", False),
        ("mistral, llama", "llama-3", True),
        ("mistral, llama", "gpt-5", False),
    ],
)
def test_who_is_told_to_act(wanted: str, model: str, there: bool) -> None:
    here = PromptFacts(platform="cli", cwd="/", system="L", model=model, provider="p", now=0.0)
    made = build_layers(here, tools=("terminal",), enforcement=wanted)
    assert any(layer.name == "tool use" for layer in made) == there


def test_a_slot_is_cut_after_a_whole_line() -> None:
    index = "\n".join(f"- skill-{n}: does thing number {n}" for n in range(200))
    text = fit_block("skills", index, 0)
    assert len(text) <= SLOT_CHARS["skills"] + 50
    assert text.endswith("more lines are not shown]")
    assert all(line in index for line in text.splitlines()[:-1])
    assert len(fit_block("skills", index, 8_192)) < len(text)


def test_hints_of_the_user_add_or_replace() -> None:
    assert platform_hint("telegram", {}).startswith("You are in Telegram")
    assert platform_hint("sms", {"sms": "Be kind."}).endswith(" Be kind.")
    assert platform_hint("sms", {"sms": {"replace": "A", "append": "B"}}) == "A B"
    assert platform_hint("unknown", {}) == ""


def test_personalities_are_found_and_joined() -> None:
    own = {"Coach": {"system_prompt": "Coach me.", "tone": "warm", "style": "short"}}
    assert find_personality("coach", own) == ("coach", "Coach me.\nTone: warm\nStyle: short")
    assert find_personality("none", own) == ("", "")
    assert len(BUILT_IN_PERSONALITIES) == 14
    assert personality_text(7) == ""
    with pytest.raises(NotFound, match="There is no personality 'clown'"):
        find_personality("clown", own)


async def test_a_personality_stands_behind_the_system_text_and_survives(tmp_path: Path) -> None:
    async with stage(
        tmp_path, lambda _: says("Arr."), window=50_000, display__personality="concise"
    ) as ground:
        async with ground.session() as (_, session):
            assert session.transcript.overlay.name == "concise"
            await say(session, "Hi.")
            await session.send(personality_overlay(Settings(), "pirate"))
            await say(session, "Hi again.")
        async with ground.session(session.id) as (_, session):
            await say(session, "Still there?")
            await session.send(Overlay())
            await say(session, "And now?")
        systems = [request.messages[0].text for request in ground.chats]
    plain = systems[3]
    assert systems == [
        f"{plain}\n\n{BUILT_IN_PERSONALITIES['concise']}",
        *[f"{plain}\n\n{BUILT_IN_PERSONALITIES['pirate']}"] * 2,
        plain,
    ]


async def test_the_system_text_is_frozen_with_the_session(tmp_path: Path) -> None:
    async with stage(tmp_path, lambda _: says("Yes."), window=50_000) as ground:
        rules = ground.project / "AGENTS.md"
        rules.write_text("Rule one.")
        async with ground.session() as (_, session):
            await say(session, "Hi.")
            rules.write_text("Rule two.")
            await say(session, "Hi again.")
        async with ground.session(session.id) as (_, session):
            await say(session, "And now?")
        async with ground.session() as (_, session):
            await say(session, "A new one.")
        first, second, third, other = [request.messages[0].text for request in ground.chats]
    assert first == second == third
    assert "Rule one." in first
    assert "Rule two." in other


async def test_a_first_soul_is_put_there_and_says_nothing_by_itself(tmp_path: Path) -> None:
    async with stage(tmp_path, lambda _: says("Hi."), window=100_000) as ground:
        async with ground.session() as (app, session):
            await say(session, "Hello")
            soul = app.context.home.soul
        assert soul.read_text() == STARTER
        assert ground.chats[0].messages[0].text.startswith(DEFAULT_IDENTITY)
        soul.write_text(f"{STARTER}\nYou are Ada.\n")
        async with ground.session() as (_, session):
            await say(session, "Hello")
        assert ground.chats[1].messages[0].text.startswith("You are Ada.\n\n")
        assert soul.read_text() == f"{STARTER}\nYou are Ada.\n"
