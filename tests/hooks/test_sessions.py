"""Hooks around turns: stopped by a person, shortened conversations, sessions that end, secrets."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from hermes.core.commands import Compact, End, Interrupt, Say
from hermes.core.errors import UsageError
from hermes.hooks.registry import Hooks
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.durability.stage import Stage
from tests.hooks.programs import Programs
from tests.hooks.stage import Told, ended, events, opened, results, say


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        ("pre_llm_call", []),
        ("pre_tool_call", ["skipped: the person interrupted before this call began."]),
        ("post_tool_call", ["one"]),
    ],
)
async def test_a_person_who_says_stop_does_not_wait_for_hooks(
    tmp_path: Path, hook: str, expected: list[str]
) -> None:
    begun = asyncio.Event()

    async def hang(**_: object) -> None:
        begun.set()
        await asyncio.sleep(600)

    def prepare(hooks: Hooks) -> None:
        hooks.add(hook, hang, owner="slow", timeout=500)

    steps = [calls("terminal", command="echo one"), says("Ran.")]
    async with opened(tmp_path, steps, prepare) as (app, session, _):
        await session.send(Say(text="Go."))
        await begun.wait()
        await session.send(Interrupt())
        async with asyncio.timeout(60):
            await session.wait_until_idle()
        found = await events(app, session)
    assert ended(found) == ["interrupted"]
    assert results(found) == expected


async def test_shortening_and_ending_a_session_are_told(tmp_path: Path) -> None:
    told = Told()
    steps = [says("word " * 3_000), says("word " * 3_000), says("Hm."), says("A summary.")]
    async with opened(tmp_path, steps, told.listen) as (_app, session, _):
        for text in ("One.", "Two.", "Three."):
            await say(session, text)
        try:
            await session.send(Compact(topic="", keep=1))
        except UsageError as error:
            pytest.fail(str(error))
        await session.send(End(reason="new"))
    (shortened,) = told.of("on_session_compress")
    before, after = shortened["tokens_before"], shortened["tokens_after"]
    assert isinstance(before, int) and isinstance(after, int)
    assert before > after > 0
    (over,) = told.of("on_session_finalize")
    assert (over["reason"], over["session_id"]) == ("new_session", session.id)
    assert told.names[-2:] == ["on_session_compress", "on_session_finalize"]


async def test_what_a_hook_brings_in_is_veiled_like_everything_else(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2

    def prepare(hooks: Hooks) -> None:
        hooks.add("pre_llm_call", lambda **_: f"The token is {secret}", owner="a")
        hooks.add("transform_tool_result", lambda **_: f"found {secret}", owner="a")
        hooks.add("transform_llm_output", lambda **_: f"It is {secret}", owner="a")

    steps = [calls("terminal", command="echo one"), says("Ran.")]
    async with opened(tmp_path, steps, prepare) as (app, session, server):
        await say(session, "Go.")
        found = await events(app, session)
    assert secret not in str(found)
    assert secret not in "".join(str(request.body) for request in server.requests)


async def test_hooks_that_are_added_later_count_from_the_next_turn(tmp_path: Path) -> None:
    told = Told()
    steps = [says("One."), says("Two.")]
    async with opened(tmp_path, steps) as (app, session, _):
        await say(session, "One?")
        told.listen(app.hooks.registry, "pre_llm_call", "on_session_end")
        await say(session, "Two?")
        app.hooks.registry.remove("test")
    assert told.names == ["pre_llm_call", "on_session_end"]


async def test_the_variable_is_as_good_as_the_option(tmp_path: Path) -> None:
    programs = Programs(tmp_path / "hooks", {"on_session_end": {}})
    settings = programs.settings.replace("hooks_auto_accept: true\n", "")
    async with ScriptedServer([says("Hi.")]) as server:
        stage = Accepting(tmp_path / "stage", server, settings=settings)
        ended_ = await stage.ask("Go.")
    assert ended_.err == ""
    assert programs.ran == ["on_session_end"]


class Accepting(Stage):
    @property
    def env(self) -> dict[str, str]:
        return super().env | {"HERMES_ACCEPT_HOOKS": "1"}


async def test_a_run_without_hooks_loads_nothing_of_them(tmp_path: Path) -> None:
    async with ScriptedServer([calls("terminal", command="echo one"), says("Ran.")]) as server:
        stage = Stage(tmp_path / "stage", server)
        code = (
            "import sys; from hermes.surfaces.cli.running import run; "
            f"run({stage.asking('Go.')!r}); "
            "print([name for name in sys.modules if name.startswith('hermes.hooks.')"
            " and name != 'hermes.hooks.run_hooks'])"
        )
        process = await stage.command(sys.executable, "-c", code)
        out, _ = await process.communicate()
    assert out.decode().splitlines() == ["Ran.", "[]"]


async def test_hooks_that_come_while_a_session_is_open_see_its_next_requests(
    tmp_path: Path,
) -> None:
    told = Told()
    async with opened(tmp_path, [says("One."), says("Two.")]) as (app, session, server):
        await say(session, "First.")
        told.listen(app.hooks.registry, "pre_api_request", "post_api_request")
        app.hooks.registry.add("pre_llm_call", lambda **_: "It rains.", owner="test")
        await say(session, "Second.")
        asked = server.requests[-1].body["messages"][-1]["content"]
    assert told.names == ["pre_api_request", "post_api_request"]
    assert asked == "Second.\n\nIt rains."
