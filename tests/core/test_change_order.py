"""Calls without declared effects run in parallel while they read, and change things in order."""

from __future__ import annotations

import asyncio

from hermes.core.change_order import STALE
from hermes.core.events import ToolFinished, ToolStarted
from hermes.core.tools import ToolContext, ToolOutput, tool
from hermes.testing.provider import ScriptedProvider
from hermes.testing.steps import calls_many, says
from tests.core.conftest import Run


class Crowd:
    """Calls that wait until all of them are there."""

    expected = 0
    here = 0
    together = asyncio.Event()
    log: list[str] = []

    @classmethod
    def expect(cls, number: int) -> None:
        cls.expected, cls.here, cls.together, cls.log = number, 0, asyncio.Event(), []

    @classmethod
    async def meet(cls) -> None:
        cls.here += 1
        if cls.here == cls.expected:
            cls.together.set()
        async with asyncio.timeout(60):
            await cls.together.wait()


@tool()
async def ponder(ctx: ToolContext, n: int) -> ToolOutput:
    """Wait for all others."""
    await Crowd.meet()
    return ToolOutput.text(str(n))


@tool()
async def jot(ctx: ToolContext, n: int, path: str = "jotted") -> ToolOutput:
    """Wait for all others, then write without having declared it."""
    await Crowd.meet()
    await ctx.workspace.write_bytes(ctx.workspace.resolve(path), str(n).encode())
    Crowd.log.append(f"begin {n}")
    await asyncio.sleep(0)
    Crowd.log.append(f"end {n}")
    return ToolOutput.text(str(n))


@tool()
async def count(ctx: ToolContext, n: int) -> ToolOutput:
    """Read a number, wait for all others, and write the next one."""
    path = ctx.workspace.resolve("number")
    number = int(await ctx.workspace.read_bytes(path))
    await Crowd.meet()
    await ctx.workspace.write_bytes(path, str(number + 1).encode())
    return ToolOutput.text(str(number + 1))


async def test_calls_that_only_read_run_in_parallel(run: Run) -> None:
    Crowd.expect(8)
    run.model = ScriptedProvider(calls_many(*(("ponder", {"n": n}) for n in range(8))), says("ok"))
    run.tools = (ponder,)
    await run.say("go")
    assert [result.text for result in run.session.transcript.messages[2].results] == [  # type: ignore[union-attr]
        str(n) for n in range(8)
    ]


async def test_more_calls_than_slots_all_end_though_all_change_something(run: Run) -> None:
    Crowd.expect(1)
    run.model = ScriptedProvider(
        calls_many(*(("jot", {"n": n, "path": f"file-{n}"}) for n in range(20))), says("ok")
    )
    run.tools = (jot,)
    await run.say("go")
    assert sorted(Crowd.log) == sorted(f"{w} {n}" for n in range(20) for w in ("begin", "end"))
    assert not any(result.failed for result in run.results())


async def test_changes_come_one_after_the_other_in_the_order_of_the_calls(run: Run) -> None:
    Crowd.expect(4)
    run.model = ScriptedProvider(
        calls_many(
            ("jot", {"n": 0, "path": "a"}),
            ("ponder", {"n": 1}),
            ("jot", {"n": 2, "path": "b"}),
            ("jot", {"n": 3, "path": "c"}),
        ),
        says("ok"),
    )
    run.tools = (jot, ponder)
    await run.say("go")
    assert Crowd.log == [f"{what} {n}" for n in (0, 2, 3) for what in ("begin", "end")]


async def test_a_call_does_not_overwrite_what_another_one_changed_after_it_was_read(
    run: Run,
) -> None:
    Crowd.expect(2)
    (run.project / "number").write_text("1")
    run.model = ScriptedProvider(calls_many(("count", {"n": 1}), ("count", {"n": 2})), says("ok"))
    run.tools = (count,)
    await run.say("go")
    assert [(r.text, r.failed) for r in run.results()] == [("2", False), (STALE, True)]
    assert (run.project / "number").read_text() == "2"


async def test_a_tool_that_changed_something_runs_alone_from_then_on(run: Run) -> None:
    Crowd.expect(1)
    twice = calls_many(("jot", {"n": 1, "path": "a"}), ("jot", {"n": 2, "path": "b"}))
    again = calls_many(("jot", {"n": 3, "path": "c"}), ("jot", {"n": 4, "path": "d"}))
    run.model = ScriptedProvider(twice, again, says("ok"))
    run.tools = (jot,)
    await run.say("go")
    kinds = [type(r.event) for r in run.seen if isinstance(r.event, ToolStarted | ToolFinished)]
    assert kinds[4:] == [ToolStarted, ToolFinished, ToolStarted, ToolFinished]
