"""What a request means after another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.messages import user_says
from hermes.providers.offline.parsing import RequestStep
from hermes.providers.offline.requests import DialogueTurn, read_request

# Dialogues with an empty line between them; one line each: the words, the kinds of the steps.
DIALOGUES = [
    [line.split("\t") for line in dialogue.splitlines()]
    for dialogue in (Path(__file__).parent / "dialogues.tsv").read_text("utf-8").split("\n\n")
]


def steps(*said: str) -> tuple[RequestStep, ...]:
    """The steps of the last thing that was said."""
    return read_request(
        "en", tuple(DialogueTurn(user_messages=(user_says(text),)) for text in said)
    ).steps


@pytest.mark.parametrize("dialogue", DIALOGUES, ids=[lines[0][0] for lines in DIALOGUES])
def test_every_turn_of_a_dialogue_is_understood(dialogue: list[list[str]]) -> None:
    said = [text for text, _ in dialogue]
    found = [
        " ".join(step.kind for step in steps(*said[: number + 1])) or "-"
        for number in range(len(said))
    ]
    assert found == [kinds for _, kinds in dialogue]


@pytest.mark.parametrize(
    ("first", "then", "slots"),
    [
        ("list the files in docs", "sorted by size", {"path": "docs", "order": "size"}),
        ("list the files", "now with hidden ones please", {"hidden": "yes"}),
        ("list the files in docs", "and in src?", {"path": "src"}),
        ("search for foo in src", "ignoring case", {"text": "foo", "path": "src"}),
        ("how big is a.txt?", "and b.txt?", {"path": "b.txt"}),
    ],
)
def test_details_are_added_to_what_was_asked_before(
    first: str, then: str, slots: dict[str, str]
) -> None:
    (step,) = steps(first, then)
    (before,) = steps(first)
    assert step.kind == before.kind
    assert step.slots == {**step.slots, **slots}


@pytest.mark.parametrize(
    ("said", "kind", "slots"),
    [
        ("add bread", "todo_add", {"text": "bread"}),
        ("add eggs too", "todo_add", {"text": "eggs"}),
        ("remove milk", "todo_remove", {"text": "milk"}),
        ("number 2 is done", "todo_done", {"n": "2"}),
        ("clear it", "todo_clear", {}),
    ],
)
def test_after_the_to_do_list_short_words_are_about_it(
    said: str, kind: str, slots: dict[str, str]
) -> None:
    (step,) = steps("show my todo list", "thanks", said)
    assert (step.kind, step.slots) == (kind, slots)


def test_without_the_list_they_are_not() -> None:
    assert steps("list the files", "add bread") == ()
    (step,) = steps("list the files", "remove milk")
    assert (step.kind, step.slots) == ("delete", {"path": "milk"})


def test_a_file_stays_a_file_after_the_to_do_list() -> None:
    (step,) = steps("show my todo list", "remove a.txt")
    assert step.kind == "delete"


def test_details_mean_nothing_by_themselves() -> None:
    assert steps("sorted by size") == ()
    assert steps("what time is it", "sorted by size") == ()


def test_what_changed_a_file_is_done_again_only_for_what_is_surely_a_file() -> None:
    (step,) = steps("delete a.txt", "and b.txt")
    assert (step.kind, step.slots) == ("delete", {"path": "b.txt"})
    assert steps("delete a.txt", "and anna?") == ()
    assert steps("delete a.txt", "what about you?") == ()
