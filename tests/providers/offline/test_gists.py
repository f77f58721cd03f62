"""Telling words: what they are taken for in any order, what they must not be taken for."""

from __future__ import annotations

import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.offline.keywords import Keywords, load_keywords, near_keywords
from hermes.providers.offline.language import load_language
from hermes.providers.offline.parsing import parse_request

ELEMENT = re.compile(r"(<\w+>|\{\w+[!*]?\}|[\w-]+(\|[\w-]+)*)\??")

# A guess from single words is good enough to show something, never to change anything.
CHANGING = {
    *("create_file", "append", "replace", "move", "copy", "delete", "make_folder"),
    *("run", "run_script", "run_tests", "run_background", "send_input", "stop_background"),
    *("git_commit", "todo_add", "todo_done", "todo_remove", "todo_clear", "remember"),
}


@pytest.fixture
def gists() -> Keywords:
    found = load_keywords("en")
    assert found is not None
    return found


def meaning(text: str) -> list[tuple[str, dict[str, str]]]:
    return [(step.kind, step.slots) for step in parse_request(load_language("en"), text)]


def elements(gists: Keywords) -> list[str]:
    return [part for _, text in gists.readings for part in text.partition(" -> ")[0].split()]


def test_no_kind_that_changes_anything_is_told_by_single_words(gists: Keywords) -> None:
    kinds = set(gists.data.readings)
    assert kinds & CHANGING == set()
    assert kinds <= set(load_language("en").kinds)
    assert set(load_language("en").kinds) >= CHANGING


def test_readings_are_well_formed_and_name_all_topics(gists: Keywords) -> None:
    assert [part for part in elements(gists) if not ELEMENT.fullmatch(part)] == []
    named = {part.strip("<>?") for part in elements(gists) if part[0] == "<"}
    assert named == set(gists.data.topics)


def test_words_are_spelled_as_they_are_compared(gists: Keywords) -> None:
    phrases = [phrase for group in gists.data.topics.values() for phrase in group]
    words = [*phrases, *gists.data.soft, *gists.data.asking, *gists.data.before_names]
    assert [word for word in words if word != word.casefold()] == []
    assert set(gists.data.before_names) <= gists.soft


def test_a_language_without_telling_words_has_none() -> None:
    assert load_keywords("xx") is None


@pytest.mark.parametrize(
    ("word", "stem"),
    [("files", "file"), ("directories", "directory"), ("running", "run"), ("changed", "changes")],
)
def test_endings_do_not_matter(gists: Keywords, word: str, stem: str) -> None:
    assert gists.stem(word) == gists.stem(stem)


@given(st.text(max_size=30))
def test_every_word_has_a_stem(word: str) -> None:
    found = load_keywords("en")
    assert found is not None
    assert len(found.stem(word)) <= len(word)


@pytest.mark.parametrize("words", list(permutations(["largest", "file", "please", "here"])))
def test_the_order_of_the_words_does_not_matter(words: tuple[str, ...]) -> None:
    assert [kind for kind, _ in meaning(" ".join(words))] == ["biggest_file"]


@pytest.mark.parametrize(
    ("text", "kind", "slots"),
    [
        ("i wonder how many words i have written in a.txt", "word_count", {"path": "a.txt"}),
        ("of the files in src which was edited last", "newest_file", {"path": "src"}),
        ("how much room is docs taking up", "disk_use", {"path": "docs"}),
        ("whats hogging the cpu", "programs", {}),
        ("any pdfs in docs?", "find_files", {"glob": "*.pdf", "path": "docs"}),
        ("would curl be installed on this machine", "which_program", {"program": "curl"}),
        ("the git log for a.txt", "file_history", {"path": "a.txt"}),
        ("waht is the lragest flie here", "biggest_file", {"path": "."}),
    ],
)
def test_an_unknown_wording_is_read_by_its_words(
    text: str, kind: str, slots: dict[str, str]
) -> None:
    assert meaning(text) == [(kind, slots)]


@pytest.mark.parametrize(
    "text",
    [
        "what is the biggest city here",  # one word more
        "the biggest file is not here",
        "delete the newest file",
        "which files are older than a week",
        "what is a hard drive",
        "how big is the moon",
        "read me a story",
        "install docker",
        "write it to a.txt",
        "the files, the folders, the processes and the branches of my life",
    ],
)
def test_words_that_mean_something_else_are_not_passed_over(text: str) -> None:
    assert meaning(text) == []


def test_the_end_of_a_text_is_no_step_of_its_own() -> None:
    text = "create a.txt with files and folders"
    assert meaning(text) == [("create_file", {"path": "a.txt", "text": "files and folders"})]


def test_a_search_is_not_for_words_that_tell_what_is_wanted() -> None:
    assert meaning("which files have I touched lately") == [("recent_files", {})]
    assert meaning("which files have touch_lately")[0][0] == "find_text"
    assert meaning("find TODO in src")[0][0] == "find_text"


def test_only_a_single_slip_makes_a_telling_word(gists: Keywords) -> None:
    assert near_keywords(gists, "bigest") == ("biggest",)
    assert near_keywords(gists, "president") == ()
    assert near_keywords(gists, "life") == ()
