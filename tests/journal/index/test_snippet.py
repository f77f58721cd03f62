"""What is shown of a message."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.json import encode
from hermes.journal.index.query import parse
from hermes.journal.index.rank import MessageScorer, message_of
from hermes.journal.index.results import snippet
from hermes.journal.index.source import EventRow
from tests.journal.index.diary import event_of


def shown(text: str, query: str) -> str:
    clauses = parse(query)
    row = EventRow(1, "s", 1, "message_received", 0.0, encode(event_of(text, "user")))
    judged = MessageScorer(clauses, range(1, len(clauses) + 1), 0.0).judge(message_of(row))
    assert judged is not None
    return snippet(judged.text, judged.spans())


def test_a_short_message_is_shown_whole() -> None:
    assert shown("Buy milk\nand   bread.", "milk bread") == "Buy >>>milk<<< and >>>bread<<<."


def test_a_long_message_is_cut_between_words_around_the_match() -> None:
    text = "before " * 100 + "the needle is here " + "after " * 100
    line = shown(text, "needle")
    assert line.startswith("…before before")
    assert line.endswith("after after…")
    assert " the >>>needle<<< is here " in line
    assert 140 <= len(line) <= 180


def test_the_place_with_more_of_the_query_is_shown() -> None:
    text = "alpha alpha alpha " + "x " * 300 + "alpha beta together " + "y " * 300
    assert ">>>alpha<<< >>>beta<<< together" in shown(text, "alpha beta")


def test_the_text_is_shown_as_it_was_written() -> None:
    assert shown("Die GRÖßE, ﬁnal: ÅB", "grosse final") == "Die >>>GRÖßE<<<, >>>ﬁnal<<<: ÅB"
    assert shown("e\u0301cole du soir", "ecole") == ">>>e\u0301cole<<< du soir"
    assert shown("我们昨天迁移了数据库。", "数据库") == "我们昨天迁移了>>>数据库<<<。"


def test_the_whole_word_is_marked_when_another_form_of_it_is_found() -> None:
    assert shown("three deployments failed", "deploy") == "three >>>deployments<<< failed"


def test_marks_do_not_overlap() -> None:
    assert shown("数据库迁移", "数据库迁移").count(">>>") == 2


@given(
    st.lists(
        st.sampled_from(["Größe", "naïve", "数据", "e\u0301", "word", "\n", "🚀", "ﬁ"]),
        max_size=200,
    ),
    st.integers(0, 200),
)
def test_the_marks_stand_around_the_word(words: list[str], place: int) -> None:
    text = " ".join([*words[:place], "Nadel", *words[place:]])
    line = shown(text, "nadel")
    assert ">>>Nadel<<<" in line
    plain = line.replace(">>>", "").replace("<<<", "").strip("…")
    assert plain in " ".join(text.split())
    assert len(plain) <= 200
