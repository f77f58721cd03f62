"""Who says a message, as far as the texts tell."""

from __future__ import annotations

from hermes.journal.index.rank import Speakers

USER, ASSISTANT = "message_received", "reply_added"


def part(speakers: Speakers, kind: str, text: str) -> float:
    found = speakers.part("mira", kind, text, is_named="mira" in text)
    assert found is not None
    return found


def test_the_name_before_the_words_says_who_speaks() -> None:
    speakers = Speakers(["mira"])
    own = part(speakers, USER, "mira: i went to the lake")
    assert own > part(speakers, ASSISTANT, "jon: mira, how was the lake?")
    assert speakers.part("mira", ASSISTANT, "jon: how was the lake?", is_named=False) is None


def test_a_short_name_is_that_of_the_long_one() -> None:
    speakers = Speakers(["mira"])
    assert part(speakers, USER, "miranda: i went to the lake") == part(
        speakers, USER, "mira: i went to the lake"
    )


def test_whoever_is_called_by_one_side_is_the_other_side() -> None:
    speakers = Speakers(["mira"])
    calls = ["hey mira!", "thanks, mira! that is kind.", "mira, did you see it?"]
    speakers.hear((ASSISTANT, text) for text in calls)
    assert part(speakers, USER, "i went to the lake") > part(speakers, ASSISTANT, "hey mira!")


def test_who_is_only_spoken_of_is_not_taken_for_a_speaker() -> None:
    speakers = Speakers(["mira"])
    speakers.hear((USER, f"mira ate my shoe number {number}") for number in range(9))
    assert speakers.part("mira", ASSISTANT, "oh no", is_named=False) is None


def test_a_name_that_both_sides_call_belongs_to_neither() -> None:
    speakers = Speakers(["mira"])
    speakers.hear([(USER, "hey mira!"), (ASSISTANT, "hey mira!")] * 4)
    assert speakers.part("mira", USER, "i went to the lake", is_named=False) is None
