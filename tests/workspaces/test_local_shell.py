from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.core.effects import RunCommand
from hermes.core.errors import ToolError
from hermes.core.ports import CommandResult
from hermes.core.world import World
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.process_tree import list_members
from hermes.workspaces.shell import ShellSettings
from tests.timing import check_in_time, leap, tries

if TYPE_CHECKING:
    from tests.workspaces.places import Place


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


async def until(path: Path) -> str:
    for _ in range(6_000):
        if line := first_line(path):
            return line
        await asyncio.sleep(0.01)
    raise AssertionError(f"{path} never came")


def first_line(path: Path) -> str:
    text = path.read_text() if path.exists() else ""
    return text.strip() if text.endswith("\n") else ""


def known(pid: int) -> bool:
    """Whether the system still has the process in its table, if only as a zombie."""
    return Path(f"/proc/{pid}").exists()


async def test_a_command_gets_no_descriptor_that_hermes_inherited(
    place: Place, tmp_path: Path
) -> None:
    descriptor = os.open(tmp_path / "outside", os.O_WRONLY | os.O_CREAT)
    os.set_inheritable(descriptor, True)
    try:
        result = await place.run(f"echo written >&{descriptor}")
    finally:
        os.close(descriptor)
    assert result.exit_code != 0
    assert (tmp_path / "outside").read_bytes() == b""


async def test_output_exit_code_and_folder_are_told(place: Place) -> None:
    root = str(place.root)
    assert await place.run("echo out; echo err >&2; exit 3") == CommandResult(
        output="out\nerr\n", exit_code=3, cwd=root, total_bytes=8
    )


@pytest.mark.parametrize(
    "ending",
    [
        "true",
        "false",
        "exit 4",
        "set -e; false",
        "trap 'echo bye' EXIT",
        "nosuchcommand",
        "( exit 2 )",
    ],
)
async def test_state_carries_over_however_a_command_ends(place: Place, ending: str) -> None:
    await place.run(
        "mkdir -p sub; cd sub; export A='x y' B=$'two\\nlines'; f() { echo f-$1; }; "
        f"alias ll='echo listed'; {ending}"
    )
    after = await place.run('pwd; echo "$A|$B"; f 1; ll')
    assert after.output == f"{place.root}/sub\nx y|two\nlines\nf-1\nlisted\n"
    assert after.cwd == f"{place.root}/sub"


async def test_a_script_with_its_own_trap_and_exit_keeps_its_code(place: Place) -> None:
    result = await place.run("trap 'echo bye' EXIT; export A=1; (exit 7)")
    assert (result.output, result.exit_code) == ("bye\n", 7)
    assert await place.output("echo $A") == "1\n"


async def test_unset_variables_stay_unset(place: Place) -> None:
    place.env["GIVEN"] = "1"
    await place.reopen()
    await place.run("unset GIVEN; export HOME=/elsewhere")
    assert await place.output("echo [$GIVEN] $HOME") == "[] /elsewhere\n"
    await place.run("export GIVEN=1")
    assert await place.output("echo [$GIVEN]") == "[1]\n"


async def test_cd_minus_leads_back_over_calls(place: Place) -> None:
    await place.run("cd /usr")
    await place.run("true")
    assert await place.output("cd - >/dev/null; pwd") == f"{place.root}\n"
    assert place.workspace.cwd == str(place.root)


async def test_a_folder_for_one_call_does_not_stay(place: Place) -> None:
    assert await place.output("pwd", cwd="/usr") == "/usr\n"
    assert place.workspace.cwd == str(place.root)


async def test_a_command_killed_by_timeout_leaves_the_last_good_state(place: Place) -> None:
    await place.run("export A=1")
    script = f"cd /usr; export A=2; echo partial; echo x > {place.root}/up; sleep 60"
    running = asyncio.create_task(place.run(script, timeout=20))
    await until(place.root / "up")
    leap(20)
    result = await running
    assert result == CommandResult(
        output="partial\n", exit_code=124, cwd=str(place.root), total_bytes=8, timed_out=True
    )
    assert await place.output("echo $A; pwd") == f"1\n{place.root}\n"


async def test_exec_leaves_the_state_as_it_was(place: Place) -> None:
    await place.run("export A=1")
    assert await place.output("export A=2; exec echo replaced") == "replaced\n"
    assert await place.output("echo $A") == "1\n"


async def test_options_of_a_script_do_not_disturb(place: Place) -> None:
    traced = await place.run("set -u; set -o noclobber; set -x; cd /usr")
    assert (traced.output, traced.cwd) == ("++ cd /usr\n", "/usr")
    assert await place.output("set -a; x=1; true") == ""
    assert await place.output("env | grep -c __hermes") == "0\n"


async def test_lines_are_counted_from_the_script(place: Place) -> None:
    await place.run("f() {\n  true\n}")
    assert await place.output("true\nnosuch") == "bash: line 2: nosuch: command not found\n"


async def test_very_long_scripts_run(place: Place) -> None:
    script = f"cat > big.txt <<'END'\n{'x' * 300_000}\nEND\nwc -c < big.txt; export BIG=1"
    assert (await place.output(script)).strip() == "300001"
    assert await place.output("echo $BIG") == "1\n"
    assert list((place.state / "shell").glob("after-*")) == []


async def test_a_removed_folder_falls_back_to_the_root(place: Place) -> None:
    await place.run("mkdir gone; cd gone; rmdir ../gone")
    result = await place.run("pwd")
    assert (result.output, result.cwd) == (f"{place.root}\n", str(place.root))
    with pytest.raises(ToolError, match="no folder /nowhere"):
        await place.run("true", cwd="/nowhere")


async def test_state_survives_a_restart_of_hermes(place: Place) -> None:
    await place.run("mkdir sub; cd sub; export A=1; f() { echo f; }")
    place.env["FRESH"] = "today"
    await place.reopen()
    assert await place.output("pwd; echo $A $FRESH; f") == f"{place.root}/sub\n1 today\nf\n"


async def test_overlapping_commands_do_not_undo_each_other(place: Place) -> None:
    slow = "touch ready1; while [ ! -e go ]; do sleep 0.01; done"
    running = asyncio.create_task(place.run(slow))
    while not (place.root / "ready1").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await place.run("mkdir sub; cd sub; export A=1; touch ../go")
    await running
    assert await place.output("pwd; echo $A") == f"{place.root}/sub\n1\n"


async def test_eight_commands_run_side_by_side(place: Place) -> None:
    await place.run("true")
    names = [f"n{n}" for n in range(8)]
    # Each waits for all the others: one after the other they would never end.
    script = "touch {}; until [ $(ls n* | wc -l) = 8 ]; do sleep 0.01; done"
    results = await asyncio.gather(*(place.run(script.format(name)) for name in names))
    assert [result.exit_code for result in results] == [0] * 8


async def test_input_is_empty_and_pagers_are_off(place: Place) -> None:
    assert await place.output("cat; echo $PAGER $GIT_PAGER; tty") == "cat cat\nnot a tty\n"


async def test_escapes_go_and_broken_text_is_replaced(place: Place) -> None:
    assert await place.output(r"printf '\e[31mred\e[0m \e]0;t\a\xff\r\n'") == "red �\n"


async def test_long_output_keeps_its_beginning_and_end(place: Place) -> None:
    result = await place.run("seq 1 100000", max_bytes=1_000)
    head, tail = result.output.split("[... ")
    assert head.startswith("1\n2\n")
    assert tail.endswith("bytes omitted ...]\n" + tail.split("]\n")[1])
    assert tail.endswith("\n100000\n")
    left_out = int(tail.split(" ", 1)[0])
    kept = len(head) + len(tail.split("]\n")[1])
    assert kept + left_out == result.total_bytes == 588_895
    assert kept <= 1_000


async def test_output_is_shown_while_it_comes(place: Place) -> None:
    shown: list[str] = []
    seen = place.root / "seen"

    def show(text: str) -> None:
        shown.append(text)
        seen.touch()

    result = await place.run("echo one; while [ ! -e seen ]; do :; done; echo two", on_output=show)
    assert "".join(shown) == result.output == "one\ntwo\n"


async def test_a_terminal_on_request(place: Place) -> None:
    result = await place.run(
        "test -t 0 && test -t 1 && echo yes; cat; echo $TERM; exit 5", pty=True
    )
    assert (result.output, result.exit_code) == ("yes\nxterm-256color\n", 5)


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM; "])
async def test_stop_ends_the_whole_group_within_a_second(place: Place, stubborn: str) -> None:
    script = f"{stubborn}(sleep 60 & echo $! > child; wait) & sleep 60 | cat; echo never"

    for one in tries():
        with one:
            (place.root / "child").unlink(missing_ok=True)
            running = asyncio.create_task(place.run(f"echo begun; {script}"))
            child = int(await until(place.root / "child"))
            started = time.monotonic()
            place.stop.set()
            result = await running
            took = time.monotonic() - started
            place.stop.clear()
            assert (result.exit_code, result.interrupted) == (130, True)
            assert result.output == "begun\n[Command interrupted]"
            assert not alive(child)
            check_in_time(took, 1)


async def test_stop_before_the_start_runs_nothing(place: Place) -> None:
    place.stop.set()
    result = await place.run("touch x")
    assert (result.output, result.exit_code) == ("[Command interrupted]", 130)
    assert not (place.root / "x").exists()


async def test_stop_reaches_children_that_left_the_group(place: Place) -> None:
    running = asyncio.create_task(place.run("setsid sh -c 'echo $$ > child; sleep 60'; true"))
    child = int(await until(place.root / "child"))
    place.stop.set()
    await running
    assert not alive(child)


async def test_what_holds_the_pipe_does_not_hang_the_call(place: Place) -> None:
    async with asyncio.timeout(60):
        result = await place.run("setsid sleep 60 & echo $! > child; echo done")
    assert result.output == "done\n"
    child = int(await until(place.root / "child"))
    assert alive(child)
    os.kill(child, signal.SIGKILL)


async def test_leftovers_in_the_group_end_with_the_workspace(place: Place) -> None:
    await place.run("sleep 60 & echo $! > child")
    child = int(await until(place.root / "child"))
    assert alive(child)
    await place.workspace.close()
    assert not alive(child)


async def test_a_cancelled_command_is_ended_and_reaped(place: Place) -> None:
    running = asyncio.create_task(place.run("echo $$ > shell; sleep 60"))
    shell = int(await until(place.root / "shell"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert list_members(shell) == []
    assert not known(shell)


async def test_death_by_signal_is_128_and_more(place: Place) -> None:
    assert (await place.run("kill -9 $$")).exit_code == 137
    assert (await place.run("sh -c 'kill -TERM $$'")).exit_code == 143


async def test_start_files_are_read_once_and_quietly(place: Place) -> None:
    (place.home / ".bashrc").write_text(
        "echo noise; echo x >> ~/count; export FROM_RC=1; rc() { echo rc; }; cd /; "
        "export ANTHROPIC_API_KEY=secret"
    )
    (place.home / "extra").write_text("export EXTRA=2\nexit 3\n")
    place.shell = ShellSettings(init_files=("~/extra",), auto_source_bashrc=False)
    await place.reopen()
    assert await place.output("echo $EXTRA [$FROM_RC]; pwd") == f"2 []\n{place.root}\n"
    (place.state / "shell" / "snapshot.json").unlink()
    place.shell = ShellSettings()
    await place.reopen()
    first = "echo $FROM_RC [$ANTHROPIC_API_KEY]; rc; pwd"
    assert await place.output(first) == f"1 []\nrc\n{place.root}\n"
    await place.run("true")
    await place.reopen()
    await place.run("true")
    assert (place.home / "count").read_text() == "x\n"


async def test_stop_also_ends_slow_start_files(place: Place) -> None:
    (place.home / ".bashrc").write_text("echo up > ~/up; [ -e ~/go ] || sleep 60; export RC=1")
    running = asyncio.create_task(place.run("echo never"))
    await until(place.home / "up")
    place.stop.set()
    async with asyncio.timeout(30):
        assert (await running).exit_code == 130
    place.stop.clear()
    (place.home / "go").touch()
    assert await place.output("echo $RC") == "1\n"


async def test_without_persistence_every_command_starts_afresh(place: Place) -> None:
    (place.home / ".bashrc").write_text("export FROM_RC=1")
    place.shell = ShellSettings(persistent=False)
    await place.reopen()
    result = await place.run("cd /usr; export A=1")
    assert result.cwd == str(place.root)
    assert await place.output("pwd; echo [$A] $FROM_RC") == f"{place.root}\n[] 1\n"


async def test_a_nul_byte_or_a_missing_shell_is_told(place: Place) -> None:
    with pytest.raises(ToolError, match="NUL"):
        await place.run("echo \0")
    programs = place.home / "programs"
    programs.mkdir()
    place.env = {**place.env, "PATH": str(programs)}
    await place.reopen()
    with pytest.raises(ToolError, match="bash is not installed"):
        await place.run("true")
    (programs / "bash").write_bytes(b"no program")
    (programs / "bash").chmod(0o755)
    with pytest.raises(ToolError, match="cannot be started"):
        await place.run("true")


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=st.text(st.characters(blacklist_characters="\0", codec="utf-8"), max_size=30))
def test_any_value_of_a_variable_survives(tmp_path: Path, value: str) -> None:
    async def both_ways() -> str:
        env = {"PATH": os.defpath, "GIVEN": value, "LANG": "C.UTF-8"}
        shell = LocalWorkspace("/", state=tmp_path, world=World(), env=env)
        for script in ('export KEPT="$GIVEN"; unset GIVEN', "true", 'printf %s "$KEPT"'):
            result = await shell.run(
                RunCommand(script=script, cwd="/"),
                timeout=9, stop=asyncio.Event(), max_bytes=9_999,
            )  # fmt: skip
        return result.output

    (tmp_path / "shell" / "snapshot.json").unlink(missing_ok=True)
    printed = asyncio.run(both_ways())
    if "\x1b" not in value and "\r\n" not in value:
        assert printed == value
