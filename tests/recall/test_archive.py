"""Who sees which sessions."""

from __future__ import annotations

import pytest

from hermes.core.errors import NotFound
from hermes.journal import sessions
from hermes.journal.index.filters import Period
from hermes.recall.archive import PastSessions, SearchFilter
from tests.recall.conftest import Home


async def seen(archive: PastSessions, query: str, wanted: SearchFilter | None = None) -> list[str]:
    found = await archive.discover(query, wanted or SearchFilter())
    return list(dict.fromkeys(one.session_id for one in found.passages))


async def test_what_was_said_elsewhere_is_found(home: Home) -> None:
    await home.session("here", "Where did I put the ladder?")
    await home.session("past", "The ladder is behind the shed.", "Noted.")
    assert await seen(home.archive(), "Where is the ladder?") == ["past"]


async def test_the_present_session_and_its_forks_are_left_out_unless_asked_for(home: Home) -> None:
    await home.session("here", "The ladder is red.")
    fork = await sessions.fork(home.journal, "here")
    sibling = await sessions.fork(home.journal, "here")
    await home.session("past", "The ladder is behind the shed.")
    assert await seen(home.archive(fork), "ladder") == ["past"]
    assert set(await seen(home.archive(fork), "ladder", SearchFilter(include_current=True))) == {
        "past",
        "here",
    }
    recent = await home.archive(fork).recent(10)
    assert [info.id for info in recent] == ["past"]
    assert sibling not in [info.id for info in recent]


@pytest.mark.parametrize("source", ["subagent", "tool"])
async def test_sessions_of_helpers_are_hidden(home: Home, source: str) -> None:
    await home.session("inner", "The ladder is red.", source=source)
    assert await seen(home.archive(), "ladder") == []
    assert await home.archive().recent(10) == ()


async def test_what_was_put_away_is_found_but_not_among_the_recent(home: Home) -> None:
    await home.session("away", "The ladder is red.")
    await sessions.set_archived(home.journal, "away", away=True)
    assert await seen(home.archive(), "ladder") == ["away"]
    assert await home.archive().recent(10) == ()


async def test_sessions_by_schedule_come_last(home: Home) -> None:
    await home.session("hourly", "The ladder, the ladder, the red ladder.", source="cron")
    await home.session("talk", "There was a ladder somewhere in the garden, I think.")
    assert await seen(home.archive(), "ladder") == ["talk", "hourly"]


async def test_the_owner_does_not_see_what_others_said(home: Home) -> None:
    await home.session("theirs", "The ladder is red.", principal="guest")
    await home.session("job", "The ladder is blue.", principal="system")
    assert await seen(home.archive(), "ladder") == ["job"]
    with pytest.raises(NotFound):
        await home.archive().messages_around("theirs", 1, 5)


@pytest.mark.parametrize("principal", ["guest", "member"])
async def test_others_see_their_own_session_only(home: Home, principal: str) -> None:
    await home.session("private", "The ladder is red.")
    await home.session("other", "The ladder is green.", principal="guest")
    await home.session("mine", "The ladder is blue.", principal="guest")
    archive = home.archive("mine", "guest" if principal == "guest" else "member")
    assert await seen(archive, "ladder") == []
    assert await seen(archive, "ladder", SearchFilter(include_current=True)) == ["mine"]
    assert await archive.recent(10) == ()
    for strange in ("private", "other"):
        with pytest.raises(NotFound):
            await archive.messages_around(strange, 1, 5)
        with pytest.raises(NotFound):
            await seen(archive, "ladder", SearchFilter(session_id=strange))
    info, said = await archive.messages_around("mine", 1, 5)
    assert (info.id, [one.text for one in said]) == ("mine", ["The ladder is blue."])


async def test_a_search_can_be_narrowed(home: Home) -> None:
    await home.session("past", "Is the ladder red?", "The ladder is blue.")
    await home.imported(("old", 1_000_000.0, "The ladder was new."))
    archive = home.archive()
    only_user = await archive.discover("ladder", SearchFilter(roles=frozenset({"user"})))
    assert {one.role for one in only_user.passages} == {"user"}
    assert await seen(archive, "ladder", SearchFilter(session_id="past")) == ["past"]
    then = Period(since=0.0, until=2_000_000.0)
    assert await seen(archive, "ladder", SearchFilter(period=then)) == ["old"]
    january = Period(since=0.0, until=float("inf"), months=(1,))
    assert await seen(archive, "ladder", SearchFilter(period=january)) == ["old"]


async def test_a_place_is_read_with_what_is_around_it(home: Home) -> None:
    await home.session("past", *(f"line {number}" for number in range(1, 31)))
    _, said = await home.archive().messages_around("past", 11, 2)
    assert [(one.n, one.text) for one in said] == [(n, f"line {n - 1}") for n in range(9, 14)]
    _, begun = await home.archive().messages_around("past", 0, 2)
    assert [one.text for one in begun] == ["line 1", "line 2", "line 3"]
    _, end = await home.archive().messages_around("past", 999, 2)
    assert [one.text for one in end] == []
