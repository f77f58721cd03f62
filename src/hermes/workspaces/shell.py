"""A persistent bash: one process per command, with folder, variables, functions and aliases carried
over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from hermes.codec.values import Value
from hermes.config.child_environment import child_environment
from hermes.core.errors import ToolError
from hermes.core.ports import CommandResult, ShellSetup
from hermes.workspaces import shell_state
from hermes.workspaces.bash_text import shell_quote
from hermes.workspaces.child import Sink
from hermes.workspaces.limits import ResourceLimits
from hermes.workspaces.output import LiveText, OutputWindow
from hermes.workspaces.runner import CommandOutcome, Runner
from hermes.workspaces.shell_state import ShellState, merge_states
from hermes.workspaces.sudo import Check, Sudo, uses_sudo

log = logging.getLogger(__name__)

INIT_SECONDS = 10.0
INTERRUPTED = "[Command interrupted]"


class ShellSettings(Value):
    """`init_files` and optionally ~/.bashrc are read once per session, before its first command.
    Without `persistent`, every command starts from there and leaves no state. Secrets that these
    files export stay hidden except those in `passthrough`."""

    program: str = ""
    persistent: bool = True
    init_files: tuple[str, ...] = ()
    auto_source_bashrc: bool = True
    passthrough: tuple[str, ...] = ()
    limits: ResourceLimits = ResourceLimits()


class Shell:
    """The shell of one session, wherever its runner runs it. `folder` is on this machine."""

    def __init__(
        self,
        root: str,
        folder: Path,
        *,
        runner: Runner,
        settings: ShellSettings,
        sudo: Sudo | None = None,
    ) -> None:
        self._root = root
        self._folder = folder
        self._runner = runner
        self._settings = settings
        self._sudo = sudo
        self._start: Mapping[str, str] = {}
        self._preparing = asyncio.Lock()
        self._prepared = False
        self._snapshot = folder / "snapshot.json"
        stored = shell_state.load_state(self._snapshot) if settings.persistent else None
        self._state = stored or ShellState(cwd=root)
        self._new = stored is None

    @property
    def cwd(self) -> str:
        return self._state.cwd

    @property
    def setup(self) -> ShellSetup:
        """Return the definitions that decide what names mean in the next command."""
        state = self._state
        return ShellSetup(
            definitions=state.definitions,
            own=state.own,
            variables=tuple(state.changed),
            path=state.changed.get("PATH", ""),
        )

    def variable(self, name: str) -> str | None:
        """Return a variable as set by commands, or None."""
        return self._state.changed.get(name)

    async def current_state(self, cwd: str) -> tuple[str, ShellState]:
        """Return folder and state for a new process that starts where the shell is."""
        await self._prepare(asyncio.Event())
        if not await self._runner.is_folder(cwd):
            cwd = await self._fallback_folder(cwd)
        return cwd, self._state

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
        unconfined: bool = False,
    ) -> CommandResult:
        """Run a script; an `unconfined` one runs without the sandbox."""
        await self._prepare(stop)
        window = OutputWindow(max_bytes)
        sinks: list[Sink] = [window.add]
        if on_output:
            sinks.append(LiveText(on_output).add)
        before = self._state
        finished = CommandOutcome(how="stopped", code=130)
        execute = partial(
            self._execute,
            script,
            sinks=sinks,
            timeout=timeout,
            stop=stop,
            pty=pty,
            unconfined=unconfined,
        )
        if not stop.is_set():
            finished = await execute(cwd)
        if finished.how == "nowhere":
            cwd = await self._fallback_folder(cwd)
            before = self._state
            finished = await execute(cwd)
        if finished.after and self._settings.persistent:
            self._adopt(
                merge_states(self._state, before, finished.after, cwd=cwd, start=self._start)
            )
        return self._result(window, finished)

    def _result(self, window: OutputWindow, finished: CommandOutcome) -> CommandResult:
        text = window.text()
        remarks = (*finished.remarks, *((INTERRUPTED,) if finished.how == "stopped" else ()))
        if remarks:
            text = "\n".join((text.rstrip(), *remarks)).lstrip()
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
        *,
        sinks: Sequence[Sink],
        timeout: float,
        stop: asyncio.Event,
        pty: bool,
        unconfined: bool,
    ) -> CommandOutcome:
        preface, password = self._settings.limits.in_bash(), b""
        if self._sudo and self._runner.can_use_sudo(unconfined=unconfined) and uses_sudo(script):
            more, password = await self._sudo.prepare(self._password_check(cwd, stop))
            preface += more
        return await self._runner.run(
            script,
            cwd,
            self._state,
            sinks,
            timeout=timeout,
            stop=stop,
            pty=pty,
            preface=preface,
            password=password,
            unconfined=unconfined,
        )

    def _password_check(self, cwd: str, stop: asyncio.Event) -> Check:
        """Return a function that runs our own line with a password and returns its success."""

        async def succeeds(line: str, password: bytes) -> bool:
            state = ShellState(cwd=cwd)
            finished = await self._runner.run(
                *(line, cwd, state, ()),
                timeout=INIT_SECONDS,
                stop=stop,
                pty=False,
                password=password,
                unconfined=True,
            )
            return finished.how == "ended" and finished.code == 0

        return succeeds

    async def _fallback_folder(self, cwd: str) -> str:
        """Return a folder to use instead of a missing one: a command removed the shell's folder, or
        a caller named one that never existed."""
        if cwd != self.cwd:
            raise ToolError(f"There is no folder {cwd}. Check workdir.")
        home = self._root if await self._runner.is_folder(self._root) else "/"
        self._adopt(replace(self._state, cwd=home))
        return home

    def _adopt(self, state: ShellState) -> None:
        if state != self._state:
            self._state = state
            if self._settings.persistent:
                shell_state.save_state(self._snapshot, state)

    async def _prepare(self, stop: asyncio.Event) -> None:
        if self._prepared:
            return
        async with self._preparing:
            if not self._prepared:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._start = await self._runner.prepare()
                names = self._settings.init_files
                if self._settings.auto_source_bashrc:
                    names = (*names, "~/.bashrc")
                if self._new and (files := self._runner.start_files(names)):
                    await self._read_start_files(files, stop)
                self._prepared = not stop.is_set()

    async def _read_start_files(self, files: Sequence[str], stop: asyncio.Event) -> None:
        """Their output is dropped; when they take too long, the session continues without them."""
        reads = (f"[[ -f {shell_quote(file)} ]] && builtin . {shell_quote(file)}" for file in files)
        finished = await self._runner.run(
            "; ".join(("PS1='$ '", *reads)),
            self.cwd,
            self._state,
            (),
            timeout=INIT_SECONDS,
            stop=stop,
            pty=False,
        )
        if finished.after is None:
            log.warning("shell start files did not finish", extra={"files": [*files]})
            return
        visible = child_environment(finished.after.exports, self._settings.passthrough)
        now, after = self._state, replace(finished.after, exports=visible)
        begun = merge_states(now, now, after, cwd=after.cwd, start=self._start)
        self._adopt(replace(begun, own=begun.definitions))

    async def close(self) -> None:
        await self._runner.close()
