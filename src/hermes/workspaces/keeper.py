"""Starts local background processes under a keeper: a small process that outlives Hermes, holds
stdin open and records the exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from hermes.codec.values import replace
from hermes.core.errors import ToolError
from hermes.workspaces.background import ProcessFolder, ProcessRecord
from hermes.workspaces.child import ExitWatch, FileAction, dup2_action, move_up
from hermes.workspaces.confinement.reserved import ReservedNamesGuard
from hermes.workspaces.local_runner import LocalRunner
from hermes.workspaces.process_tree import end_tree, find_by_argument, identity
from hermes.workspaces.runner import CommandRequest
from hermes.workspaces.shell_state import (
    MARKER,
    ShellState,
    fit_argument,
    pass_variables_inside,
    shell_quote,
    start_code,
)
from hermes.workspaces.survivors import end_marked

GRACE_SECONDS = 0.5
READY_LOOKS = 400

# The keeper holds this end of the pipe to stdin open until the signal USR1.
_STDIN_FD = 8
_TERMINAL_KEEPER = Path(__file__).with_name("terminal_keeper.py")

# Job control gives the command its own group. The keeper forwards signals, so that `kill <pid>`
# reaches the command and its exit code is recorded. Job messages of bash do not go to the log.
KEEPER = f"""set -m
__folder=$1; builtin shift
builtin trap 'exec {_STDIN_FD}>&-' USR1
for __signal in TERM INT HUP; do
  builtin trap "[[ \\$! ]] || builtin exit 143; builtin kill -$__signal -- -\\$!" $__signal
done
exec 4>&1 5>&2 1>/dev/null 2>&1
"$@" <&0 1>&4 2>&5 4>&- 5>&- {_STDIN_FD}>&- &
__child=$!
exec 0</dev/null 4>&- 5>&-
builtin echo ready >"$__folder/ready"
until builtin wait $__child; ! builtin kill -0 $__child; do :; done
builtin wait $__child
__code=$?
# A wait that is torn by the signal which ends the child, too, says -1: it was killed.
((__code < 0)) && __code=137
builtin echo $__code >"$__folder/exit"
builtin exit $__code
"""


class LocalKeeper:
    def __init__(self, runner: LocalRunner) -> None:
        self._runner = runner
        self._guards: dict[str, list[ReservedNamesGuard]] = {}

    async def start(
        self, command: CommandRequest, state: ShellState, folder: ProcessFolder
    ) -> tuple[int, str]:
        """Start the keeper of a process. It can be found by the folder among its arguments."""
        env = {**self._runner.environment(state), MARKER: folder.path.name}
        line = start_code(command.cwd, state) + pass_variables_inside(env)
        line += f"builtin eval {shell_quote(command.script)}"
        sandbox = self._runner.sandbox.for_command(command.script, unconfined=command.unconfined)
        self._guards[folder.path.name] = sandbox.guards()
        program = self._runner.program()
        os.mkfifo(folder.stdin, 0o600)
        word = fit_argument(line, folder.script)
        inner = (program, "--norc", "--noprofile", "-c", word)
        arguments = (str(folder.path), *sandbox.wrap(inner, readable=(str(folder.script),)))
        reading, writing = _pipe_ends(folder.stdin)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        output = move_up(os.open(folder.log, flags, 0o600))
        actions: list[FileAction] = [
            dup2_action(reading, 0),
            dup2_action(output, 1),
            dup2_action(output, 2),
            dup2_action(writing, _STDIN_FD),
        ]
        own = [str(file) for file in (folder.exit, folder.ready, folder.script)]
        passed = [reading, writing, output]
        keeper: tuple[str, ...] = ("bash", "--norc", "--noprofile", "-c", KEEPER, "bash")
        try:
            if command.pty:
                ends = tuple(map(move_up, os.openpty()))
                passed += ends
                actions += (dup2_action(ends[1], 6), dup2_action(ends[0], 7))
                own.append(os.ttyname(ends[1]))
                arguments = (arguments[0], own[-1], *arguments[1:])
                program, env = sys.executable, {**env, "TERM": "xterm-256color"}
                keeper = (program, "-I", "-S", str(_TERMINAL_KEEPER))
            pid = sandbox.starter(own=own)(program, (*keeper, *arguments), env, actions)
        finally:
            for descriptor in passed:
                os.close(descriptor)
        return pid, identity(pid) or ""

    async def find(self, record: ProcessRecord, folder: ProcessFolder) -> ProcessRecord:
        if record.pid or not (pid := find_by_argument(str(folder.path))):
            return record
        return replace(record, pid=pid, identity=identity(pid) or "")

    def follow(
        self, record: ProcessRecord, folder: ProcessFolder, ended: Callable[[int | None], None]
    ) -> Callable[[], None] | None:
        def end(code: int | None) -> None:
            guards = self._guards.pop(folder.path.name, [])
            for name in (name for guard in guards for name in guard.differences()):
                remark = f"[{name} was changed while this ran. Check it before anything uses it.]\n"
                with folder.log.open("ab") as log:
                    log.write(remark.encode())
            ended(code)

        try:
            watch = ExitWatch(record.pid, end)
        except ProcessLookupError:
            end(None)
            return None
        # Checked while the watch holds the process. None is a child that has just ended.
        if identity(record.pid) not in (None, record.identity):
            watch.close()
            end(None)
            return None
        return watch.cancel

    async def write(self, record: ProcessRecord, folder: ProcessFolder, raw: bytes) -> None:
        try:
            descriptor = os.open(folder.stdin, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise ToolError(f"{record.id} no longer reads its input.") from error
        try:
            while raw:
                try:
                    raw = raw[os.write(descriptor, raw) :]
                except BlockingIOError:
                    await asyncio.sleep(0.01)
        finally:
            os.close(descriptor)

    async def end_input(self, record: ProcessRecord, folder: ProcessFolder) -> None:
        # Before the keeper is ready, the signal would kill it.
        for _ in range(READY_LOOKS):
            if folder.is_ready() or identity(record.pid) != record.identity:
                break
            await asyncio.sleep(0.005)
        if identity(record.pid) == record.identity:
            os.kill(record.pid, signal.SIGUSR1)

    async def kill(self, record: ProcessRecord, folder: ProcessFolder) -> bool:
        if identity(record.pid) != record.identity:
            return False
        await end_tree(record.pid, grace_seconds=GRACE_SECONDS)
        # What left the process group and the session.
        await asyncio.to_thread(end_marked, folder.path.name)
        return True

    async def remove(self, record: ProcessRecord, folder: ProcessFolder) -> None:
        """Do nothing: no files are kept elsewhere."""


def _pipe_ends(path: Path) -> tuple[int, int]:
    """Return both ends of a named pipe; it is opened for both first, because each end waits for the
    other."""
    both = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        reading = move_up(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        return reading, move_up(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
    finally:
        os.close(both)
