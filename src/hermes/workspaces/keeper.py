"""Starts background processes under a keeper: a small process that outlives Hermes, holds the
way in open and writes down the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from hermes.workspaces.bash_text import argument
from hermes.workspaces.child import FileAction, onto, spawn
from hermes.workspaces.process_record import ProcessFolder

_WAY_IN = 8
_TERMINAL_KEEPER = Path(__file__).with_name("terminal_keeper.py")

# Job control gives the command a group of its own that takes signals like any other. The keeper
# passes on what would end it, so that `kill <pid>` reaches the command and its exit code is told.
_KEEPER = f"""set -m
builtin trap 'exec {_WAY_IN}>&-' USR1
for __signal in TERM INT HUP; do
  builtin trap "[[ \\$! ]] || builtin exit 143; builtin kill -$__signal -- -\\$!" $__signal
done
"$1" --norc --noprofile -c "$2" <&0 {_WAY_IN}>&- &
__child=$!
exec 0</dev/null 1>/dev/null 2>&1
builtin echo ready >"$3/ready"
until builtin wait $__child; ! builtin kill -0 $__child; do :; done
builtin wait $__child
__code=$?
builtin echo $__code >"$3/exit"
builtin exit $__code
"""


def start(
    program: str, line: str, env: Mapping[str, str], folder: ProcessFolder, *, pty: bool
) -> int:
    """Begin a line of bash under a keeper, whose number is returned. Raises OSError. The folder is
    among the keeper's arguments, by which it can be found."""
    os.mkfifo(folder.stdin, 0o600)
    words = (program, argument(line, folder.script), str(folder.path))
    reading, writing = _pipe_ends(folder.stdin)
    output = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    actions: list[FileAction] = [onto(reading, 0), onto(output, 1), onto(output, 2)]
    actions.append(onto(writing, _WAY_IN))
    try:
        keeper: tuple[str, ...]
        if pty:
            keeper = (sys.executable, "-I", "-S", str(_TERMINAL_KEEPER))
            env = {**env, "TERM": "xterm-256color"}
            return spawn(sys.executable, (*keeper, *words), env, actions)
        keeper = ("bash", "--norc", "--noprofile", "-c", _KEEPER, "bash")
        return spawn(program, (*keeper, *words), env, actions)
    finally:
        for descriptor in (reading, writing, output):
            os.close(descriptor)


def _pipe_ends(path: Path) -> tuple[int, int]:
    """Both ends of a named pipe; opened for both first, because each end waits for the other."""
    both = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        reading = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return reading, os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    finally:
        os.close(both)
