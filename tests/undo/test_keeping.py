"""What is kept before a change, what is not, and that this is said beforehand."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.core.effects import FetchUrl, RunCommand, SignalProcess
from hermes.undo.entry import read_entry
from hermes.undo.restore import restore_metadata
from hermes.undo.scanner import MB, UndoLimits
from tests.undo.conftest import Agent, modes, picture, relative, until


def command(agent: Agent, script: str) -> RunCommand:
    return RunCommand(script=script, cwd=str(agent.root))


async def test_a_command_that_only_reads_leaves_no_trace(agent: Agent) -> None:
    agent.fill({"a": "a"})
    await agent.did("ls -la; cat a | grep a; git status || true")
    assert not agent.store.exists


async def test_the_log_says_exactly_what_a_command_did(agent: Agent) -> None:
    agent.fill({"a": "a", "b": "b", "c": "c"})
    await agent.did("echo x > a; rm b; mv c d; mkdir e")
    (call,) = agent.recorded()
    found = {(relative(each.path, agent.root), each.kind) for each in call.changes}
    assert found == {
        ("a", "changed"),
        ("b", "deleted"),
        ("c", "deleted"),
        ("d", "renamed"),
        ("e", "created"),
    }


async def test_the_store_is_for_its_owner_alone(agent: Agent) -> None:
    agent.fill({"a": "secret", "big": "x" * MB})
    await agent.did("rm a big")
    assert modes(agent.store.folder) == {"folders": {0o700}, "files": {0o600}}


async def test_equal_contents_are_kept_once(agent: Agent) -> None:
    agent.fill({f"f{n}": "the same text\n" * 100 for n in range(50)})
    await agent.did("rm f1")
    with agent.store.reading() as db:
        assert db.execute("SELECT COUNT(*) FROM blobs").fetchone()[0] == 1


async def test_a_second_session_shares_what_is_kept(agent: Agent, tmp_path: Path) -> None:
    agent.fill({f"f{n}": f"text {n}\n" for n in range(50)})
    await agent.did("rm f1")
    other = Agent(tmp_path, session="s2")
    before = other.picture()
    await other.did("rm f2")
    with agent.store.reading() as db:
        assert db.execute("SELECT COUNT(*) FROM blobs").fetchone()[0] == 50
    other.undo()
    assert other.picture() == before
    assert not (agent.root / "f1").exists()
    await other.close()


async def test_two_sessions_take_back_only_their_own(agent: Agent, tmp_path: Path) -> None:
    agent.fill({"a": "a", "b": "b"})
    other = Agent(tmp_path, session="s2")
    await asyncio.gather(
        agent.did("sleep 0.2; rm a; sleep 0.2"),
        other.write("b", "by the other"),
    )
    agent.undo()
    assert (agent.root / "a").read_text() == "a"
    assert (agent.root / "b").read_text() == "by the other"
    other.undo()
    assert (agent.root / "b").read_text() == "b"
    await other.close()


async def test_a_path_outside_that_a_command_names_comes_back(agent: Agent, outside: Path) -> None:
    (outside / "x").write_text("x")
    (outside / "y").write_text("y")
    before = picture(outside)
    await agent.did(f"rm -r {outside}/x; echo more >> {outside}/y; mkdir -p {outside}/new/deep")
    agent.undo()
    assert picture(outside) == before


async def test_folders_that_can_be_made_again_are_named_as_not_covered(agent: Agent) -> None:
    agent.fill({f"node_modules/m/{n}.js": "x" for n in range(450)} | {"a": "a"})
    sentences = await agent.workspace.preflight(command(agent, "npm run clean"))
    assert sentences == (f"{agent.root}/node_modules can be recreated and is not covered.",)
    await agent.did("python3 -c \"import shutil; shutil.rmtree('node_modules')\"")
    assert agent.recorded()[0].body.notes == sentences
    assert agent.plan().notes == sentences


async def test_such_a_folder_is_covered_when_it_is_named_or_small(agent: Agent) -> None:
    agent.fill({f"node_modules/m/{n}.js": str(n) for n in range(450)} | {"dist/x": "x"})
    before = agent.picture()
    await agent.did("rm -rf node_modules; python3 -c \"import shutil; shutil.rmtree('dist')\"")
    agent.undo()
    assert agent.picture() == before


async def test_such_a_folder_that_was_made_goes_and_can_come_back(agent: Agent) -> None:
    agent.fill({"a": "a"})
    before = agent.picture()
    script = "import os; os.makedirs('target'); [open(f'target/{n}','w') for n in range(500)]"
    await agent.did(f'python3 -c "{script}"')
    after = agent.picture()
    agent.undo()
    assert agent.picture() == before
    agent.undo(number=1)
    assert agent.picture() == after


async def test_a_file_that_is_too_large_survives_its_deletion(tmp_path: Path) -> None:
    agent = Agent(tmp_path, limits=UndoLimits(max_file_bytes=MB, max_total_bytes=2 * MB))
    (agent.root / "huge").write_bytes(os.urandom(3 * MB))
    agent.fill({"small": "s"})
    before = agent.picture()
    (sentence,) = await agent.workspace.preflight(command(agent, "make"))
    assert "huge (3 MB) is larger than 1 MB" in sentence
    await agent.did("python3 -c \"import os; os.remove('huge'); os.remove('small')\"")
    agent.undo()
    assert agent.picture() == before
    await agent.close()


async def test_a_file_that_is_too_large_and_overwritten_is_told_as_lost(tmp_path: Path) -> None:
    agent = Agent(tmp_path, limits=UndoLimits(max_file_bytes=MB, max_total_bytes=2 * MB))
    (agent.root / "huge").write_bytes(os.urandom(3 * MB))
    await agent.did("python3 -c \"open('huge', 'r+').write('x')\"")
    plan = agent.plan()
    assert len(plan.lost) == 1 and "huge" in plan.lost[0]
    done = agent.undo()
    assert len(done.lost) == 1
    assert (agent.root / "huge").read_bytes()[:1] == b"x"
    await agent.close()


async def test_a_large_file_that_a_tool_deletes_is_not_copied(agent: Agent) -> None:
    data = os.urandom(4 * MB)
    (agent.root / "big").write_bytes(data)
    inode = (agent.root / "big").stat().st_ino
    await agent.delete("big")
    assert [path.stat().st_ino for path in agent.store.objects.iterdir()] == [inode]
    agent.undo()
    assert (agent.root / "big").read_bytes() == data


async def test_too_many_files_leave_only_named_paths_covered(tmp_path: Path) -> None:
    agent = Agent(tmp_path, limits=UndoLimits(max_files=100))
    agent.fill({f"d{n % 10}/f{n}": str(n) for n in range(200)})
    sentences = await agent.workspace.preflight(command(agent, "make"))
    assert sentences == (
        f"{agent.root} contains more than 100 files; "
        "undo covers only the paths that a command names.",
    )
    before = agent.picture()
    await agent.did("rm -rf d1 d2/f2")
    agent.undo()
    assert agent.picture() == before
    await agent.close()


async def test_what_leaves_the_machine_is_said_beforehand(agent: Agent) -> None:
    flight = agent.workspace.preflight
    assert await flight(command(agent, "git push origin main")) == (
        "`git push` changes what others see; it cannot be undone.",
    )
    assert "`curl` reaches a host; that cannot be undone." in await flight(
        command(agent, "curl -d @a http://example.com")
    )
    assert await flight(FetchUrl(url="http://x", method="POST", sends_body=True)) == (
        "It sends data to http://x; that cannot be undone.",
    )
    assert await flight(SignalProcess(process_id="p", action="kill"))
    assert await flight(command(agent, "ls")) == ()


async def test_a_database_in_use_comes_back_for_who_uses_it(agent: Agent) -> None:
    path = agent.root / "app.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE t(x)")
    db.executemany("INSERT INTO t VALUES(?)", [(n,) for n in range(1000)])
    db.commit()
    await agent.did("rm -f app.db app.db-wal app.db-shm")
    agent.undo()
    db.close()
    again = sqlite3.connect(path)
    assert again.execute("SELECT COUNT(*) FROM t").fetchone()[0] == 1000
    assert again.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    again.close()


def writer(path: Path) -> subprocess.Popen[bytes]:
    """Somebody who adds a line to a log every few milliseconds."""
    code = (
        "import sys,time\nf=open(sys.argv[1],'a')\n"
        "while True: f.write('line\\n'); f.flush(); time.sleep(0.002)"
    )
    return subprocess.Popen((sys.executable, "-c", code, str(path)))


async def test_a_log_that_somebody_writes_all_the_time_is_left_alone(agent: Agent) -> None:
    agent.fill({"server.log": "", "a": "a"})
    log = agent.root / "server.log"
    server = writer(log)
    try:
        await until(lambda: log.stat().st_size > 0)
        grows = "while os.stat('server.log').st_size == size: time.sleep(0.01)"
        script = f"import os, time\nsize = os.stat('server.log').st_size\n{grows}\n"
        await agent.did(f"python3 -c \"{script}open('a', 'w').write('x')\"")
    finally:
        server.kill()
        server.wait()
    size = (agent.root / "server.log").stat().st_size
    done = agent.undo()
    assert (agent.root / "a").read_text() == "a"
    assert (agent.root / "server.log").stat().st_size == size
    assert [relative(kept.path, agent.root) for kept in done.kept] == ["server.log"]


async def test_a_background_process_is_covered_where_its_text_tells(agent: Agent) -> None:
    agent.fill({"a": "a", "b": "b"})
    effect = RunCommand(script="sleep 0.1; rm a; echo x > c", cwd=str(agent.root), background=True)
    info = await agent.workspace.spawn(effect)
    agent.fill({"b": "by the person"})
    await agent.workspace.processes.wait(info.id, timeout=60, stop=asyncio.Event())
    await agent.workspace.settle()
    agent.undo()
    assert (agent.root / "a").read_text() == "a"
    assert not (agent.root / "c").exists()
    assert (agent.root / "b").read_text() == "by the person"


async def test_what_a_background_process_may_have_done_is_listed_and_left(agent: Agent) -> None:
    agent.fill({"a": "a", "b": "b"})
    script = "sleep 0.1; python3 -c \"open('a','w').write('gone')\""
    effect = RunCommand(script=script, cwd=str(agent.root), background=True)
    info = await agent.workspace.spawn(effect)
    await agent.workspace.processes.wait(info.id, timeout=60, stop=asyncio.Event())
    await agent.workspace.settle()
    done = agent.undo()
    assert [relative(kept.path, agent.root) for kept in done.kept] == ["a"]
    agent.undo(path=str(agent.root / "a"), overwrite=True)
    assert (agent.root / "a").read_text() == "a"


async def test_a_cancelled_command_is_taken_back_too(agent: Agent) -> None:
    agent.fill({"a": "a", "b": "b"})
    before = agent.picture()
    work = asyncio.ensure_future(agent.run("rm a; sleep 30"))
    await until(lambda: not (agent.root / "a").exists())
    work.cancel()
    await asyncio.wait((work,))
    agent.undo()
    assert agent.picture() == before


async def test_one_file_can_be_taken_back_alone(agent: Agent) -> None:
    agent.fill({"a": "a", "b": "b", "d/x": "x"})
    await agent.did("rm -r a b d")
    done = agent.undo(path=str(agent.root / "d"))
    assert agent.names() == ["d"]
    assert len(done.restored) == 2
    agent.undo()
    assert agent.names() == ["a", "b", "d"]


async def test_a_store_that_cannot_be_written_stops_no_work(agent: Agent) -> None:
    agent.fill({"a": "a"})
    agent.store.folder.write_text("not a folder")
    await agent.did("rm a")
    assert not (agent.root / "a").exists()
    assert agent.warnings and "cannot be undone" in agent.warnings[0]
    agent.store.folder.unlink()


def test_an_ordinary_user_needs_nothing_more() -> None:
    """With files and folders that cannot be opened for writing."""
    program = Path(__file__).with_name("as_ordinary_user.py")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        done = subprocess.run(
            (sys.executable, str(program), str(Path(folder, "mine"))),
            env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout.strip(), done.stderr, done.returncode) == ("same", "", 0)


def test_an_attribute_that_cannot_be_set_does_not_stop_the_others(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("a")
    try:
        os.setxattr(file, "user.kept", b"old")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    entry = read_entry(str(file))
    assert entry is not None
    restore_metadata(str(file), replace(entry, attributes=(("x", b""), ("user.kept", b"new"))))
    assert os.getxattr(file, "user.kept") == b"new"
