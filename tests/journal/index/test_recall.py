"""Messages that may hold an answer, though they have none of its words."""

from __future__ import annotations

from hermes.journal.index.filters import Filters
from hermes.journal.index.search import SearchIndex
from tests.journal.index.diary import DAY, NOON, Diary


async def recalled(index: SearchIndex, query: str) -> list[tuple[int, bool]]:
    return [(one.event_id, one.own) for one in await index.recall(query)]


async def test_messages_beside_a_match_are_recalled_after_it(
    diary: Diary, index: SearchIndex
) -> None:
    diary.say_all(["Hello there, it is good to see you again.", "We talked about tea for hours."])
    asked = diary.say("Which violin do you play these days, the old one?")
    told = diary.say("The brown one that my teacher left me when she moved.", role="assistant")
    found = await recalled(index, "violin")
    assert found[0] == (asked, True)
    assert (told, False) in found
    assert [hit.event_id for hit in await index.search("violin")] == [asked]


async def test_a_neighbour_in_another_session_is_a_stranger(
    diary: Diary, index: SearchIndex
) -> None:
    diary.say("The end of another matter altogether.", session="before")
    wanted = diary.say("My violin is broken.", session="music")
    diary.say("The beginning of a third matter.", session="after")
    assert await recalled(index, "violin") == [(wanted, True)]


async def test_sessions_stay_apart_when_segments_are_merged(
    diary: Diary, index: SearchIndex
) -> None:
    for number in range(12):
        diary.say(f"Something about day {number}.", session=f"s{number}")
        await index.search("day")
    wanted = diary.say("My violin is broken.", session="music")
    diary.say("The beginning of a third matter.", session="after")
    await index.catch_up()
    assert await recalled(index, "violin") == [(wanted, True)]


async def test_the_answer_beside_the_question_ranks_its_session(
    diary: Diary, index: SearchIndex
) -> None:
    diary.say("Do you still have the red bicycle?", session="right")
    right = diary.say("No, I sold it to my cousin for eighty pounds.", session="right")
    diary.say("I sold the old piano at the market on the square.", session="wrong")
    hits = await index.search("Who was the bicycle sold to?")
    assert hits[0].session_id == "right"
    assert right in [hit.event_id for hit in hits]


async def test_filters_hold_for_neighbours_too(diary: Diary, index: SearchIndex) -> None:
    asked = diary.say("Which violin do you play?", role="user")
    diary.say("The brown one.", role="assistant")
    found = await index.recall("violin", Filters(roles=frozenset({"user"})))
    assert [one.event_id for one in found] == [asked]


async def test_an_unwanted_word_drops_neighbours_too(diary: Diary, index: SearchIndex) -> None:
    asked = diary.say("Which violin do you play?")
    diary.say("The brown one, it was a present.")
    assert await recalled(index, "violin NOT present") == [(asked, True)]


async def test_a_name_concerns_its_whole_session(diary: Diary, index: SearchIndex) -> None:
    for name in ("Otto", "Anna"):
        lines = [f"Hi {name}!", *["That is so nice to hear, tell me more of it."] * 4]
        diary.say_all([*lines, "The garden is full of beans and of snails."], session=name)
    for name in ("Otto", "Anna"):
        hits = await index.search(f"What grows in {name}'s garden?")
        telling = [hit for hit in hits if "snails" in hit.snippet]
        assert telling[0].session_id == name


async def test_another_form_and_a_near_word_are_found(diary: Diary, index: SearchIndex) -> None:
    went = diary.say("We went to the lake and bought a tent.")
    near = diary.say("Her present was a wooden box.", session="s2")
    assert [hit.event_id for hit in await index.search("Where did they go?")] == [went]
    assert [hit.event_id for hit in await index.search("What gift did she get?")] == [near]


async def test_the_word_itself_comes_before_a_near_one(diary: Diary, index: SearchIndex) -> None:
    word = diary.say("The gift was a wooden box.", session="s1")
    near = diary.say("The present was a wooden box.", session="s2")
    assert [hit.event_id for hit in await index.search("gift")] == [word, near]


async def test_a_named_time_decides_between_equals(diary: Diary, index: SearchIndex) -> None:
    may = diary.say("The garden is a joy.", session="s1", at=NOON - 150 * DAY)
    diary.say("The garden is a joy.", session="s2", at=NOON)
    hits = await index.search("How was the garden in June 2023?")
    assert hits[0].event_id == may


async def test_messages_of_a_named_time_are_found_without_other_words(
    diary: Diary, index: SearchIndex
) -> None:
    diary.say("The garden is a joy.", session="s1", at=NOON)
    june = diary.say("Soup again.", session="s2", at=NOON - 150 * DAY)
    found = await recalled(index, "what happened in June 2023?")
    assert june in [event_id for event_id, _ in found]


async def test_one_session_does_not_hide_the_others(diary: Diary, index: SearchIndex) -> None:
    diary.say_all([f"The boat needs paint, says number {n}." for n in range(20)], session="loud")
    diary.say("We should paint it before the summer comes, I think.", session="quiet")
    hits = await index.search("paint boat", limit=5)
    assert {hit.session_id for hit in hits} == {"loud", "quiet"}


async def test_a_long_message_is_recalled_by_its_best_stretch(
    diary: Diary, index: SearchIndex
) -> None:
    diary.say("lorem ipsum " * 200 + "the giraffe is called Gerda " + "dolor sit " * 200)
    (passage,) = await index.recall("giraffe")
    assert "giraffe is called Gerda" in passage.text
    assert len(passage.text) < 500
