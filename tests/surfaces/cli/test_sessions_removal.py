"""`hermes sessions prune`, `delete`, `archive --to-file`: what goes when told to, what stays."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from threading import Timer

import pytest

from hermes.core.events import SessionEnded
from hermes.journal.journal import SqliteJournal
from hermes.journal.sessions import fork
from tests.surfaces.cli.past import add_session, in_the_past
from tests.surfaces.cli.program import PROGRAM, Program

# Whoever runs the tests may have chosen to ignore Ctrl+C; the person here has not.
AT_A_TERMINAL = (
    "import fcntl, os, signal, sys, termios\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)


@pytest.fixture
def old(program: Program) -> Program:
    """One session that was ended long ago, one that was just left, and one of today."""
    add_session(program.home, "ended", days=200, title="Old plan", ended="user_exit")
    add_session(program.home, "left", days=100, said="a left marmalade")
    add_session(program.home, "young", days=3)
    return program


def ids(program: Program) -> set[str]:
    return {info["id"] for info in program.sessions()}


def test_a_dry_run_only_says_which(old: Program) -> None:
    result = old("sessions", "prune", "--dry-run")
    *names, total = result.out.splitlines()
    assert (result.code, set(names)) == (0, {"ended", "left"})
    assert total == "2 sessions would be deleted."
    found = old("sessions", "prune", "--dry-run", "--json").json
    assert (set(found["removed"]), found["kept"]) == ({"ended", "left"}, [])
    assert ids(old) == {"ended", "left", "young"}


def test_sessions_that_were_ended_or_just_left_go_when_they_are_old(old: Program) -> None:
    result = old("sessions", "prune", "--yes")
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith("2 sessions deleted.\n")
    assert ids(old) == {"young"}
    assert old("sessions", "search", "marmalade", "--json").json == []
    assert old("sessions", "prune", "--yes").out == "0 sessions would be deleted.\n"


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (("--older-than", "150"), {"ended"}),
        (("--older-than", "2w"), {"ended", "left"}),
        (("--older-than", "1h"), {"ended", "left", "young"}),
        (("--older-than", "1h", "--title", "plan"), {"ended"}),
        (("--older-than", "1h", "--newer-than", "150d"), {"left", "young"}),
        (("--end-reason", "user_exit"), {"ended"}),
        (("--source", "telegram"), set()),
    ],
)
def test_the_choice_can_be_narrowed(old: Program, options: tuple[str, ...], gone: set[str]) -> None:
    planned = old("sessions", "prune", "--dry-run", "--json", *options).json
    assert set(planned["removed"]) == gone
    done = old("sessions", "prune", "--yes", "--json", *options).json
    assert done == planned
    assert ids(old) == {"ended", "left", "young"} - gone


def test_an_age_that_is_none_is_wrong_usage(old: Program) -> None:
    result = old("sessions", "prune", "--older-than", "soon", "--yes")
    assert (result.code, result.out) == (2, "")
    assert ids(old) == {"ended", "left", "young"}


def test_nothing_goes_unasked(old: Program) -> None:
    result = old("sessions", "prune")
    assert (result.code, result.out) == (2, "")
    assert (
        "2 sessions will be deleted. Continue? Without a terminal, confirm with --yes."
        in result.err
    )
    result = old("sessions", "delete", "left")
    assert (result.code, result.out) == (2, "")
    assert ids(old) == {"ended", "left", "young"}


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 1), (b"y\n", 0), (b"\x03", 130)])
def test_the_person_decides(old: Program, answer: bytes, code: int) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", AT_A_TERMINAL, PROGRAM, "sessions", "prune"],
        env=old.env(),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        guard = Timer(60, process.kill)
        guard.start()
        os.close(theirs)
        assert process.stderr is not None
        assert process.stderr.read(30).startswith(b"2 sessions will be deleted.")
        # A signal may come before the program waits for input; then the person presses again.
        while process.poll() is None:
            os.write(ours, answer)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
        guard.cancel()
    os.close(ours)
    assert process.returncode == code
    assert ("left" in ids(old)) == (code != 0)


def test_archived_sessions_come_back(old: Program) -> None:
    before = {info["id"]: info for info in old.sessions()}
    lines = old("sessions", "export").out
    result = old("sessions", "prune", "--archive", "--yes")
    assert result.out.endswith("2 sessions archived.\n")
    assert ids(old) == {"young"}
    files = sorted((old.home / "archive").iterdir())
    assert [path.name for path in files] == ["ended.jsonl.gz", "left.jsonl.gz"]
    for path in files:
        assert path.stat().st_mode & 0o777 == 0o600
        assert old("sessions", "import", str(path)).code == 0
    assert {info["id"]: info for info in old.sessions()} == before
    assert sorted(old("sessions", "export").out.splitlines()) == sorted(lines.splitlines())
    assert old("sessions", "search", "marmalade", "--json").json[0]["session_id"] == "left"


def test_parents_go_with_their_forks_whether_ended_or_left(program: Program) -> None:
    add_session(program.home, "ended", days=200, ended="user_exit")
    add_session(program.home, "left", days=200)

    async def two_forks(journal: SqliteJournal) -> tuple[str, str]:
        of_ended = await fork(journal, "ended")
        of_left = await fork(journal, "left")
        lease = await journal.acquire(of_left)
        await journal.append(lease, [SessionEnded(reason="user_exit")])
        await journal.release(lease)
        return of_ended, of_left

    forks = in_the_past(program.home, 150, two_forks)
    planned = program("sessions", "prune", "--dry-run", "--json").json
    assert set(planned["removed"]) == {"ended", "left", *forks}
    done = program("sessions", "prune", "--yes", "--json").json
    assert (set(done["removed"]), done["kept"]) == (set(planned["removed"]), [])
    assert ids(program) == set()


def test_a_parent_stays_while_a_fork_needs_it(program: Program) -> None:
    add_session(program.home, "parent", days=200)
    child = in_the_past(program.home, 1, lambda journal: fork(journal, "parent"))
    result = program("sessions", "prune", "--yes")
    assert (
        result.out == "0 sessions would be deleted; 1 kept, because they are open or have forks.\n"
    )
    assert ids(program) == {"parent", child}
    refused = program("sessions", "delete", "parent", "--yes")
    assert (refused.code, refused.out) == (2, "")
    assert child in refused.err


def test_a_session_that_somebody_is_in_stays(old: Program) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from hermes.core.world import World\n"
        "from hermes.journal.journal import SqliteJournal\n"
        "async def hold():\n"
        "    async with SqliteJournal(Path(sys.argv[1]) / 'hermes.db', World()) as journal:\n"
        "        await journal.acquire('left')\n"
        "        print('held', flush=True)\n"
        "        await asyncio.to_thread(sys.stdin.read)\n"
        "asyncio.run(hold())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(old.home)],
        env=old.env(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        guard = Timer(120, holder.kill)
        guard.start()
        assert holder.stdout.readline() == b"held\n"
        done = old("sessions", "prune", "--yes", "--json").json
        assert done == {"removed": ["ended"], "kept": ["left"]}
        busy = old("sessions", "delete", "left", "--yes")
        assert (busy.code, busy.out) == (1, "")
        holder.communicate(timeout=60)
        guard.cancel()
    assert ids(old) == {"left", "young"}
    assert old("sessions", "delete", "left", "--yes").code == 0


def test_a_deleted_session_is_gone_with_all_that_belonged_to_it(program: Program) -> None:
    (program.work / "notes.txt").write_text("buy marmalade")
    session, other = program.session("run cat notes.txt"), program.session("calculate 6*7")
    folder = program.home / "sessions" / session
    assert folder.is_dir()
    assert program("sessions", "search", "marmalade", "--json").json
    result = program("sessions", "delete", session, "--yes")
    assert result.out == f"{session} is deleted.\n"
    assert ids(program) == {other}
    assert not folder.exists()
    assert program("sessions", "search", "marmalade", "--json").json == []
    assert program("sessions", "show", session).code == 1
    assert program("sessions", "verify").code == 0
    assert program("sessions", "delete", other, "--yes", "--json").json == {"session_id": other}


def test_no_id_leads_out_of_the_folder_of_sessions(program: Program) -> None:
    add_session(program.home, "..")
    kept = program.home / "SOUL.md"
    kept.write_text("mine")
    (program.home / "sessions").mkdir()
    assert program("sessions", "delete", "..", "--yes").code == 0
    assert kept.read_text() == "mine"


def test_the_room_of_removed_sessions_is_given_back(program: Program) -> None:
    assert program("sessions", "optimize", "--json").json == {"bytes_before": 0, "bytes_after": 0}
    gone = program.session(f"calculate 1 + {'1' * 300_000}")
    program("sessions", "delete", gone, "--yes")
    sizes = program("sessions", "optimize", "--json").json
    assert sizes["bytes_after"] < sizes["bytes_before"]
    kept = program.session("calculate 6*7")
    assert kept in program("sessions", "search", "calculate").out


def test_a_session_that_is_put_away_comes_back_as_it_was(old: Program) -> None:
    before = old("sessions", "show", "left", "--json").json
    (done,) = old("sessions", "archive", "left", "left", "--to-file", "--json").json
    assert ids(old) == {"ended", "young"}
    assert old("sessions", "search", "marmalade", "--json").json == []
    assert old("sessions", "import", done["file"]).code == 0
    assert old("sessions", "show", "left", "--json").json == before
    assert "restores it" in old("sessions", "archive", "left", "--to-file").out


def test_nothing_is_put_away_when_one_of_the_names_is_wrong(old: Program) -> None:
    assert old("sessions", "archive", "left", "nosuch", "--to-file").code == 1
    assert ids(old) == {"ended", "left", "young"}
