"""Runs scripts on this machine, confined or not."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path

from hermes.core.errors import ToolError
from hermes.core.world import World
from hermes.workspaces.child import Child, Sink
from hermes.workspaces.confinement.sandbox import CommandSandbox, Sandbox
from hermes.workspaces.files import find_program
from hermes.workspaces.process_tree import end_tree, identity
from hermes.workspaces.runner import CommandOutcome, CommandRequest, interrupted_outcome
from hermes.workspaces.shell_state import (
    MARKER,
    ShellState,
    SnapshotReader,
    fit_argument,
    pass_variables_inside,
    record_state,
    start_code,
)
from hermes.workspaces.survivors import CommandRecord, CommandRecords

GRACE_SECONDS = 0.3
START_PAUSES = (0.05, 0.2, 0.5)
# Errors of a start that may succeed a moment later.
SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
NAMES_SHOWN = 4
REFUSALS = (b"Permission denied", b"Operation not permitted", b"Read-only file system")
CONFINED = (
    "[Commands are confined: outside the workspace they can change only temporary files and the "
    "folders of tools, and keys are hidden. If this needs more, tell the user.]"
)
NETWORK_FAILURES = (
    b"Network is unreachable",
    b"Temporary failure in name resolution",
    b"Name or service not known",
    b"Could not resolve host",
    b"Connection refused",
    b"ENOTFOUND",
    b"EAI_AGAIN",
    b"ENETUNREACH",
    b"ECONNREFUSED",
)
OFFLINE = (
    "[It ran without a network, because it runs code that was written in this session or with "
    "untrusted text in view. If it needs one, tell the user, who can allow the command by a rule "
    "in policy.toml.]"
)
REVERTED = "[Reverted, because these names are reserved: {names}. Ask the user.]"
KEPT_IN = "[Commands can change files in {safe} only. If this needs more, tell the user.]"


class LocalRunner:
    """Runs commands on this machine. `folder` belongs to the session, for the state that commands
    leave; `env` is their start environment; `records` are the commands that run."""

    def __init__(
        self,
        folder: Path,
        *,
        world: World,
        env: Mapping[str, str],
        sandbox: Sandbox,
        records: CommandRecords,
        secret_env: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._secret_env = secret_env
        self._records = records
        self._reports: list[str] = []
        self._folder = Path(sandbox.scope.notes) if sandbox.wanted else folder
        self._world = world
        self._start_env = env
        self.sandbox = sandbox
        self._numbers = count()
        self._reader = SnapshotReader()
        self._leftovers: dict[int, CommandRecord] = {}

    @cached_property
    def env(self) -> dict[str, str]:
        """The environment of commands. Computed with the first one, because many sessions run
        none."""
        env = {name: value for name, value in self._start_env.items() if name != "OLDPWD"}
        return {**self.sandbox.environment(env), "PAGER": "cat", "GIT_PAGER": "cat"}

    def environment(self, state: ShellState) -> dict[str, str]:
        """Return the environment of the next command."""
        return {**state.environment(self.env), **self._secret_env()}

    def can_use_sudo(self, *, unconfined: bool) -> bool:
        return not self.sandbox.confines or (unconfined and not self.sandbox.scope.safe)

    def program(self) -> str:
        found = find_program("bash", self.env.get("PATH", os.defpath))
        if not found:
            raise ToolError("bash is not installed, so commands cannot run.")
        return found

    async def prepare(self) -> Mapping[str, str]:
        if self.sandbox.wanted:
            await asyncio.to_thread(self.sandbox.prepare)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for stale in self._folder.glob("after-*"):
            stale.unlink(missing_ok=True)
        self._reports = self._records.take_reports()
        return self.env

    def take_reports(self) -> Sequence[str]:
        reports, self._reports = self._reports, []
        return reports

    async def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()  # noqa: ASYNC240

    def start_files(self, names: Sequence[str]) -> Sequence[str]:
        home = Path(self.env.get("HOME", "/"))
        paths = (home / name.removeprefix("~/") for name in names)
        return [str(path) for path in paths if path.is_file()]

    async def run(
        self,
        command: CommandRequest,
        state: ShellState,
        sinks: Sequence[Sink],
        *,
        stop: asyncio.Event,
        password: bytes = b"",
    ) -> CommandOutcome:
        if not Path(command.cwd).is_dir():  # noqa: ASYNC240
            return CommandOutcome(how="nowhere", code=1)
        sandbox = self.sandbox.for_command(
            command.script, unconfined=command.unconfined, offline=command.offline
        )
        guards = sandbox.guards()
        note = self._folder / f"after-{os.getpid()}-{next(self._numbers)}"
        line = start_code(command.cwd, state, command.preface)
        line += record_state(command.script, str(note), {**self._secret_env(), **command.env})
        line = fit_argument(line, note.with_suffix(".sh"))
        refused = cut_off = False

        def sink(data: bytes) -> None:
            nonlocal refused, cut_off
            for each in sinks:
                each(data)
            # A confined command may not know why the system refused something.
            if sandbox.confines and not refused:
                refused = any(text in data for text in REFUSALS)
            if command.offline and sandbox.confines and not cut_off:
                cut_off = any(text in data for text in NETWORK_FAILURES)

        record = self._records.add(command.script)
        try:
            child = await self._start(
                sandbox,
                line,
                state,
                sink,
                pty=command.pty,
                password=password,
                own_env={**command.env, MARKER: record.token},
            )
        except BaseException:
            self._records.remove(record)
            raise
        self._records.started(record, child.pid)
        try:
            how = await child.wait(timeout=command.timeout, stop=stop)
            if how != "ended":
                await child.end(grace_seconds=GRACE_SECONDS)
        finally:
            if not child.ended.done():
                await child.end(grace_seconds=0)
            child.close()
            self._finish(record, child.pid)
            after = self._reader.take(note)
        remarks: list[str] = []
        if names := [name for guard in guards for name in guard.undo()]:
            shown = ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
            remarks.append(REVERTED.format(names=shown))
        if refused:
            safe = ", ".join(self.sandbox.scope.safe)
            remarks.append(KEPT_IN.format(safe=safe) if safe else CONFINED)
        if cut_off:
            remarks.append(OFFLINE)
        if how != "ended":
            return interrupted_outcome(how, tuple(remarks))
        code = child.ended.result()
        return CommandOutcome(how=how, code=code, after=after, remarks=tuple(remarks))

    async def _start(
        self,
        sandbox: CommandSandbox,
        line: str,
        state: ShellState,
        sink: Sink,
        *,
        pty: bool,
        password: bytes,
        own_env: Mapping[str, str],
    ) -> Child:
        """Retry a failed start, which has had no effect; a command that ran never runs again."""
        program = self.program()
        env = {**self.environment(state), **own_env}
        inside = pass_variables_inside(env)
        wrapped = sandbox.wrap((program, "--norc", "--noprofile", "-c", inside + line))
        if pty and env.get("TERM", "dumb") == "dumb":
            env["TERM"] = "xterm-256color"
        # The shell's name appears in its error messages.
        argv = wrapped if wrapped[0] != program else ("bash", *wrapped[1:])
        start = sandbox.starter()
        for pause in START_PAUSES:
            try:
                return Child(wrapped[0], argv, env, sink, pty=pty, password=password, spawn=start)
            except OSError as error:
                if error.errno not in SHORTAGES:
                    raise ToolError(f"The shell cannot be started: {error.strerror}.") from error
            except ValueError as error:
                raise ToolError(
                    "The command contains a NUL byte or invalid Unicode. Remove it."
                ) from error
            await self._world.clock.sleep(pause)
        raise ToolError("The machine cannot start another process now. Try again later.")

    def _finish(self, record: CommandRecord, pid: int) -> None:
        """Forget an ended command, unless it left something running in its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, 0)
            self._leftovers[pid] = record
            return
        self._records.remove(record)

    async def close(self) -> None:
        """End the processes that commands left running in their process group."""
        for pid, record in self._leftovers.items():
            # A live process with this pid is another one: the shell itself was reaped.
            if identity(pid) is None:
                await end_tree(pid, grace_seconds=GRACE_SECONDS)
            self._records.remove(record)
        self._leftovers.clear()
