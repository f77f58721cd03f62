"""A persistent bash: a process per command, between which folder, variables, functions and
aliases are carried over."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.core.ports import CommandResult
from hermes.core.world import World
from hermes.workspaces import shell_state
from hermes.workspaces.bash_text import argument, opening, quoted, recorded
from hermes.workspaces.child import Child
from hermes.workspaces.environment import child_environment
from hermes.workspaces.files import find_program
from hermes.workspaces.output import LiveText, OutputWindow
from hermes.workspaces.process_tree import end_tree, identity
from hermes.workspaces.shell_state import Aftermath, AftermathReader, ShellState, merged

log = logging.getLogger(__name__)

GRACE_SECONDS = 0.3
INIT_SECONDS = 10.0
START_PAUSES = (0.05, 0.2, 0.5)
INTERRUPTED = "[Command interrupted]"

Sink = Callable[[bytes], None]


class ShellSettings(Value):
    """`init_files` and, if wanted, ~/.bashrc are read once per session, before its first command.
    Without `persistent`, every command starts from there and leaves no trace. Secrets that these
    files export stay hidden but for those named in `passthrough`."""

    program: str = ""
    persistent: bool = True
    init_files: tuple[str, ...] = ()
    auto_source_bashrc: bool = True
    passthrough: tuple[str, ...] = ()


class Finished(Value):
    """How a command came to its end. Only one that ended by itself has an aftermath."""

    how: Literal["ended", "timeout", "stopped"]
    code: int
    after: Aftermath | None = None


class Shell:
    """The shell of one session. `folder` is its own; `env` is what every command starts from."""

    def __init__(
        self,
        root: str,
        folder: Path,
        *,
        world: World,
        env: Mapping[str, str],
        settings: ShellSettings,
    ) -> None:
        self._root = root
        self._folder = folder
        self._world = world
        self._settings = settings
        self._given = env
        self._numbers = count()
        self._reader = AftermathReader()
        self._leftovers: set[int] = set()
        self._preparing = asyncio.Lock()
        self._prepared = False
        self._snapshot = folder / "snapshot.json"
        stored = shell_state.load(self._snapshot) if settings.persistent else None
        self._state = stored or ShellState(cwd=root)
        self._new = stored is None

    @cached_property
    def _env(self) -> dict[str, str]:
        """What a command starts from; made when the first one does, as many sessions run none."""
        given = {name: value for name, value in self._given.items() if name != "OLDPWD"}
        return {**given, "PAGER": "cat", "GIT_PAGER": "cat"}

    @property
    def cwd(self) -> str:
        return self._state.cwd

    @property
    def home(self) -> str:
        return self._state.changed.get("HOME") or self._given.get("HOME", "/")

    def program(self) -> str:
        found = self._settings.program or find_program("bash", self._env.get("PATH", os.defpath))
        if not found:
            raise ToolError("There is no bash on this machine, so commands cannot run.")
        return found

    async def entrance(self, cwd: str) -> tuple[str, dict[str, str]]:
        """Bash that takes a process of its own to where the shell is, and its environment."""
        await self._prepare(asyncio.Event())
        state = self._state
        line = opening(self._existing(cwd), state.changed.get("OLDPWD"), state.definitions)
        return line, state.environment(self._env)

    async def run(
        self,
        script: str,
        cwd: str,
        *,
        timeout: float,
        stop: asyncio.Event,
        max_bytes: int,
        pty: bool,
        on_output: Callable[[str], None] | None,
    ) -> CommandResult:
        await self._prepare(stop)
        cwd = self._existing(cwd)
        window = OutputWindow(max_bytes)
        sinks: list[Sink] = [window.add]
        if on_output:
            sinks.append(LiveText(on_output).add)
        before = self._state
        finished = Finished(how="stopped", code=130)
        if not stop.is_set():
            finished = await self._execute(script, cwd, sinks, timeout=timeout, stop=stop, pty=pty)
        if finished.after and self._settings.persistent:
            self._adopt(merged(self._state, before, finished.after, cwd=cwd, start=self._env))
        return self._result(window, finished)

    def _result(self, window: OutputWindow, finished: Finished) -> CommandResult:
        text = window.text()
        if finished.how == "stopped":
            text = f"{text.rstrip()}\n{INTERRUPTED}".lstrip()
        return CommandResult(
            output=text,
            exit_code=finished.code,
            cwd=self.cwd,
            total_bytes=window.total_bytes,
            timed_out=finished.how == "timeout",
            interrupted=finished.how == "stopped",
        )

    async def _execute(
        self,
        script: str,
        cwd: str,
        sinks: list[Sink],
        *,
        timeout: float,
        stop: asyncio.Event,
        pty: bool,
    ) -> Finished:
        note = self._folder / f"after-{os.getpid()}-{next(self._numbers)}"
        child = await self._start(script, cwd, note, sinks, pty=pty)
        try:
            how = await child.wait(timeout=timeout, stop=stop)
            if how != "ended":
                await child.end(grace_seconds=GRACE_SECONDS)
        finally:
            if not child.ended.done():
                await child.end(grace_seconds=0)
            child.close()
            after = self._reader.take(note)
        self._remember_leftovers(child.pid)
        if how == "ended":
            return Finished(how=how, code=child.ended.result(), after=after)
        return Finished(how=how, code=124 if how == "timeout" else 130)

    async def _start(
        self, script: str, cwd: str, note: Path, sinks: list[Sink], *, pty: bool
    ) -> Child:
        """A start that fails did nothing and is tried again; a command that ran never is."""
        state = self._state
        line = opening(cwd, state.changed.get("OLDPWD"), state.definitions)
        line = argument(line + recorded(script, str(note)), note.with_suffix(".sh"))
        program, argv = self.program(), ("bash", "--norc", "--noprofile", "-c", line)
        env = state.environment(self._env)
        if pty and env.get("TERM", "dumb") == "dumb":
            env["TERM"] = "xterm-256color"
        for pause in START_PAUSES:
            try:
                return Child(program, argv, env, _through(sinks), pty=pty)
            except (OSError, ValueError) as error:
                if not _passing(error):
                    raise ToolError(_start_advice(error)) from error
            await self._world.clock.sleep(pause)
        raise ToolError("The machine has no room for another process now. Try again later.")

    def _existing(self, cwd: str) -> str:
        """The folder itself, or the session's when a command removed the one the shell was in."""
        if Path(cwd).is_dir():
            return cwd
        if cwd != self.cwd:
            raise ToolError(f"There is no folder {cwd}. Check workdir.")
        self._adopt(replace(self._state, cwd=self._root if Path(self._root).is_dir() else "/"))
        return self.cwd

    def _adopt(self, state: ShellState) -> None:
        if state != self._state:
            self._state = state
            if self._settings.persistent:
                shell_state.save(self._snapshot, state)

    async def _prepare(self, stop: asyncio.Event) -> None:
        if self._prepared:
            return
        async with self._preparing:
            if not self._prepared:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                for stale in self._folder.glob("after-*"):
                    stale.unlink(missing_ok=True)
                if self._new and (files := self._init_files()):
                    await self._read_init_files(files, stop)
                self._prepared = not stop.is_set()

    def _init_files(self) -> list[Path]:
        home = Path(self.home)
        names = self._settings.init_files
        if self._settings.auto_source_bashrc:
            names = (*names, "~/.bashrc")
        paths = (home / name.removeprefix("~/") for name in names)
        return [path for path in paths if path.is_file()]

    async def _read_init_files(self, files: list[Path], stop: asyncio.Event) -> None:
        """What they print is dropped; when they take too long, the session goes on without."""
        script = "; ".join(("PS1='$ '", *(f"builtin . {quoted(str(path))}" for path in files)))
        finished = await self._execute(
            script, self.cwd, [], timeout=INIT_SECONDS, stop=stop, pty=False
        )
        if finished.after is None:
            log.warning("shell start files did not finish", extra={"files": [*map(str, files)]})
            return
        visible = child_environment(finished.after.exports, self._settings.passthrough)
        now, after = self._state, replace(finished.after, exports=visible)
        self._adopt(merged(now, now, after, cwd=after.cwd, start=self._env))

    def _remember_leftovers(self, pid: int) -> None:
        try:
            os.killpg(pid, 0)
        except (ProcessLookupError, PermissionError):
            return
        self._leftovers.add(pid)

    async def close(self) -> None:
        """End what commands left running in their own process group."""
        for pid in self._leftovers:
            # A living process of this number is another one: the shell itself was reaped.
            if identity(pid) is None:
                await end_tree(pid, grace_seconds=GRACE_SECONDS)
        self._leftovers.clear()


def _through(sinks: list[Sink]) -> Sink:
    def sink(data: bytes) -> None:
        for one in sinks:
            one(data)

    return sink


def _passing(error: Exception) -> bool:
    shortage = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
    return isinstance(error, OSError) and error.errno in shortage


def _start_advice(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"The shell cannot be started: {error.strerror}."
    return "The command holds a NUL byte or broken Unicode. Remove it."
