"""What is known of words."""

from __future__ import annotations

from hermes.journal.index.terms import is_stop_word, is_weak_word, related_words


def test_forms_that_no_ending_makes() -> None:
    assert set(related_words("go").forms) >= {"went", "gone"}
    assert "buy" in related_words("bought").forms
    assert "children" in related_words("child").forms


def test_near_words_count_for_a_part() -> None:
    near = dict(related_words("gift").near)
    assert 0 < near["present"] < 1


def test_a_kind_has_members_and_its_plural_too() -> None:
    assert "violin" in dict(related_words("instrument").near)
    assert "violin" in dict(related_words("instruments").near)


def test_an_entry_counts_less_for_the_words_that_it_names() -> None:
    assert (
        dict(related_words("violin").near)["instrument"]
        < dict(related_words("instrument").near)["violin"]
    )


def test_a_word_is_not_near_to_itself() -> None:
    for word in ("run", "marry", "photo", "trip", "dog"):
        known = related_words(word)
        assert word not in known.forms
        assert not {word, *known.forms} & set(dict(known.near))


def test_unknown_words_are_themselves() -> None:
    assert related_words("quux") == ((), ())
    assert related_words("") == ((), ())


def test_small_words_say_nothing() -> None:
    assert all(map(is_stop_word, ("the", "what", "did", "für", "что")))
    assert not any(map(is_stop_word, ("dog", "deploy", "die", "war", "")))


def test_words_of_questions_count_for_a_part() -> None:
    assert all(map(is_weak_word, ("activities", "steps", "became")))
    assert not any(map(is_weak_word, ("dog", "pottery", "the", "")))
