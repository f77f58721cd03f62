"""What holds in every workspace, wherever it is."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from hermes.core.errors import NotFound, ToolError
from hermes.core.ports import (
    CommandResult,
    FileInfo,
    ProcessNotice,
    SearchMatch,
    SearchQuery,
    SearchResult,
)
from hermes.workspaces.shell import ShellSettings
from tests.timing import check_in_time, leap, tries
from tests.workspaces.conftest import PLACES_OF_FILES

if TYPE_CHECKING:
    from tests.workspaces.places import AnyPlace

about_files = pytest.mark.parametrize("anyplace", PLACES_OF_FILES, indirect=True)


async def until(place: AnyPlace, path: str) -> str:
    """The first line of a file that a command is about to write."""
    for _ in range(3_000):
        if await place.workspace.stat(path):
            text = (await place.workspace.read_bytes(path)).decode()
            if text.endswith("\n"):
                return text.strip()
        await asyncio.sleep(0.02)
    raise AssertionError(f"{path} never came")


async def output_with(place: AnyPlace, process_id: str, word: str) -> str:
    seen = ""
    for _ in range(3_000):
        seen += (await place.workspace.processes.poll(process_id)).output
        if word in seen:
            return seen
        await asyncio.sleep(0.02)
    raise AssertionError(f"{word!r} never came: {seen!r}")


def notices(place: AnyPlace) -> Any:
    return aclosing(place.workspace.processes.notices())


async def test_output_exit_code_and_folder_are_told(anyplace: AnyPlace) -> None:
    assert await anyplace.run("echo out; echo err >&2; exit 3") == CommandResult(
        output="out\nerr\n", exit_code=3, cwd=anyplace.root, total_bytes=8
    )


@pytest.mark.parametrize(
    "ending", ["true", "exit 4", "set -e; false", "trap 'echo bye' EXIT", "( exit 2 )"]
)
async def test_state_carries_over_however_a_command_ends(anyplace: AnyPlace, ending: str) -> None:
    await anyplace.run(
        "mkdir -p sub; cd sub; export A='x y' B=$'two\\nlines'; f() { echo f-$1; }; "
        f"alias ll='echo listed'; {ending}"
    )
    after = await anyplace.run('pwd; echo "$A|$B"; f 1; ll')
    assert after.output == f"{anyplace.root}/sub\nx y|two\nlines\nf-1\nlisted\n"
    assert after.cwd == f"{anyplace.root}/sub"


async def test_unset_variables_and_the_way_back_carry_over(anyplace: AnyPlace) -> None:
    await anyplace.run("export A=1 HOME=/elsewhere")
    await anyplace.run("unset A; cd /usr")
    assert await anyplace.output("echo [$A] $HOME; cd - >/dev/null; pwd") == (
        f"[] /elsewhere\n{anyplace.root}\n"
    )


async def test_a_folder_for_one_call_does_not_stay(anyplace: AnyPlace) -> None:
    assert await anyplace.output("pwd", cwd="/usr") == "/usr\n"
    assert anyplace.workspace.cwd == anyplace.root


async def test_a_command_killed_by_timeout_leaves_the_last_good_state(anyplace: AnyPlace) -> None:
    await anyplace.run("export A=1")
    script = f"cd /usr; export A=2; echo partial; echo x > {anyplace.root}/up; sleep 60"
    running = asyncio.create_task(anyplace.run(script, timeout=20))
    await until(anyplace, f"{anyplace.root}/up")
    leap(20)
    result = await running
    assert result == CommandResult(
        output="partial\n", exit_code=124, cwd=anyplace.root, total_bytes=8, timed_out=True
    )
    assert await anyplace.output("echo $A; pwd") == f"1\n{anyplace.root}\n"


async def test_exec_leaves_the_state_as_it_was(anyplace: AnyPlace) -> None:
    await anyplace.run("export A=1")
    assert await anyplace.output("export A=2; exec echo replaced") == "replaced\n"
    assert await anyplace.output("echo $A") == "1\n"


async def test_very_long_scripts_run(anyplace: AnyPlace) -> None:
    script = f"cat > big.txt <<'END'\n{'x' * 300_000}\nEND\nwc -c < big.txt; export BIG=1"
    assert (await anyplace.output(script)).strip() == "300001"
    assert await anyplace.output("echo $BIG") == "1\n"


async def test_a_removed_folder_falls_back_to_the_root(anyplace: AnyPlace) -> None:
    await anyplace.run("mkdir gone; cd gone; rmdir ../gone")
    result = await anyplace.run("pwd")
    assert (result.output, result.cwd) == (f"{anyplace.root}\n", anyplace.root)
    with pytest.raises(ToolError, match="no folder /nowhere"):
        await anyplace.run("true", cwd="/nowhere")


async def test_state_survives_a_restart_of_hermes(anyplace: AnyPlace) -> None:
    await anyplace.run("mkdir sub; cd sub; export A=1; f() { echo f; }")
    await anyplace.reopen()
    assert await anyplace.output("pwd; echo $A; f") == f"{anyplace.root}/sub\n1\nf\n"


async def test_eight_commands_run_side_by_side(anyplace: AnyPlace) -> None:
    # Each waits for all the others: one after the other they would never end.
    script = "touch n{}; until [ $(ls n* | wc -l) = 8 ]; do sleep 0.05; done"
    results = await asyncio.gather(*(anyplace.run(script.format(n)) for n in range(8)))
    assert [result.exit_code for result in results] == [0] * 8


async def test_input_is_empty_and_pagers_are_off(anyplace: AnyPlace) -> None:
    assert await anyplace.output("cat; echo $PAGER $GIT_PAGER; [ -t 0 ] || echo no tty") == (
        "cat cat\nno tty\n"
    )


async def test_long_output_keeps_its_beginning_and_end(anyplace: AnyPlace) -> None:
    result = await anyplace.run("seq 1 100000", max_bytes=1_000)
    assert result.output.startswith("1\n2\n") and result.output.endswith("\n100000\n")
    assert result.total_bytes == 588_895
    assert len(result.output) < 1_100


async def test_output_is_shown_while_it_comes(anyplace: AnyPlace) -> None:
    shown: list[str] = []
    first = asyncio.Event()

    def show(text: str) -> None:
        shown.append(text)
        first.set()

    script = "echo one; until [ -e seen ]; do sleep 0.02; done; echo two"
    running = asyncio.create_task(anyplace.run(script, on_output=show))
    await first.wait()
    assert "".join(shown) == "one\n"
    await anyplace.workspace.write_bytes(f"{anyplace.root}/seen", b"")
    assert (await running).output == "".join(shown) == "one\ntwo\n"


async def test_a_terminal_on_request(anyplace: AnyPlace) -> None:
    result = await anyplace.run("test -t 0 && test -t 1 && echo yes; cat; exit 5", pty=True)
    assert (result.output, result.exit_code) == ("yes\n", 5)
    await anyplace.run("export A=1; cd /usr", pty=True)
    assert await anyplace.output("echo $A; pwd") == "1\n/usr\n"


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM; "])
async def test_stop_ends_the_whole_tree_within_a_second(anyplace: AnyPlace, stubborn: str) -> None:
    await anyplace.run("true")
    long = anyplace.long
    script = f"{stubborn}(setsid sleep {long} & sleep {long} & wait) & sleep {long} | cat"
    # Services are asked again and again whether something has ended.
    promised = 5 if anyplace.kind in ("daytona", "modal") else 1

    for one in tries():
        with one:
            await anyplace.run("rm -f up")
            running = asyncio.create_task(anyplace.run(f"echo begun; echo x > up; {script}"))
            await until(anyplace, f"{anyplace.root}/up")
            await asyncio.sleep(0.3)
            started = time.monotonic()
            anyplace.stop.set()
            result = await running
            took = time.monotonic() - started
            anyplace.stop.clear()
            assert (result.exit_code, result.interrupted) == (130, True)
            assert result.output == "begun\n[Command interrupted]"
            assert await anyplace.running() == 0
            check_in_time(took, promised)


async def test_stop_before_the_start_runs_nothing(anyplace: AnyPlace) -> None:
    await anyplace.run("true")
    anyplace.stop.set()
    assert (await anyplace.run("touch x")).output == "[Command interrupted]"
    assert await anyplace.workspace.stat(f"{anyplace.root}/x") is None


async def test_a_cancelled_command_is_ended(anyplace: AnyPlace) -> None:
    running = asyncio.create_task(anyplace.run(f"echo x > up; sleep {anyplace.long}"))
    await until(anyplace, f"{anyplace.root}/up")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await anyplace.running() == 0


async def test_what_is_left_running_does_not_hang_the_call(anyplace: AnyPlace) -> None:
    async with asyncio.timeout(60):
        assert await anyplace.output(f"sleep {anyplace.long} & echo done") == "done\n"
    await anyplace.reopen()
    assert await anyplace.running() == 0


async def test_death_by_signal_is_128_and_more(anyplace: AnyPlace) -> None:
    assert (await anyplace.run("kill -9 $$")).exit_code == 137
    assert (await anyplace.run("sh -c 'kill -TERM $$'")).exit_code == 143


async def test_start_files_are_read_once_and_secrets_in_them_stay_hidden(
    anyplace: AnyPlace,
) -> None:
    await anyplace.workspace.write_bytes(
        f"{anyplace.home}/.bashrc",
        b"echo noise; export FROM_RC=1 RC_COUNT=$((RC_COUNT + 1)) ANTHROPIC_API_KEY=secret; "
        b"rc() { echo rc; }; cd /\n",
    )
    first = "echo $FROM_RC [$ANTHROPIC_API_KEY]; rc; pwd"
    assert await anyplace.output(first) == f"1 []\nrc\n{anyplace.root}\n"
    await anyplace.workspace.delete(f"{anyplace.home}/.bashrc")


async def test_without_persistence_every_command_starts_afresh(anyplace: AnyPlace) -> None:
    anyplace.shell = ShellSettings(persistent=False)
    await anyplace.reopen()
    assert (await anyplace.run("cd /usr; export A=1")).cwd == anyplace.root
    assert await anyplace.output("pwd; echo [$A]") == f"{anyplace.root}\n[]\n"


@about_files
async def test_a_nul_byte_is_told(anyplace: AnyPlace) -> None:
    with pytest.raises(ToolError, match="NUL"):
        await anyplace.run("echo \0")


@about_files
async def test_files_are_written_whole_and_read_back(anyplace: AnyPlace) -> None:
    workspace, path = anyplace.workspace, f"{anyplace.root}/new folder/it's.bin"
    data = bytes(range(256)) * 400
    await workspace.write_bytes(path, b"old")
    await anyplace.run("chmod 750 'new folder'/*")
    await workspace.write_bytes(path, data)
    assert await workspace.read_bytes(path) == data
    info = await workspace.stat(path)
    assert info and info == FileInfo(
        path=path, kind="file", size=len(data), modified_ns=info.modified_ns
    )
    assert abs(info.modified_ns / 1e9 - time.time()) < 600
    assert await anyplace.output("stat -c '%a %n' 'new folder'/*; ls -A 'new folder'") == (
        "750 new folder/it's.bin\nit's.bin\n"
    )
    await workspace.delete(path)
    assert await workspace.stat(path) is None
    await workspace.delete(f"{anyplace.root}/new folder")
    assert await workspace.list_folder(anyplace.root) == ()


@about_files
async def test_folders_are_listed_by_name(anyplace: AnyPlace) -> None:
    await anyplace.run("mkdir b; touch a .hidden; ln -s nowhere broken; ln -s b link")
    listed = await anyplace.workspace.list_folder(anyplace.root)
    assert [(info.path.removeprefix(anyplace.root + "/"), info.kind) for info in listed] == [
        (".hidden", "file"),
        ("a", "file"),
        ("b", "folder"),
        ("broken", "other"),
        ("link", "folder"),
    ]


@about_files
async def test_what_cannot_be_done_with_files_is_told(anyplace: AnyPlace) -> None:
    workspace, root = anyplace.workspace, anyplace.root
    await anyplace.run("mkdir full; touch full/x; mkfifo pipe")
    for path, what, doing in (
        (f"{root}/none", "does not exist", workspace.read_bytes),
        (f"{root}/none", "does not exist", workspace.delete),
        (f"{root}/none", "does not exist", workspace.list_folder),
        (f"{root}/full", "is a folder", workspace.read_bytes),
        (f"{root}/full", "not empty", workspace.delete),
        (f"{root}/pipe", "pipe or socket", workspace.read_bytes),
        ("/dev/zero", "device", workspace.read_bytes),
    ):
        with pytest.raises(ToolError, match=what):
            await doing(path)
    with pytest.raises(ToolError, match="is a folder"):
        await workspace.write_bytes(f"{root}/full", b"x")
    with pytest.raises(ToolError, match="not a folder"):
        await workspace.write_bytes(f"{root}/full/x/y", b"x")


@about_files
async def test_paths_are_resolved_against_the_shell_with_links_followed(
    anyplace: AnyPlace,
) -> None:
    await anyplace.run("mkdir -p a/b; ln -s a link; cd a/b")
    workspace, root = anyplace.workspace, anyplace.root
    assert workspace.resolve("x") == f"{root}/a/b/x"
    assert workspace.resolve("../../link/new/file") == f"{root}/a/new/file"
    assert workspace.resolve(f"{root}/link") == f"{root}/a"
    assert workspace.resolve("~/x") == f"{anyplace.home}/x"
    assert workspace.resolve("/usr/../etc/") == "/etc"


@about_files
async def test_writing_through_a_link_keeps_the_link(anyplace: AnyPlace) -> None:
    await anyplace.run("echo old > real; ln -s real link")
    await anyplace.workspace.write_bytes(f"{anyplace.root}/link", b"new\n")
    assert await anyplace.output("cat real; readlink link") == "new\nreal\n"


@about_files
async def test_search_finds_lines_and_files(anyplace: AnyPlace) -> None:
    await anyplace.run(
        "git init -q . 2>/dev/null || mkdir .git; mkdir src build;"
        " printf 'build/\\n*.log\\n' > .gitignore;"
        " printf 'one\\ntwo needle\\nthree\\n' > src/a.txt; echo needle > build/b.txt;"
        " echo needle > src/c.log; echo 'a needle' > src/d.md; touch -d '2001-01-01' src/d.md;"
        " echo needle > .dot; printf 'needle\\0' > src/binary"
    )
    root, search = anyplace.root, anyplace.workspace.search
    assert await search(SearchQuery(pattern=r"need(le|y)\b", root=root, context=1)) == SearchResult(
        matches=(
            SearchMatch(path=f"{root}/src/a.txt", line=1, text="one", is_context=True),
            SearchMatch(path=f"{root}/src/a.txt", line=2, text="two needle"),
            SearchMatch(path=f"{root}/src/a.txt", line=3, text="three", is_context=True),
            SearchMatch(path=f"{root}/src/d.md", line=1, text="a needle"),
        )
    )
    only = await search(SearchQuery(pattern="needle", root=root, glob="*.md", hidden=True))
    assert [match.path for match in only.matches] == [f"{root}/src/d.md"]
    hidden = await search(SearchQuery(pattern="needle", root=root, hidden=True))
    assert f"{root}/.dot" in [match.path for match in hidden.matches]
    files = await search(SearchQuery(pattern="*.{md,txt}", root=f"{root}/src", target="files"))
    assert files == SearchResult(files=(f"{root}/src/a.txt", f"{root}/src/d.md"))
    with pytest.raises(ToolError, match="does not exist"):
        await search(SearchQuery(pattern="x", root=f"{root}/none"))


@about_files
async def test_scratch_is_outside_of_the_project(anyplace: AnyPlace) -> None:
    path = await anyplace.workspace.scratch("call/1.txt", b"kept")
    assert not path.startswith(anyplace.root + "/")
    assert await anyplace.workspace.read_bytes(path) == b"kept"


async def test_a_process_starts_where_the_shell_is(anyplace: AnyPlace) -> None:
    await anyplace.run("mkdir sub; cd sub; export A=1; f() { echo f $A; }")
    info = await anyplace.spawn("pwd; f; exit 3")
    ended = await anyplace.ended(info.id)
    assert (ended.output, ended.exit_code) == (f"{anyplace.root}/sub\nf 1\n", 3)


async def test_a_process_reads_its_input_until_the_end(anyplace: AnyPlace) -> None:
    info = await anyplace.spawn("echo up; read x; echo got $x; cat; echo end; exit 6")
    processes = anyplace.workspace.processes
    assert await output_with(anyplace, info.id, "up") == "up\n"
    await processes.write(info.id, "wörd\n")
    assert await output_with(anyplace, info.id, "got") == "got wörd\n"
    await processes.write(info.id, "x" * 100_000 + "\n")
    await processes.close(info.id)
    assert (await anyplace.ended(info.id)).exit_code == 6
    log = await processes.log(info.id, offset=-1, limit=1)
    assert (log.output, log.total_lines) == ("end", 4)
    with pytest.raises(ToolError, match="has ended"):
        await processes.write(info.id, "more")


async def test_a_process_on_a_terminal(anyplace: AnyPlace) -> None:
    info = await anyplace.spawn("test -t 0 && echo tty; read x; echo got $x; exit 4", pty=True)
    await output_with(anyplace, info.id, "tty")
    await anyplace.workspace.processes.write(info.id, "word\n")
    await output_with(anyplace, info.id, "got word")
    assert (await anyplace.ended(info.id)).exit_code == 4


async def test_kill_takes_the_whole_tree(anyplace: AnyPlace) -> None:
    info = await anyplace.spawn(
        f"trap '' TERM; (setsid sleep {anyplace.long} & wait) & sleep {anyplace.long} & "
        "echo up; wait"
    )
    await output_with(anyplace, info.id, "up")
    killed = await anyplace.workspace.processes.kill(info.id)
    assert killed.status == "exited"
    assert killed.exit_code in (137, 143)
    assert await anyplace.running() == 0


async def test_kill_takes_what_has_left_the_tree(anyplace: AnyPlace) -> None:
    detached = f"(setsid bash -c 'sleep {anyplace.long}; true' &)"
    info = await anyplace.spawn(f"{detached}; echo up; sleep {anyplace.long}")
    await output_with(anyplace, info.id, "up")
    # With bubblewrap, commands do not see the processes of others.
    while anyplace.kind != "bubblewrap" and await anyplace.running() < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    await anyplace.workspace.processes.kill(info.id)
    assert await anyplace.running() == 0


async def test_exactly_one_notice_of_the_end(anyplace: AnyPlace) -> None:
    info = await anyplace.spawn("echo result; exit 2", notify=True)
    async with asyncio.timeout(60), notices(anyplace) as stream:
        assert await anext(stream) == ProcessNotice(
            key=f"{info.id}:ended",
            process_id=info.id,
            text=f"[SYSTEM: Background process {info.id} completed (exit 2). "
            "Command: echo result; exit 2 Output: result]",
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.4):
                await anext(stream)


async def test_watched_words_give_notices(anyplace: AnyPlace) -> None:
    info = await anyplace.spawn("echo fine; echo an ERROR here; read x", watch=("ERROR",))
    async with asyncio.timeout(60), notices(anyplace) as stream:
        assert (await anext(stream)).text.endswith("Output: an ERROR here]")
    await anyplace.workspace.processes.kill(info.id)


async def test_processes_outlive_hermes_and_are_taken_up_again(anyplace: AnyPlace) -> None:
    info = await anyplace.spawn("echo before; read x; echo got $x; exit 7", notify=True)
    await output_with(anyplace, info.id, "before")
    await anyplace.reopen()
    listed = await anyplace.workspace.processes.list()
    assert [(one.id, one.status) for one in listed] == [(info.id, "running")]
    await anyplace.workspace.processes.write(info.id, "again\n")
    async with asyncio.timeout(60), notices(anyplace) as stream:
        assert (await anext(stream)).text.endswith("Output: before\ngot again]")


@about_files
async def test_unknown_processes_are_told(anyplace: AnyPlace) -> None:
    with pytest.raises(NotFound):
        await anyplace.workspace.processes.poll("proc_x")


async def test_what_shells_read_first_never_runs_around_a_command(anyplace: AnyPlace) -> None:
    """The shell that starts a command stands in another folder and may be free of its bounds."""
    await anyplace.run(
        "echo 'pwd >> \"$HERE/seen\"' > first.sh; export HERE=$PWD BASH_ENV=$PWD/first.sh"
    )
    await anyplace.run("true")
    info = await anyplace.spawn("echo up; sleep 0.1")
    await output_with(anyplace, info.id, "up")
    assert await anyplace.output("cat seen 2>/dev/null; echo $BASH_ENV") == await anyplace.output(
        "echo $HERE/first.sh"
    )
    assert await anyplace.output("SHLVL=5 bash -c :; cat seen") == await anyplace.output("pwd")
