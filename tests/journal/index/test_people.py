"""A question that names somebody is answered from what they have to do with."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.index.upkeep import Sizes
from tests.journal.index.diary import Diary


def talk(diary: Diary, one: str, other: str, told: str, *, session: str = "") -> int:
    """A session in which both greet each other, and one tells something; the id of that."""
    session = session or f"{one} and {other}"
    diary.say(f"{one}: Hello {other}, how have you been all this time?", session=session)
    diary.say(f"{other}: Fine, {one}, thank you. What is new with you?", session=session)
    told_at = diary.say(f"{one}: {told}", session=session)
    diary.say(f"{other}: I am glad that you told me that, {one}.", session=session)
    return told_at


@pytest.mark.parametrize("sizes", [Sizes(), Sizes(draft=8, segment=16)])
async def test_their_session_comes_before_a_better_match_of_strangers(
    diary: Diary, index_path: Path, sizes: Sizes
) -> None:
    wanted = talk(diary, "Hugo", "Rita", "There is a dog in the house now, she is deaf.")
    for number in range(12):
        talk(diary, "Hugo", "Rita", f"I walked {number} miles on the path.", session=f"h{number}")
    talk(diary, "Jonas", "Petra", "The dog in our house is of a rare breed.")
    talk(diary, "Jonas", "Petra", "They talked of a breed of horse.", session="horses")
    index = SearchIndex(index_path, JournalFile(diary.path), sizes=sizes)
    hits = await index.search("What breed is the dog of Hugo?", limit=3)
    assert hits[0].event_id == wanted


async def test_who_speaks_counts_more_than_who_is_spoken_to(
    diary: Diary, index: SearchIndex
) -> None:
    diary.say("Megan: Clara, how is the pottery class of yours going these days?")
    wanted = diary.say("Clara: The pottery class is on a break, how is the house of yours?")
    diary.say("Megan: Clara, that pottery class was the best of all ideas, you know?")
    hits = await index.search("What did Clara say of the pottery class?")
    assert hits[0].event_id == wanted


async def test_a_name_that_nobody_wrote_changes_nothing(diary: Diary, index: SearchIndex) -> None:
    talk(diary, "Hugo", "Rita", "The seal sat on the bench in the harbour.")
    named = await index.search("Where did Wolfgang see the seal?")
    plain = await index.search("Where did somebody see the seal?")
    assert [hit.event_id for hit in named] == [hit.event_id for hit in plain]
    assert named


async def test_a_name_in_passing_hides_no_session(diary: Diary, index: SearchIndex) -> None:
    diary.say("Tell Ines that the parcel is at the door.", session="errand")
    wanted = diary.say("The allergy test came back: peanuts, nothing else.", session="doctor")
    hits = await index.search("What did the allergy test of Ines say about peanuts?")
    assert hits[0].event_id == wanted
