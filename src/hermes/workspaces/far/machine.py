"""The interface of every remote machine: a bash that gets a line and data, and two streams of
output. Shell, files, processes and search need nothing else."""

from __future__ import annotations

import asyncio
from typing import Protocol

from hermes.workspaces.child import Sink
from hermes.workspaces.confinement.protection import ConfinementReport

# Reads the line from stdin up to a NUL and leaves the rest of stdin to it. No login shell treats
# any of it specially, and the line never appears in a process list.
READ_LINE = 'IFS= read -rd "" __line; eval "$__line"'
BASH = ("bash", "--norc", "--noprofile", "-c", READ_LINE)


class RemoteProcess(Protocol):
    """One remote bash, as seen from here."""

    @property
    def ended(self) -> asyncio.Future[int]:
        """The end of the connection, after the end of the bash or instead of it."""
        ...

    def close(self) -> None:
        """Disconnect; remote processes may run on."""
        ...


class RemoteMachine(Protocol):
    @property
    def protection(self) -> ConfinementReport: ...

    async def open(self) -> None:
        """Make the machine usable, also after a lost connection; ToolError says what is wrong."""
        ...

    async def start(self, line: str, data: bytes, out: Sink, errors: Sink) -> RemoteProcess:
        """Start a bash line with `data` as its input. ToolError only if it certainly did not
        start."""
        ...

    def ask_now(self, line: str, data: bytes) -> bytes:
        """Return the output of a short line. Blocks; ToolError."""
        ...

    async def hibernate(self) -> None:
        """Release what costs money; the next call wakes it up. Files stay."""
        ...

    async def close(self, *, keep: bool = False) -> None:
        """With `keep`, processes run on if the machine can outlive Hermes."""
        ...
