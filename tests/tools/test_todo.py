from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.messages import joined_text
from hermes.core.tools import ToolOutput
from hermes.tools.todo import todo

if TYPE_CHECKING:
    from tests.tools.conftest import ToolRunner

PLAN = [
    {"id": "1", "content": "look", "status": "completed"},
    {"id": "2", "content": "think", "status": "in_progress"},
    {"id": "3", "content": "act"},
]


def said(output: ToolOutput) -> str:
    return joined_text(output.parts)


async def test_a_list_is_kept_and_can_be_read(runner: ToolRunner) -> None:
    written = await runner.run(todo, todos=PLAN)
    assert said(written) == "[x] 1: look\n[>] 2: think\n[ ] 3: act\n1 of 3 completed"
    assert written.details == {
        "todos": [*PLAN[:2], {"id": "3", "content": "act", "status": "pending"}],
        "summary": {
            "total": 3,
            "pending": 1,
            "in_progress": 1,
            "completed": 1,
            "cancelled": 0,
        },
    }
    assert await runner.run(todo) == written


async def test_without_a_list_it_is_empty(runner: ToolRunner) -> None:
    assert said(await runner.run(todo)) == "The list is empty."


async def test_a_new_list_replaces_the_old_one(runner: ToolRunner) -> None:
    await runner.run(todo, todos=PLAN)
    assert said(await runner.run(todo, todos=[{"id": "9", "content": "rest"}])) == (
        "[ ] 9: rest\n0 of 1 completed"
    )
    assert said(await runner.run(todo, todos=[])) == "The list is empty."


async def test_merging_updates_by_id_and_adds(runner: ToolRunner) -> None:
    await runner.run(todo, todos=PLAN)
    merged = await runner.run(
        todo,
        merge=True,
        todos=[
            {"id": "2", "status": "cancelled"},
            {"id": "4", "content": "tell"},
            {"id": "3", "content": "act now"},
        ],
    )
    assert said(merged).splitlines()[:4] == [
        "[x] 1: look",
        "[-] 2: think",
        "[ ] 3: act now",
        "[ ] 4: tell",
    ]


async def test_an_unknown_status_is_pending_and_long_content_is_cut(runner: ToolRunner) -> None:
    output = await runner.run(todo, todos=[{"id": "1", "content": "x" * 5000, "status": "doing"}])
    (item,) = output.details["todos"]
    assert item["status"] == "pending"
    assert len(item["content"]) == 4000


async def test_a_list_quoted_as_json_is_understood(runner: ToolRunner) -> None:
    assert "[ ] 1: a" in said(await runner.run(todo, todos='[{"id": "1", "content": "a"}]'))


async def test_what_cannot_be_kept_leaves_the_list_as_it_was(runner: ToolRunner) -> None:
    await runner.run(todo, todos=PLAN)
    many = [{"id": str(n), "content": "x"} for n in range(257)]
    for wrong in (many, [{"id": "5"}], [{"id": " ", "content": "x"}]):
        assert (await runner.run(todo, todos=wrong, merge=True)).failed
    assert (await runner.run(todo)).details["summary"]["total"] == 3


async def test_it_may_be_repeated_after_a_crash_and_touches_nothing(runner: ToolRunner) -> None:
    assert todo.repeat == "safe"
    assert runner.effects(todo, todos=PLAN) == []
