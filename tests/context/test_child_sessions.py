"""With `compression.in_place: false`, a compacted conversation continues in a child session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.core.commands import Compact, Retitle
from hermes.core.events import MessageReceived, SessionEnded
from hermes.core.messages import user_says
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import fold
from hermes.testing.steps import says
from tests.context.ground import Stage, say, stage

WINDOW = 64_000


@asynccontextmanager
async def conversation(
    tmp_path: Path, *, in_place: bool = False
) -> AsyncIterator[tuple[Stage, str]]:
    """A conversation with a title that was compacted once; the id of its session."""
    async with stage(
        tmp_path, lambda _: says("Hm."), window=WINDOW, compression__in_place=in_place
    ) as ground:
        async with ground.session() as (_, session):
            for number in range(4):
                await say(session, f"{number}: " + "many words here " * 60)
            await session.send(Retitle(title="Garden"))
            await session.send(Compact())
        yield ground, session.id


async def test_the_next_opening_starts_a_child_that_sees_the_same(tmp_path: Path) -> None:
    async with conversation(tmp_path) as (ground, parent):
        async with ground.session(parent) as (app, child):
            before = fold(await app.archive.records(parent))
            assert child.id != parent
            assert child.transcript.messages == before.messages
            assert child.transcript.title == "Garden #2"
            await say(child, "On we go.")
            info = await app.archive.info(parent)
            assert info.end_reason == "compression"
            assert (await app.archive.lineage(parent)).children == (child.id,)
            assert (await app.archive.records(parent))[-1].event == SessionEnded(
                reason="compression"
            )
            assert not await app.archive.verify()
        sent = [message.text for message in ground.chats[-1].messages]
    assert any("Goal: the work at hand." in text for text in sent)
    assert sent[-1] == "On we go."


@pytest.mark.parametrize("name", ["id", "Garden"])
async def test_the_id_and_the_title_lead_to_the_newest_child(tmp_path: Path, name: str) -> None:
    async with conversation(tmp_path) as (ground, parent):
        async with ground.session(parent) as (_, child):
            await say(child, "One.")
        for _ in range(2):
            async with ground.session(parent if name == "id" else name) as (app, again):
                assert again.id == child.id
        async with ground.session(child.id) as (_, session):
            await session.send(Compact(keep=1))
        async with ground.session(parent if name == "id" else name) as (app, grandchild):
            assert grandchild.transcript.title == "Garden #3"
            assert (await app.archive.lineage(grandchild.id)).ancestors == (parent, child.id)


async def test_a_later_fork_of_the_parent_is_not_its_continuation(tmp_path: Path) -> None:
    async with conversation(tmp_path) as (ground, parent):
        async with ground.session(parent) as (app, child):
            await app.archive.fork(parent)
        async with ground.session(parent) as (_, again):
            assert again.id == child.id


async def test_unfinished_work_is_finished_where_it_began(tmp_path: Path) -> None:
    async with conversation(tmp_path) as (ground, parent):
        async with ground.app() as app:
            lease = await app.journal.acquire(parent)
            received = MessageReceived(message=user_says("And then?"), key="waiting")
            await app.journal.append(lease, [received])
            await app.journal.release(lease)
        async with ground.session(parent) as (_, session):
            assert session.id == parent
            session.continue_unfinished()
            await session.wait_until_idle()
        async with ground.session(parent) as (_, child):
            assert child.id != parent
            assert child.transcript.messages == session.transcript.messages


async def test_a_compaction_in_place_keeps_the_session(tmp_path: Path) -> None:
    async with (
        conversation(tmp_path, in_place=True) as (ground, parent),
        ground.session(parent) as (_, session),
    ):
        assert session.id == parent


async def test_a_session_that_is_addressed_by_its_id_keeps_it(tmp_path: Path) -> None:
    async with conversation(tmp_path) as (ground, parent), ground.app() as app:
        opening = SessionRequest(source="api", attended=False, resume=parent, keep_id=True)
        assert (await app.open(opening)).id == parent


async def test_a_crash_between_end_and_child_is_made_good(tmp_path: Path) -> None:
    async with conversation(tmp_path) as (ground, parent):
        async with ground.app() as app:
            lease = await app.journal.acquire(parent)
            await app.journal.append(lease, [SessionEnded(reason="compression")])
            await app.journal.release(lease)
        async with ground.session(parent) as (app, child):
            assert child.id != parent
            ends = [r.event for r in await app.archive.records(parent)]
            assert ends.count(SessionEnded(reason="compression")) == 1
