"""The judge of messages, asked before and after it has read them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.json import encode
from hermes.journal.index.query import parse
from hermes.journal.index.rank import MessageScorer, message_of
from hermes.journal.index.source import EventRow
from tests.journal.index.diary import event_of

words = st.sampled_from(["error", "in", "line", "n", "u0007", "t", "über"])
gaps = st.text(st.sampled_from(" \n\t\"\\/.,_-\x07\r'é"), min_size=0, max_size=9)
texts = st.lists(st.tuples(words, gaps), min_size=1, max_size=12).map(
    lambda some: "".join(word + gap for word, gap in some)
)


def row_of(text: str) -> EventRow:
    return EventRow(1, "s", 1, "message_received", 0.0, encode(event_of(text, "user")))


@given(texts, st.lists(words, min_size=2, max_size=3))
def test_no_record_is_ruled_out_that_has_the_words_together(text: str, wanted: list[str]) -> None:
    judge = MessageScorer(parse(f'"{" ".join(wanted)}"'), [1.0], 0.0)
    row = row_of(text)
    if judge.judge(message_of(row)):
        assert not judge.rules_out(row.body)


def test_a_plain_record_without_the_words_together_is_ruled_out() -> None:
    judge = MessageScorer(parse('"error in line"'), [1.0], 0.0)
    assert judge.rules_out(row_of("line\nin error").body)
    assert not judge.rules_out(row_of("An ERROR,\n\tin line 3").body)
