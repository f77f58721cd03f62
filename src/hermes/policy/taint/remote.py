"""The witness of sessions that work on another machine, or in folders that such a one shares."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.ports import ProcessInfo, Workspace
from hermes.policy.rules import Rules
from hermes.policy.suspects.record import FILE, LARGEST, Copies
from hermes.policy.suspects.suspects import Suspects
from hermes.policy.taint.sight import LocalTaintTracker, TaintTracker
from hermes.policy.taint.witnessed import TaintTrackedWorkspace

if TYPE_CHECKING:
    from hermes.config.execution_settings import TerminalSettings
    from hermes.config.run_context import RunContext
    from hermes.core.turn import SessionDeps

log = logging.getLogger(__name__)

# Each folder and each file is a question to the other machine.
MOST_FOLDERS = 4
MOST_FILES = 20
Look = dict[str, tuple[int, int]]


def copies_of(run: RunContext, session_id: str) -> Copies:
    return Copies(run.home.root / FILE, location_name(run.settings.terminal, session_id))


def location_name(terminal: TerminalSettings, session_id: str) -> str:
    """A name for where the files of a session lie. A container or sandbox is its session's own,
    unless it works in a folder of this machine."""
    if terminal.backend == "ssh":
        return f"ssh {terminal.ssh_user}@{terminal.ssh_host}:{terminal.ssh_port}"
    if terminal.docker_mount_cwd_to_workspace:
        return f"folder {Path.cwd()}"
    return f"{terminal.backend} {session_id}"


def track_remote_taint(
    run: RunContext, session_id: str, rules: Rules, suspects: Suspects, parts: SessionDeps
) -> None:
    clean = run.redactor.text
    far = parts.workspace
    parts.workspace = TaintTrackedWorkspace(
        far, RemoteTaintTracker(rules, copies_of(run, session_id), far, clean)
    )
    for there, here in shared_folders(run.settings.terminal).items():
        shared = SharedFolderTaintTracker(
            rules, suspects, clean, there=there or far.root, here=here
        )
        parts.workspace = TaintTrackedWorkspace(parts.workspace, shared)


def shared_folders(terminal: TerminalSettings) -> dict[str, str]:
    """What a container sees of this machine and may change, by its name there; "" is the folder
    of the session."""
    if terminal.backend not in ("docker", "podman"):
        return {}
    found = {"": str(Path.cwd())} if terminal.docker_mount_cwd_to_workspace else {}
    for volume in terminal.docker_volumes:
        here, _, rest = volume.partition(":")
        there, _, options = rest.partition(":")
        if here.startswith(("/", "~")) and there and "ro" not in options.split(","):
            found[there] = str(Path(here).expanduser())
    return found


class SharedFolderTaintTracker(LocalTaintTracker):
    """For a folder that lies `here` and is called something else `there`."""

    def __init__(
        self,
        rules: Rules,
        suspects: Suspects,
        clean: Callable[[str], str],
        *,
        there: str,
        here: str,
    ) -> None:
        super().__init__(rules, suspects, clean)
        self._there, self._here = there.rstrip("/"), here

    @asynccontextmanager
    async def track_command(
        self, root: str, names: Iterable[str], *, look: bool = False, stays: bool = False
    ) -> AsyncIterator[None]:
        mine = [
            self._here + name[len(self._there) :]
            for name in names
            if name == self._there or name.startswith(f"{self._there}/")
        ]
        async with super().track_command(self._here, mine, look=look, stays=stays):
            yield

    async def track_process(self, root: str, info: ProcessInfo, names: Iterable[str] = ()) -> None:
        """Its number means nothing here: whatever is written until the session is left counts."""
        if info.status == "running":
            async with self.track_command(root, names, stays=True):
                pass


class RemoteTaintTracker(TaintTracker):
    """Keeps copies of what was written over there: what it holds is judged by them later. Files are
    told by their names in a command, and by a look into the folder of the session before and
    after it; what a program hides deeper is not seen."""

    def __init__(
        self, rules: Rules, copies: Copies, workspace: Workspace, clean: Callable[[str], str] = str
    ) -> None:
        super().__init__(rules, clean)
        self._copies = copies
        self._workspace = workspace
        # Processes that go on, with what they may write and how the folders looked before.
        self._going: dict[str, tuple[tuple[str, ...], Look]] = {}

    @asynccontextmanager
    async def track_write(self, root: str, path: str, data: bytes) -> AsyncIterator[None]:
        await self._store({path: _text(data)})
        yield

    async def clear(self, paths: Iterable[str]) -> None:
        await asyncio.to_thread(self._copies.drop, list(paths))

    @asynccontextmanager
    async def track_command(
        self, root: str, names: Iterable[str], *, look: bool = False, stays: bool = False
    ) -> AsyncIterator[None]:
        named = tuple(names)
        before = await self._list(root, named) if look else {}
        await self._store(dict.fromkeys(named))
        try:
            yield
        finally:
            if look:
                await asyncio.shield(self._look(root, named, before))
            if stays:
                self._going[f"shell {len(self._going)}"] = named, before

    async def track_process(self, root: str, info: ProcessInfo, names: Iterable[str] = ()) -> None:
        if info.id not in self._going and info.status == "running":
            named = tuple(names)
            self._going[info.id] = named, await self._list(root, named)

    async def on_process_poll(self, root: str, info: ProcessInfo) -> None:
        if info.status == "exited" and (going := self._going.pop(info.id, None)):
            await self._look(root, *going)

    async def finish(self, root: str) -> None:
        for id_ in list(self._going):
            await self._look(root, *self._going.pop(id_))

    async def _store(self, texts: dict[str, str | None]) -> None:
        plain = {
            path: text if text is None else self._clean(text)
            for path, text in texts.items()
            if self._clean(path) == path
        }
        await self._record(lambda by: self._copies.keep(plain, by))

    async def _look(self, root: str, names: tuple[str, ...], before: Look) -> None:
        """A copy of each file that is another one now."""
        after = await self._list(root, names)
        changed = (path for path, seen in after.items() if before.get(path) != seen)
        texts: dict[str, str | None] = {}
        gone: list[str] = []
        for path in list(dict.fromkeys((*names, *changed)))[:MOST_FILES]:
            try:
                info = await self._workspace.stat(path)
                if info is None or info.kind != "file":
                    gone.append(path)
                elif info.size <= LARGEST:
                    texts[path] = _text(await self._workspace.read_bytes(path))
            except HermesError as error:
                log.warning("a file over there is not looked at", extra={"why": str(error)})
        await self._store(texts)
        await self.clear(gone)

    async def _list(self, root: str, names: Iterable[str]) -> Look:
        found: Look = {}
        for folder in list(dict.fromkeys((root, *names)))[:MOST_FOLDERS]:
            try:
                entries = await self._workspace.list_folder(folder)
            except HermesError:
                # Most names are files, or are not there yet.
                continue
            found |= {e.path: (e.modified_ns, e.size) for e in entries if e.kind == "file"}
        return found


def _text(data: bytes) -> str | None:
    if len(data) > LARGEST:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
