from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from hermes.core.errors import NotFound, ToolError
from hermes.core.ports import ProcessNotice
from hermes.core.world import SystemClock, World
from hermes.workspaces.process_tree import identity
from hermes.workspaces.processes import REPORTED_SECONDS, UNREPORTED_SECONDS, ProcessLimits

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.workspaces.places import Place


class LaterClock(SystemClock):
    """The real one, put forward on request."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


def notices(place: Place) -> AsyncGenerator[ProcessNotice]:
    stream: AsyncIterator[ProcessNotice] = place.workspace.processes.notices()
    return cast("AsyncGenerator[ProcessNotice]", stream)


async def next_notice(place: Place) -> ProcessNotice:
    """Taken by somebody who comes back for more, as a session does."""
    async with asyncio.timeout(60), aclosing(notices(place)) as stream:
        first = await anext(stream)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(stream)
        return first


async def no_notice(place: Place) -> None:
    async with aclosing(notices(place)) as stream:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await anext(stream)


async def output_with(place: Place, process_id: str, word: str) -> str:
    seen = ""
    for _ in range(6_000):
        seen += (await place.workspace.processes.poll(process_id)).output
        if word in seen:
            return seen
        await asyncio.sleep(0.01)
    raise AssertionError(f"{word!r} never came: {seen!r}")


async def test_a_process_starts_where_the_shell_is(place: Place) -> None:
    await place.run("mkdir sub; cd sub; export A=1; f() { echo f $A; }")
    info = await place.spawn("pwd; f; exit 3")
    ended = await place.ended(info.id)
    assert (ended.output, ended.exit_code) == (f"{place.root}/sub\nf 1\n", 3)
    assert info.id.startswith("proc_") and len(info.id) == 17
    assert place.workspace.cwd == f"{place.root}/sub"


async def test_poll_gives_what_is_new(place: Place) -> None:
    info = await place.spawn("echo one; read x; echo two $x; read x")
    assert await output_with(place, info.id, "one") == "one\n"
    assert (await place.workspace.processes.poll(info.id)).output == ""
    await place.workspace.processes.write(info.id, "in\n")
    assert await output_with(place, info.id, "two") == "two in\n"


async def test_input_works_without_a_terminal(place: Place) -> None:
    info = await place.spawn("cat; echo end")
    await place.workspace.processes.write(info.id, "täxt\n")
    await place.workspace.processes.write(info.id, "x" * 100_000 + "\n")
    await place.workspace.processes.close(info.id)
    ended = await place.ended(info.id)
    assert ended.exit_code == 0
    log = await place.workspace.processes.log(info.id, offset=-1, limit=1)
    assert (log.output, log.total_lines) == ("end", 3)
    with pytest.raises(ToolError, match="has ended"):
        await place.workspace.processes.write(info.id, "more")


async def test_closed_input_takes_no_more(place: Place) -> None:
    info = await place.spawn("cat; sleep 60")
    await place.workspace.processes.close(info.id)
    with pytest.raises(ToolError, match="is closed"):
        await place.workspace.processes.write(info.id, "more")


async def test_input_that_nobody_reads_is_told(place: Place) -> None:
    place.limits = ProcessLimits(input_seconds=0.2)
    await place.reopen()
    info = await place.spawn("echo up; sleep 60")
    await output_with(place, info.id, "up")
    with pytest.raises(ToolError, match="does not read"):
        await place.workspace.processes.write(info.id, "x" * 1_000_000)


async def test_a_terminal_on_request(place: Place) -> None:
    script = "test -t 0 && echo tty; read x; echo got $x; cat; exit 4"
    info = await place.spawn(script, pty=True)
    await output_with(place, info.id, "tty")
    await place.workspace.processes.write(info.id, "word\n")
    assert "got word" in await output_with(place, info.id, "got")
    await place.workspace.processes.close(info.id)
    assert (await place.ended(info.id)).exit_code == 4


async def test_kill_takes_the_whole_tree(place: Place) -> None:
    script = (
        "trap '' TERM; (setsid sleep 60 & echo $! > far; wait) & sleep 60 & echo $! > near; wait"
    )
    info = await place.spawn(script)
    pids = [int(await _written(place.root / name)) for name in ("far", "near")]
    killed = await place.workspace.processes.kill(info.id)
    assert killed.status == "exited"
    assert killed.exit_code in (137, 143)
    assert [identity(pid) for pid in (*pids, info.pid)] == [None] * 3


async def _written(path: Path) -> str:
    for _ in range(6_000):
        if text := _text(path):
            return text
        await asyncio.sleep(0.01)
    raise AssertionError(path)


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


async def test_kill_by_number_reaches_the_command(place: Place) -> None:
    info = await place.spawn(
        "trap 'echo caught; exit 9' TERM; echo up; while :; do sleep 0.02; done"
    )
    await output_with(place, info.id, "up")
    os.kill(info.pid, signal.SIGTERM)
    ended = await place.ended(info.id)
    assert ended.output.endswith("caught\n")
    assert ended.exit_code == 9


async def test_exactly_one_notice_of_the_end(place: Place) -> None:
    info = await place.spawn("echo result; exit 2", notify=True)
    assert await next_notice(place) == ProcessNotice(
        key=f"{info.id}:ended",
        process_id=info.id,
        text=f"[SYSTEM: Background process {info.id} completed (exit 2). "
        "Command: echo result; exit 2 Output: result]",
    )
    await no_notice(place)
    await place.reopen()
    await no_notice(place)


async def test_a_notice_not_taken_to_the_end_comes_again(place: Place) -> None:
    info = await place.spawn("true", notify=True)
    for _ in range(2):
        async with asyncio.timeout(60), aclosing(notices(place)) as stream:
            assert (await anext(stream)).key == f"{info.id}:ended"
        await place.reopen()


async def test_whoever_saw_the_end_gets_no_notice(place: Place) -> None:
    waited = await place.spawn("true", notify=True)
    await place.ended(waited.id)
    killed = await place.spawn("sleep 60", notify=True)
    await place.workspace.processes.kill(killed.id)
    await no_notice(place)


async def test_silent_processes_give_no_notice(place: Place) -> None:
    info = await place.spawn("true")
    await place.ended(info.id)
    await no_notice(place)


async def test_waiting_ends_by_time_or_by_stop(place: Place) -> None:
    info = await place.spawn("echo x; sleep 60")
    processes = place.workspace.processes
    assert (await processes.wait(info.id, timeout=0.05, stop=place.stop)).status == "running"
    place.stop.set()
    assert (await processes.wait(info.id, timeout=60, stop=place.stop)).status == "running"


async def test_processes_outlive_hermes_and_are_taken_up_again(place: Place) -> None:
    living = await place.spawn("read x; echo got $x; read y; exit 6", notify=True)
    ending = await place.spawn("while [ ! -e go ]; do sleep 0.01; done; exit 5", notify=True)
    await place.workspace.close()
    (place.root / "go").touch()
    await _written(place.state / "processes" / ending.id / "exit")
    await place.reopen()
    assert (await next_notice(place)).text.startswith(
        f"[SYSTEM: Background process {ending.id} completed (exit 5)."
    )
    listed = await place.workspace.processes.list()
    assert [(info.id, info.status) for info in listed] == [
        (living.id, "running"),
        (ending.id, "exited"),
    ]
    await place.workspace.processes.write(living.id, "again\n")
    assert await output_with(place, living.id, "got") == "got again\n"
    await place.workspace.processes.write(living.id, "\n")
    assert (await place.ended(living.id)).exit_code == 6


HERMES = """
import asyncio, os, sys
from pathlib import Path
from hermes.core.effects import RunCommand
from hermes.core.world import World
from hermes.workspaces.local import LocalWorkspace

async def main():
    root, state = sys.argv[1:]
    workspace = LocalWorkspace(root, state=Path(state), world=World(), env={"PATH": os.defpath})
    effect = RunCommand(script="echo $$ > shell; read x; echo got $x", cwd=root, background=True)
    print((await workspace.spawn(effect, notify=True)).id, flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_a_process_outlives_the_violent_end_of_hermes(place: Place) -> None:
    hermes = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HERMES, str(place.root), str(place.state), stdout=-1,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    output, _ = await hermes.communicate()
    assert hermes.returncode == -9
    process_id = output.decode().strip()
    await _written(place.root / "shell")
    assert (await place.workspace.processes.poll(process_id)).status == "running"
    await place.workspace.processes.write(process_id, "on\n")
    assert (await next_notice(place)).text.endswith("Output: got on]")


async def test_a_stranger_with_the_same_number_is_left_alone(place: Place) -> None:
    info = await place.spawn("sleep 60", notify=True)
    await place.workspace.close()
    record = place.state / "processes" / info.id / "record.json"
    stored = json.loads(record.read_text())
    record.write_text(json.dumps({**stored, "identity": "another:1"}))
    await place.reopen()
    killed = await place.workspace.processes.kill(info.id)
    assert (killed.status, killed.exit_code) == ("exited", None)
    assert identity(info.pid) == stored["identity"]
    os.kill(info.pid, signal.SIGTERM)


async def test_a_damaged_record_does_no_harm(place: Place) -> None:
    folder = place.state / "processes" / "proc_broken"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text("{")
    assert await place.workspace.processes.list() == ()


async def test_unknown_processes_are_told_with_the_known_ones(place: Place) -> None:
    info = await place.spawn("true")
    with pytest.raises(NotFound) as error:
        await place.workspace.processes.poll("proc_x")
    assert error.value.near == (info.id,)


async def test_watched_words_give_notices_of_their_lines(place: Place) -> None:
    script = "echo fine; echo an ERROR here; echo fine; read x; printf 'last ERROR'"
    info = await place.spawn(script, watch=("ERROR",))
    notice = await next_notice(place)
    assert notice.key == f"{info.id}:watch:1"
    assert notice.text.endswith("Output: an ERROR here]")
    await place.workspace.processes.write(info.id, "\n")
    await place.ended(info.id)
    await no_notice(place)  # within 15 seconds of the first


async def test_the_log_shows_any_part(place: Place) -> None:
    info = await place.spawn("seq 1 500")
    await place.ended(info.id)
    processes = place.workspace.processes
    middle = await processes.log(info.id, offset=100, limit=2)
    assert (middle.output, middle.total_lines) == ("101\n102", 500)
    assert (await processes.log(info.id, offset=-3, limit=200)).output == "498\n499\n500"


async def test_the_oldest_finished_make_room(place: Place) -> None:
    place.limits = ProcessLimits(processes=3)
    await place.reopen()
    first, second = await place.spawn("true"), await place.spawn("true")
    await place.ended(first.id)
    await place.ended(second.id)
    running = [await place.spawn("sleep 60") for _ in range(3)]
    listed = await place.workspace.processes.list()
    assert [info.id for info in listed] == [info.id for info in running]
    assert not (place.state / "processes" / first.id).exists()
    with pytest.raises(ToolError, match="3 processes are running"):
        await place.spawn("true")


async def test_finished_ones_are_forgotten_after_a_while(place: Place) -> None:
    clock = LaterClock()
    place.world = World(clock=clock)
    await place.reopen()
    silent, telling = await place.spawn("true"), await place.spawn("true", notify=True)
    await place.ended(silent.id)
    await _written(place.state / "processes" / telling.id / "exit")
    while any(  # noqa: ASYNC110
        info.status == "running" for info in await place.workspace.processes.list()
    ):
        await asyncio.sleep(0.01)
    clock.ahead = REPORTED_SECONDS + 60
    assert [info.id for info in await place.workspace.processes.list()] == [telling.id]
    clock.ahead = UNREPORTED_SECONDS + 60
    assert await place.workspace.processes.list() == ()


async def test_no_zombie_is_left_by_a_closed_workspace(place: Place) -> None:
    info = await place.spawn("read x")
    await place.workspace.processes.write(info.id, "")
    await place.workspace.close()
    os.kill(info.pid, signal.SIGTERM)
    for _ in range(6_000):
        if not _in_table(info.pid):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("a zombie is left")


def _in_table(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
