"""The recorder: what the journal refused is never written later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from hermes.core.commands import Retitle, Say, SwitchModel, Tune
from hermes.core.errors import DiskFull
from hermes.core.events import (
    ControlsChanged,
    DurableEvent,
    MessageReceived,
    ModelSwitched,
    PersonalityChanged,
    Record,
    TitleChanged,
)
from hermes.core.messages import user_says
from hermes.core.ports import Lease
from hermes.core.transcript import fold
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.testing.provider import ScriptedProvider
from hermes.testing.steps import says
from tests.core.conftest import Run, run_in


class FullDisk(SqliteJournal):
    """A journal that refuses so many appends."""

    refusals = 0

    async def append(
        self, lease: Lease, events: Sequence[DurableEvent], *, turn_id: str = ""
    ) -> tuple[Record, ...]:
        await asyncio.sleep(0)
        if self.refusals:
            self.refusals -= 1
            raise DiskFull("The disk is full, so nothing was written; try again.")
        return await super().append(lease, events, turn_id=turn_id)


@pytest.fixture
async def full(tmp_path: Path) -> AsyncIterator[tuple[Run, FullDisk]]:
    async with run_in(tmp_path) as run:
        journal = FullDisk(tmp_path / "home" / "hermes.db", World())
        run.journal = journal
        yield run, journal
        journal.refusals = 0


async def durable(run: Run) -> list[DurableEvent]:
    return [record.event for record in await run.journal.read(run.session.id)]  # type: ignore[misc]


async def test_a_refused_message_is_journaled_once_when_it_is_sent_again(
    full: tuple[Run, FullDisk],
) -> None:
    run, disk = full
    run.model = ScriptedProvider(says("one"), says("two"), says("three"))
    await run.say("first")
    disk.refusals = 1
    with pytest.raises(DiskFull):
        await run.send(Say(text="second"))
    await run.say("second")
    await run.say("third")
    received = [each for each in await durable(run) if isinstance(each, MessageReceived)]
    assert [each.message for each in received] == [
        user_says("first"),
        user_says("second"),
        user_says("third"),
    ]
    assert run.text() == "three"
    assert await run.messages_in_journal() == run.session.transcript.messages


@pytest.mark.parametrize(
    "command",
    [Retitle(title="New"), Tune(effort="high"), SwitchModel(model="other", provider="p")],
)
async def test_a_refused_command_leaves_no_trace(
    full: tuple[Run, FullDisk], command: Retitle | Tune | SwitchModel
) -> None:
    run, disk = full
    run.model = ScriptedProvider(says("one"), says("two"))
    await run.say("first")
    disk.refusals = 1
    with pytest.raises(DiskFull):
        await run.send(command)
    await run.say("second")
    kinds = (TitleChanged, ControlsChanged, ModelSwitched)
    assert not [each for each in await durable(run) if isinstance(each, kinds)]
    transcript = run.session.transcript
    assert (transcript.title, transcript.tuned, transcript.model) == ("", ControlsChanged(), "m")


async def test_a_refusal_does_not_touch_what_others_commit_or_note(
    full: tuple[Run, FullDisk],
) -> None:
    run, disk = full
    run.model = ScriptedProvider(says("one"))
    await run.say("first")
    recorder = run.session._recorder
    noted, refused, other = (PersonalityChanged(name=name, text="x") for name in ("a", "b", "c"))
    recorder.note(noted)
    disk.refusals = 1
    first = asyncio.ensure_future(recorder.commit(refused))
    second = asyncio.ensure_future(recorder.commit(other))
    await asyncio.sleep(0)
    recorder.apply_pending()
    with pytest.raises(DiskFull):
        await first
    await second
    overlays = [each for each in await durable(run) if isinstance(each, PersonalityChanged)]
    assert overlays == [noted, other]
    assert recorder.transcript.overlay == other
    assert fold(await run.journal.read(run.session.id)).overlay == other
