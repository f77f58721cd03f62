"""A project with an agent in it whose changes can be taken back, and a picture of the project to
compare with."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hermes.core.effects import RunCommand
from hermes.core.ports import CommandResult
from hermes.core.world import World
from hermes.undo.calls import CallLog, RecordedCall
from hermes.undo.change_recorder import ChangeRecorder
from hermes.undo.history import Checkpoint, CheckpointHistory
from hermes.undo.plan import RestorePlan
from hermes.undo.restore import RestoreResult
from hermes.undo.scanner import UndoLimits
from hermes.undo.script_effects import ScriptEffects, read_script_effects
from hermes.undo.store import CheckpointStore
from hermes.undo.workspace import UndoableWorkspace
from hermes.workspaces.local import LocalWorkspace

Picture = dict[str, tuple[str, ...]]


class Agent:
    """One session in one project. `turn` says which turn its next doings belong to."""

    def __init__(
        self,
        folder: Path,
        *,
        session: str = "s1",
        limits: UndoLimits | None = None,
        world: World | None = None,
        touched: Callable[[RunCommand], ScriptEffects] | None = None,
        store: Path | None = None,
    ) -> None:
        folder = folder.resolve()
        self.root = folder / "project"
        self.home = folder / "home"
        self.session = session
        self.turn = "turn_1"
        self.world = world or World()
        self.limits = limits or UndoLimits()
        self.warnings: list[str] = []
        for each in (self.root, self.home):
            each.mkdir(exist_ok=True)
        self.store = CheckpointStore(store or folder / "checkpoints")
        inner = LocalWorkspace(
            str(self.root),
            state=folder / "state" / session,
            world=self.world,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"},
        )
        self.recorder = ChangeRecorder(
            self.store,
            str(self.root),
            where=lambda: (self.session, self.turn),
            world=self.world,
            limits=self.limits,
        )
        self.workspace = UndoableWorkspace(
            inner,
            lambda: self.recorder,
            warn=self.warnings.append,
            touched=touched or (lambda effect: read_script_effects(effect, str(self.home))),
        )

    @property
    def history(self) -> CheckpointHistory:
        return CheckpointHistory(self.store, world=self.world, limits=self.limits)

    async def run(self, script: str, *, cwd: str = "", timeout: float = 60) -> CommandResult:
        return await self.workspace.run(
            RunCommand(script=script, cwd=cwd or self.workspace.cwd),
            timeout=timeout,
            stop=asyncio.Event(),
            max_bytes=50_000,
        )

    async def did(self, script: str) -> CommandResult:
        """A command that ends well."""
        result = await self.run(script)
        assert result.exit_code == 0, result.output
        return result

    async def write(self, name: str, text: str) -> None:
        await self.workspace.write_bytes(str(self.root / name), text.encode())

    async def delete(self, name: str) -> None:
        await self.workspace.delete(str(self.root / name))

    def plan(self, *, number: int = 0, turn: str = "", path: str = "") -> RestorePlan:
        return self.history.plan(self.session, number=number, turn=turn, path=path)

    def undo(
        self, *, number: int = 0, turn: str = "", path: str = "", overwrite: bool = False
    ) -> RestoreResult:
        plan = self.history.plan(
            self.session, number=number, turn=turn, path=path, overwrite=overwrite
        )
        return self.history.restore(plan, session=self.session, whole=not path)

    def recorded(self) -> list[RecordedCall]:
        return CallLog(self.store).of_session(self.session)

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        return self.history.checkpoints(self.session)

    def fill(self, files: dict[str, str]) -> None:
        """As the person does it."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def names(self) -> list[str]:
        return sorted(each.name for each in self.root.iterdir())

    def picture(self, *, times: bool = True) -> Picture:
        return picture(self.root, times=times)

    async def close(self) -> None:
        await self.workspace.close()
        self.store.close()


def picture(root: Path, *, times: bool = True) -> Picture:
    """Every path with its kind, mode, content, time and the names that share its file."""
    found: Picture = {}
    groups: dict[int, str] = {}
    paths = sorted(
        f"{folder}/{name}"
        for folder, folders, names in os.walk(root)
        for name in (*folders, *names)
    )
    for path in paths:
        name = os.path.relpath(path, root)
        seen = os.lstat(path)
        mode = oct(seen.st_mode)
        if stat.S_ISLNK(seen.st_mode):
            found[name] = ("link", str(Path(path).readlink()))
        elif stat.S_ISDIR(seen.st_mode):
            found[name] = ("folder", mode)
        elif stat.S_ISREG(seen.st_mode):
            first = groups.setdefault(seen.st_ino, name)
            content = content_of(path, seen.st_size)
            when = str(seen.st_mtime_ns) if times else ""
            found[name] = ("file", mode, str(seen.st_size), content, when, first)
        else:
            found[name] = ("other", mode)
    return found


def content_of(path: str, size: int) -> str:
    """Of all that is not a hole, with its place."""
    found = hashlib.blake2b()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        at = 0
        while at < size:
            try:
                at = os.lseek(descriptor, at, os.SEEK_DATA)
            except OSError:
                break
            piece = os.pread(descriptor, 1 << 16, at)
            if piece.strip(b"\0"):
                found.update(b"%d:" % at + piece)
            at += len(piece)
    finally:
        os.close(descriptor)
    return found.hexdigest()


def relative(path: str, root: Path) -> str:
    return path.removeprefix(f"{root}/")


def modes(folder: Path) -> dict[str, set[int]]:
    """The modes of all folders and of all files below."""
    found: dict[str, set[int]] = {"folders": set(), "files": set()}
    for each in folder.rglob("*"):
        found["folders" if each.is_dir() else "files"].add(stat.S_IMODE(each.stat().st_mode))
    return found


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that is not in the project."""
    folder = tmp_path.resolve() / "outside"
    folder.mkdir()
    return folder


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Agent]:
    agent = Agent(tmp_path)
    yield agent
    for info in await agent.workspace.processes.list():
        await agent.workspace.processes.kill(info.id)
    await agent.close()
