"""Taint tracking for sessions on another machine, and in folders shared with one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.ports import ProcessInfo, Workspace
from hermes.policy.rules import SessionPolicy
from hermes.policy.taint.record import FILE, LARGEST, Copies
from hermes.policy.taint.registry import TaintRegistry
from hermes.policy.taint.tracker import LocalTaintTracker, TaintTracker
from hermes.policy.taint.workspace import TaintTrackedWorkspace

if TYPE_CHECKING:
    from hermes.config.execution_settings import TerminalSettings
    from hermes.config.run_context import RunContext
    from hermes.core.session_deps import SessionDeps

log = logging.getLogger(__name__)

# Each folder and each file costs a round trip.
MAX_FOLDERS = 4
MAX_FILES = 20
Listing = dict[str, tuple[int, int]]


def copies_of(run: RunContext, session_id: str) -> Copies:
    return Copies(run.home.root / FILE, location_name(run.settings.terminal, session_id))


def location_name(terminal: TerminalSettings, session_id: str) -> str:
    """Return a name for the location of a session's files. A container or sandbox belongs to its
    session, unless it works in a folder of this machine."""
    if terminal.backend == "ssh":
        return f"ssh {terminal.ssh_user}@{terminal.ssh_host}:{terminal.ssh_port}"
    if terminal.docker_mount_cwd_to_workspace:
        return f"folder {Path.cwd()}"
    return f"{terminal.backend} {session_id}"


def track_remote_taint(
    run: RunContext, session_id: str, rules: SessionPolicy, taint: TaintRegistry, parts: SessionDeps
) -> None:
    clean = run.redactor.text
    remote = parts.workspace
    parts.workspace = TaintTrackedWorkspace(
        remote, RemoteTaintTracker(rules, copies_of(run, session_id), remote, clean)
    )
    for there, here in shared_folders(run.settings.terminal).items():
        shared = SharedFolderTaintTracker(
            rules, taint, clean, there=there or remote.root, here=here
        )
        parts.workspace = TaintTrackedWorkspace(parts.workspace, shared)


def shared_folders(terminal: TerminalSettings) -> dict[str, str]:
    """Return the writable folders of this machine that a container sees, by their path there; "" is
    the session's folder."""
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
    """Tracks a folder with the path `here` on this machine and `there` in the container."""

    def __init__(
        self,
        rules: SessionPolicy,
        taint: TaintRegistry,
        clean: Callable[[str], str],
        *,
        there: str,
        here: str,
    ) -> None:
        super().__init__(rules, taint, clean)
        self._there, self._here = there.rstrip("/"), here

    @asynccontextmanager
    async def track_command(
        self, root: str, names: Iterable[str], *, look: bool = False, stays: bool = False
    ) -> AsyncIterator[None]:
        local = [
            self._here + name[len(self._there) :]
            for name in names
            if name == self._there or name.startswith(f"{self._there}/")
        ]
        async with super().track_command(self._here, local, look=look, stays=stays):
            yield

    async def track_process(self, root: str, info: ProcessInfo, names: Iterable[str] = ()) -> None:
        """Track all writes until the session closes: the id of the process is meaningless here."""
        if info.status == "running":
            async with self.track_command(root, names, stays=True):
                pass


class RemoteTaintTracker(TaintTracker):
    """Keeps copies of files written remotely, by which later reads are checked. It finds files by
    their names in a command, and by listing the session's folder before and after it; files written
    deeper by a program are not found."""

    def __init__(
        self,
        rules: SessionPolicy,
        copies: Copies,
        workspace: Workspace,
        clean: Callable[[str], str] = str,
    ) -> None:
        super().__init__(rules, clean)
        self._copies = copies
        self._workspace = workspace
        # Running processes, with the paths they may write and the listing before.
        self._running: dict[str, tuple[tuple[str, ...], Listing]] = {}

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
        paths = tuple(names)
        before = await self._list(root, paths) if look else {}
        await self._store(dict.fromkeys(paths))
        try:
            yield
        finally:
            if look:
                await asyncio.shield(self._copy_changes(root, paths, before))
            if stays:
                self._running[f"shell {len(self._running)}"] = paths, before

    async def track_process(self, root: str, info: ProcessInfo, names: Iterable[str] = ()) -> None:
        if info.id not in self._running and info.status == "running":
            paths = tuple(names)
            self._running[info.id] = paths, await self._list(root, paths)

    async def on_process_poll(self, root: str, info: ProcessInfo) -> None:
        if info.status == "exited" and (entry := self._running.pop(info.id, None)):
            await self._copy_changes(root, *entry)

    async def finish(self, root: str) -> None:
        for id_ in list(self._running):
            await self._copy_changes(root, *self._running.pop(id_))

    async def _store(self, texts: dict[str, str | None]) -> None:
        plain = {
            path: text if text is None else self._clean(text)
            for path, text in texts.items()
            if self._clean(path) == path
        }
        await self._record(lambda by: self._copies.keep(plain, by))

    async def _copy_changes(self, root: str, names: tuple[str, ...], before: Listing) -> None:
        """Copy each file that has changed."""
        after = await self._list(root, names)
        changed = (path for path, stamp in after.items() if before.get(path) != stamp)
        texts: dict[str, str | None] = {}
        removed: list[str] = []
        for path in list(dict.fromkeys((*names, *changed)))[:MAX_FILES]:
            try:
                info = await self._workspace.stat(path)
                if info is None or info.kind != "file":
                    removed.append(path)
                elif info.size <= LARGEST:
                    texts[path] = _text(await self._workspace.read_bytes(path))
            except HermesError as error:
                log.warning(
                    "cannot read a remote file for taint tracking", extra={"why": str(error)}
                )
        await self._store(texts)
        await self.clear(removed)

    async def _list(self, root: str, names: Iterable[str]) -> Listing:
        found: Listing = {}
        for folder in list(dict.fromkeys((root, *names)))[:MAX_FOLDERS]:
            try:
                entries = await self._workspace.list_folder(folder)
            except HermesError:
                # Most names are files or do not exist yet.
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
