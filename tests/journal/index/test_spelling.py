"""A slip of the hand in a question hides nothing."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.index.terms import alike, is_one_slip
from hermes.journal.index.upkeep import Sizes
from tests.journal.index.diary import Diary

words = st.text(string.ascii_lowercase + "äж", min_size=5, max_size=12)


@st.composite
def slips(draw: st.DrawFn) -> tuple[str, str]:
    """A word, and the same with one slip."""
    word = draw(words)
    at = draw(st.integers(0, len(word) - 1))
    letter = draw(st.sampled_from(string.ascii_lowercase))
    made = draw(
        st.sampled_from(
            [
                word[:at] + word[at + 1 :],
                word[:at] + letter + word[at:],
                word[:at] + letter + word[at + 1 :],
                word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
            ]
        )
    )
    return word, made


@given(slips(), st.lists(words, max_size=20))
def test_every_slip_is_understood(slip: tuple[str, str], others: list[str]) -> None:
    word, made = slip
    block = "\n".join(["", *sorted({word, *others} - {made}), ""]).encode()
    found = alike(made, [block], most=30) if len(made) > 3 else []
    assert is_one_slip(made, word)
    assert all(is_one_slip(made, other) for other in found)
    if len(made) > 3 and word != made:
        assert word in found


def test_words_that_are_further_away_are_others() -> None:
    assert not is_one_slip("gregory", "gargoyle")
    assert not is_one_slip("organ", "orange ")
    assert not is_one_slip("abcde", "badce")


@pytest.mark.parametrize("query", ["Where did Grgeory go?", "gregorry organs", "Gregoxy"])
async def test_a_name_with_a_slip_finds_who_is_meant(
    diary: Diary, index: SearchIndex, query: str
) -> None:
    diary.say("I went to church.", session="other")
    diary.say("Gregory repairs organs.", session="wanted")
    for number in range(5):
        diary.say(f"It is day {number} of a long week.", session="other")
    hits = await index.search(query)
    assert hits[0].session_id == "wanted"


async def test_the_words_of_full_segments_are_known_too(diary: Diary) -> None:
    for number in range(40):
        diary.say(f"Note {number}" if number != 7 else "Xanthippe called.")
    path = diary.path.with_name("index.db")
    index = SearchIndex(path, JournalFile(diary.path), sizes=Sizes(draft=8, segment=16))
    await index.catch_up()
    (hit,) = await index.search("Xantippe")
    assert "Xanthippe" in hit.snippet


async def test_a_part_of_a_word_is_no_slip(diary: Diary, index: SearchIndex) -> None:
    diary.say("The greenhouses are full.")
    diary.say("The arrenhouse is closed.")
    hits = await index.search("eenhouse")
    assert [hit.snippet for hit in hits] == ["The gr>>>eenhouse<<<s are full."]


async def test_what_is_written_is_not_spelt_anew(diary: Diary, index: SearchIndex) -> None:
    diary.say("A timber yard.", session="right")
    diary.say("Her timbre was warm.", session="alike")
    assert [hit.session_id for hit in await index.search("timber")] == ["right"]
