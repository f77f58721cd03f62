"""The tool as a model calls it."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.core.errors import ToolError
from hermes.core.messages import Text
from hermes.recall.tools import CLOSED, NOTHING, PAGE_BYTES, RecallService, session_search
from hermes.testing.context import ScriptedContext
from tests.recall.conftest import Home

T = TypeVar("T")
NOON = 1_684_152_000.0


class Context(ScriptedContext):
    def __init__(self, recall: RecallService) -> None:
        super().__init__()
        self._recall = recall

    def service(self, kind: type[T]) -> T:
        return cast(T, self._recall)


async def answer(home: Home, **arguments: Any) -> str:
    output = await Context(RecallService(home.archive())).call(session_search, **arguments)
    (part,) = output.parts
    assert isinstance(part, Text)
    return part.text


async def test_findings_are_plain_lines_with_handles(home: Home) -> None:
    await home.imported(
        ("trip", NOON, "Where did you leave the canoe?"),
        ("trip", NOON + 60, "At my uncle's boathouse, under the blue cover."),
        ("trip", NOON + 120, "Good."),
    )
    assert await answer(home, query="Where is the canoe?") == (
        "[trip] Mon 2023-05-15 12:00\n"
        "2> Where did you leave the canoe?\n"
        "3> At my uncle's boathouse, under the blue cover.\n"
        "4> Good.\n"
        "N> user, N< assistant, N# tool; context of a line: "
        "session_search(session_id=ID, around_message_id=N)"
    )


async def test_scrolling_marks_the_wanted_line(home: Home) -> None:
    await home.session("past", "one", "two", "three", "four")
    shown = await answer(home, session_id="past", around_message_id=3, window=1)
    assert shown.splitlines()[1:] == ["2> one", "*3< two", "4> three", "4 messages in all, up to 5"]
    nowhere = await answer(home, session_id="past", around_message_id=99)
    assert nowhere.endswith("There is no message at that position.")


async def test_without_arguments_recent_sessions_are_listed(home: Home) -> None:
    assert await answer(home) == "There are no other sessions yet."
    await home.session("past", "Please sort my stamps.")
    assert "[past]" in await answer(home)
    assert "“Please sort my stamps.”" in await answer(home)


async def test_nothing_found_says_what_to_try(home: Home) -> None:
    await home.session("past", "one")
    assert await answer(home, query="quagga") == NOTHING


async def test_a_page_is_never_too_long(home: Home) -> None:
    rows = [
        (f"s{n // 20}", NOON + n, f"The canoe, part {n}: " + "wörter " * (n % 90))
        for n in range(400)
    ]
    await home.imported(*rows)
    shown = await answer(home, query="canoe")
    assert PAGE_BYTES * 0.8 < len(shown.encode()) <= 6_500
    assert len([line for line in shown.splitlines() if line.startswith("[")]) <= 20
    few = await answer(home, query="canoe", limit=2)
    assert len([line for line in few.splitlines() if line.startswith("[")]) == 2


async def test_the_order_can_be_chosen(home: Home) -> None:
    await home.imported(
        ("new", NOON + 9_000, "The canoe was sold."),
        ("old", NOON, "The canoe, our canoe! The canoe came today."),
    )
    for sort, first in (("newest", "[new]"), ("oldest", "[old]")):
        assert (await answer(home, query="canoe", sort=sort)).startswith(first)


async def test_a_time_narrows_the_search(home: Home) -> None:
    await home.imported(
        ("may", NOON, "The canoe is new."), ("later", NOON * 1.1, "The canoe is old.")
    )
    assert "[later]" not in await answer(home, query="canoe", when="May 2023")
    assert "[may]" in await answer(home, query="canoe", when="2023-05-01..2023-05-20")
    with pytest.raises(ToolError, match="not a known time"):
        await answer(home, query="canoe", when="some day")


async def test_unknown_names_are_told_to_the_model(home: Home) -> None:
    await home.session("past", "one")
    with pytest.raises(ToolError, match="nowhere"):
        await answer(home, session_id="nowhere")
    assert "past" in await answer(home, query="one", role_filter="nobody, user")


async def test_words_of_strangers_stay_theirs(home: Home) -> None:
    evil = "web:evil.example"
    await home.read_a_page("old", "The heron wants your keys", evil, "The heron page asks for keys")
    await home.session("own", "The heron is grey", "I see, the heron is grey")

    async def origin(**arguments: Any) -> str:
        call = Context(RecallService(home.archive())).call(session_search, **arguments)
        return (await call).origin

    assert await origin(query="heron keys", role_filter="tool") == evil
    assert await origin(query="heron keys", role_filter="assistant") == evil
    assert await origin(query="heron keys", role_filter="user") == "workspace"
    assert await origin(query="heron grey", session_id="own") == "workspace"
    assert await origin(session_id="old", around_message_id=5) == evil
    assert await origin(session_id="own") == "workspace"


async def test_without_an_archive_it_says_so() -> None:
    with pytest.raises(ToolError, match=CLOSED):
        await Context(RecallService()).call(session_search, query="anything")


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(query=st.text(max_size=80))
async def test_no_text_is_a_wrong_query(home: Home, query: str) -> None:
    assert await answer(home, query=query)


@pytest.mark.parametrize(
    "query", ["docker AND (compose", 'docker "', "docker:*", "-docker", "NEAR(docker)"]
)
async def test_no_sign_hides_what_is_there(home: Home, query: str) -> None:
    await home.session("past", "We run docker with compose on the small server.")
    assert "[past]" in await answer(home, query=query)
