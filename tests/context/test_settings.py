"""What users may set about requests does what it says, in real sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.app.context_engine import COMPACTED_TWICE
from hermes.context.system import HINTS
from hermes.core.commands import Compact, SwitchModel
from hermes.core.events import MessageReceived
from hermes.core.prompt import Notice
from hermes.core.session_request import SessionRequest
from hermes.testing.steps import says
from tests.context.ground import Stage, compactions, say, stage

# Of a window this large a threshold may be far below the share that small ones have.
WIDE = 600_000
LONG = "noun " * 24_000


async def _hint(ground: Stage, platform: str) -> str:
    """The system text of a new session on this surface."""
    async with ground.app() as app:
        opening = SessionRequest(
            source="cli", attended=False, cwd=str(ground.project), platform=platform
        )
        await say(await app.open(opening), "Hi")
    return ground.chats[-1].messages[0].text


async def test_platform_hints_are_appended_or_replaced(tmp_path: Path) -> None:
    own = {
        "telegram": "Sign as H.",
        "slack": {"replace": "Speak of nothing but cats."},
        "sms": {"append": "No emoji."},
    }
    async with stage(tmp_path, lambda _: says("Hi."), window=64_000, platform_hints=own) as ground:
        assert f"{HINTS['telegram']} Sign as H." in await _hint(ground, "telegram")
        slack = await _hint(ground, "slack")
        assert "Speak of nothing but cats." in slack and HINTS["slack"] not in slack
        assert f"{HINTS['sms']} No emoji." in await _hint(ground, "sms")
        assert "Sign as H." not in await _hint(ground, "cli")


async def test_a_secret_in_a_platform_hint_is_not_sent(tmp_path: Path) -> None:
    key = "sk-or-v1-" + "0123456789abcdef" * 4
    own = {"cli": f"The key is {key}."}
    async with stage(tmp_path, lambda _: says("Hi."), window=64_000, platform_hints=own) as ground:
        text = await _hint(ground, "cli")
        assert "The key is" in text and key not in text


@pytest.mark.parametrize(
    ("thresholds", "shortened"),
    [({}, 0), ({"TES": 0.12}, 1), ({"te": 0.12, "test": 0.9}, 0), ({"other": 0.12}, 0)],
)
async def test_model_thresholds_hold_for_the_models_they_name(
    tmp_path: Path, thresholds: dict[str, float], shortened: int
) -> None:
    """The longest name that is part of the model's wins."""
    async with stage(
        tmp_path,
        lambda _: says("Hm."),
        window=WIDE,
        compression__model_thresholds=thresholds,
        memory__flush_min_turns=0,
    ) as ground:
        async with ground.session() as (app, session):
            for number in range(3):
                await say(session, f"Part {number}: {LONG}")
            records = await app.journal.read(session.id)
        assert min(1, len(compactions(records))) == shortened


@pytest.mark.parametrize("abort", [False, True])
async def test_abort_on_summary_failure_decides_what_follows(tmp_path: Path, abort: bool) -> None:
    """Without a model to summarise, notes are made here; or nothing is summed up, and the turn
    that does not fit any more says so."""
    async with (
        stage(
            tmp_path,
            lambda _: says("Hm."),
            window=8_192,
            notes=None,
            compression__abort_on_summary_failure=abort,
            memory__flush_min_turns=0,
        ) as ground,
        ground.session() as (app, session),
    ):
        ended = [await say(session, f"{n}: " + "many words here " * 150) for n in range(24)]
        records = await app.journal.read(session.id)
    made = compactions(records)
    blocks = [each for each in made if each.summarised]
    assert bool(blocks) != abort
    assert all(each.summary == "" for each in made)
    if abort:
        assert (ended[-1].reason, ended[-1].detail) == ("failed", "ContextFull")
    else:
        assert {each.reason for each in ended} == {"done"}


async def test_a_switch_of_the_model_changes_the_lines_that_name_it(tmp_path: Path) -> None:
    async with stage(tmp_path, lambda _: says("Hm."), window=64_000) as ground:
        async with ground.session() as (_, session):
            await say(session, "One")
            await session.send(SwitchModel(model="other", provider="custom"))
            await say(session, "Two")
            await session.send(SwitchModel(model="test", provider="custom"))
            await say(session, "Three")
        first, second, third = (chat.messages[0].text for chat in ground.chats)
    assert "\nModel: test\nProvider: custom" in first
    assert second == first.replace("\nModel: test\n", "\nModel: other\n")
    assert third == first


async def test_the_second_time_a_conversation_is_shortened_the_person_is_told(
    tmp_path: Path,
) -> None:
    async with (
        stage(tmp_path, lambda _: says("Hm."), window=64_000) as ground,
        ground.session() as (_, session),
    ):
        events = session.subscribe()
        for number in range(3):
            for part in range(3):
                await say(session, f"{number}.{part}: " + "many words here " * 60)
            await session.send(Compact())
            await session.wait_until_idle()
        await say(session, "Done")
        told = []
        async for record in events:
            if isinstance(record.event, Notice):
                told.append(record.event.text)
            if isinstance(record.event, MessageReceived) and (record.event.message.text == "Done"):
                break
    assert told.count(COMPACTED_TWICE) == 1
