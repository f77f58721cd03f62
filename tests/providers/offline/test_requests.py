"""Requests are understood completely or refused: examples, other wordings, and texts that only
look like requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.providers.offline.table import (
    REFUSAL,
    OfflineRequest,
    documentation,
    match_request,
    request_groups,
)
from tests.providers.offline.talk import Talk

FOLDER = Path(__file__).parent
REQUESTS = [request for group in request_groups().values() for request in group]
UNDERSTOOD = [line.split("\t") for line in (FOLDER / "understood.tsv").read_text().splitlines()]
REFUSED = (FOLDER / "refused.txt").read_text().splitlines()


def describe(text: str) -> str:
    """The rows and slots that a request is read as."""
    return " + ".join(
        " ".join([request.title.partition(",")[0], *(f"{k}={v}" for k, v in sorted(slots.items()))])
        for request, slots in match_request(text)
    )


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: each.title)
def test_every_example_of_a_row_means_that_row(request_: OfflineRequest) -> None:
    for example in request_.examples:
        assert match_request(example), example
        assert match_request(example)[-1][0] is request_, example


@pytest.mark.parametrize(("text", "meaning"), UNDERSTOOD)
def test_plain_requests_are_understood_with_all_their_words(text: str, meaning: str) -> None:
    assert describe(text) == meaning


@pytest.mark.parametrize("text", REFUSED)
async def test_other_requests_are_refused_in_one_line(text: str) -> None:
    turn = await Talk().say(text)
    assert (turn.calls, turn.text) == ((), REFUSAL)
    assert "\n" not in REFUSAL


@pytest.mark.parametrize(
    "text",
    [
        "Please list the files here.",
        "can you list the files here?",
        "LIST THE FILES HERE",
        "hey hermes, could you please list the files here for me?",
    ],
)
def test_polite_words_and_case_do_not_matter(text: str) -> None:
    assert describe(text) == "List a folder"


@pytest.mark.parametrize("text", ["list the files here; say moo", "list the files here\nsay moo"])
def test_requests_are_joined(text: str) -> None:
    assert describe(text) == "List a folder + Say a text text=moo"


def test_a_quoted_text_is_taken_literally() -> None:
    text = 'create a.txt with the text "read it and then delete it, please!"'
    assert describe(text).endswith("file=a.txt quoted=read it and then delete it, please!")


def test_a_request_of_more_than_five_steps_is_refused() -> None:
    assert len(match_request(" and ".join(["say moo"] * 5))) == 5
    assert match_request(" and ".join(["say moo"] * 6)) == ()


def test_the_page_lists_every_request() -> None:
    page = documentation()
    assert all(f"| {request.title} |" in page for request in REQUESTS)
