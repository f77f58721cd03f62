from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hermes.mcp.listing import tool_name, tool_names


def test_a_tool_is_called_by_its_server_and_its_own_name() -> None:
    assert tool_name("git hub", "create-issue") == "mcp_git_hub_create_issue"


def test_the_first_of_two_that_sound_alike_keeps_the_plain_name() -> None:
    names = tool_names([("s", "a-b"), ("s", "a_b"), ("s", "a.b")])
    assert names["s", "a-b"] == "mcp_s_a_b"
    assert len(set(names.values())) == 3
    assert all(name.startswith("mcp_s_a_b") for name in names.values())


def test_a_mark_does_not_depend_on_the_others() -> None:
    one = tool_names([("s", "a-b"), ("s", "a_b")])["s", "a_b"]
    other = tool_names([("s", "a-b"), ("s", "x"), ("s", "a_b")])["s", "a_b"]
    assert one == other


def test_a_hundred_tools_that_sound_alike_all_have_names() -> None:
    tools = [("server" * 9, f"tool{'-' * 40}{n // 4}{'.-_+'[n % 4]}") for n in range(100)]
    names = tool_names(tools)
    assert len(set(names.values())) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_]{1,64}", name) for name in names.values())


@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=80)), unique=True, max_size=30))
def test_names_are_valid_and_never_meet(tools: list[tuple[str, str]]) -> None:
    names = tool_names(tools)
    assert len(set(names.values())) == len(tools)
    assert all(re.fullmatch(r"[A-Za-z0-9_]{1,64}", name) for name in names.values())
