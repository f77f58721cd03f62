"""Hard links, folder times, files that cannot be kept, and calls that their agent did not end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.undo.scanner import UndoLimits
from tests.undo.conftest import Agent, relative, until

LINKED = {
    "one name is deleted": "rm a",
    "all names are deleted": "rm a b src/c",
    "one name gets a file of its own": "sed -i s/x/y/ a",
    "all names see another content": "echo other >> a",
    "a name moves": "mv a d",
    "a name is replaced": "cp a d; mv d a; echo z >> a",
    "the folder of one name goes": "rm -rf src; echo z > b",
    "a name is linked elsewhere": "ln notes e; ln -f notes a",
}


@pytest.mark.parametrize("case", LINKED)
async def test_hard_links_come_back_as_links(agent: Agent, case: str) -> None:
    agent.fill({"a": "x\n" * 100, "notes": "n", "src/d": "d"})
    os.link(agent.root / "a", agent.root / "b")
    os.link(agent.root / "a", agent.root / "src/c")
    before = agent.picture()
    await agent.did(LINKED[case])
    assert agent.picture() != before
    agent.undo()
    assert agent.picture() == before


async def test_hard_links_come_back_over_several_turns(agent: Agent) -> None:
    agent.fill({"a": "x\n" * 100})
    os.link(agent.root / "a", agent.root / "b")
    before = agent.picture()
    for number, script in enumerate(("rm a", "echo 1 >> b", "cp b a; rm b")):
        agent.turn = f"turn_{number}"
        await agent.did(script)
    agent.undo(turn="turn_0")
    assert agent.picture() == before


def folder_times(root: Path) -> dict[str, int]:
    return {
        os.path.relpath(folder, root): Path(folder).stat().st_mtime_ns
        for folder, _, _ in os.walk(root)
    }


async def test_deleted_folders_get_their_times_back(agent: Agent) -> None:
    agent.fill({"src/a": "a", "src/deep/b": "b", "old/c": "c"})
    for folder in ("src/deep", "src", "old"):
        os.utime(agent.root / folder, (1_000_000_000, 1_000_000_000))
    before = folder_times(agent.root)
    await agent.did("rm -rf old src; mkdir src; echo x > src/new")
    agent.undo()
    restored = folder_times(agent.root)
    # Of folders that stay, only the content comes back.
    assert {name for name in before if restored[name] != before[name]} == {".", "src"}


async def test_what_cannot_be_kept_is_said_before_the_command_runs(tmp_path: Path) -> None:
    agent = Agent(tmp_path, limits=UndoLimits(max_file_bytes=1_000_000))
    agent.fill({"big": "B" * 3_000_000, "x.py": "open('big', 'r+').write('changed')\n"})
    said: list[int] = []
    agent.warnings = said_when = _Watched(agent.root / "big", said)
    agent.workspace._warn = said_when.append
    await agent.did(f"{sys.executable} x.py")
    assert said == [0]
    assert "big" in said_when[0] and "cannot be undone" in said_when[0]
    await agent.did(f"{sys.executable} x.py")
    assert len(said_when) == 1
    await agent.close()


class _Watched(list[str]):
    """Notes whether the file was changed when a message came."""

    def __init__(self, file: Path, said: list[int]) -> None:
        self._file = file
        self._said = said

    def append(self, text: str) -> None:
        self._said.append(int(self._file.read_text().startswith("changed")))
        super().append(text)


KILLED = """
import asyncio, sys
from pathlib import Path
from hermes.core.effects import RunCommand
from tests.undo.conftest import Agent

async def work():
    agent = Agent(Path(sys.argv[1]))
    if sys.argv[2] == "background":
        effect = RunCommand(script=sys.argv[3], cwd=agent.workspace.cwd, background=True)
        await agent.workspace.spawn(effect)
        await asyncio.sleep(1000)
    await agent.run(sys.argv[3], timeout=1000)

asyncio.run(work())
"""


AFTER = "echo 2 > a; rm b; echo 3 > c"


async def outlive(agent: Agent, kind: str, script: str) -> None:
    """Kill the agent while its command waits for the gate, and let the command go on."""
    os.mkfifo(agent.root.parent / "gate")
    process = subprocess.Popen(  # noqa: ASYNC220
        (sys.executable, "-c", KILLED, str(agent.root.parent), kind, script),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )
    await until(lambda: (agent.root / "a").read_text() == "1\n")
    _kill_watchdogs(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    (agent.root.parent / "gate").write_text("go")
    await until(lambda: (agent.root / "c").exists() and (agent.root / "c").read_text() == "3\n")


@pytest.mark.parametrize("kind", ["background", "command"])
async def test_what_outlives_the_agent_stays_undoable(tmp_path: Path, kind: str) -> None:
    agent = Agent(tmp_path)
    agent.fill({"a": "a", "b": "b"})
    before = agent.picture()
    await outlive(agent, kind, f"echo 1 > a; cat ../gate; {AFTER}")
    agent.undo()
    assert agent.picture() == before
    await agent.close()


async def test_what_a_process_without_agent_may_have_done_is_listed(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.fill({"a": "a", "b": "b"})
    await outlive(agent, "background", f"echo 1 > a; cat ../gate; bash -c '{AFTER}; $NOTHING'")
    done = agent.undo()
    kept = [relative(each.path, agent.root) for each in done.kept]
    assert [name for name in kept if "gate" not in name] == ["a", "b", "c"]
    agent.undo(path=str(agent.root / "b"), overwrite=True)
    assert (agent.root / "b").read_text() == "b"
    await agent.close()


def _kill_watchdogs(parent: int) -> None:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_child = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent
            if is_child and b"hermes-watchdog" in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:
            continue
