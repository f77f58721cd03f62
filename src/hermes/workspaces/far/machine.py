"""What every far place offers: a bash that is given a line and some data, and whose two streams of
output come back. Shell, files, processes and search are built on nothing else."""

from __future__ import annotations

import asyncio
from typing import Protocol

from hermes.workspaces.child import Sink
from hermes.workspaces.confinement.protection import Protection

# Takes the line from its input, up to a NUL, and leaves the rest of the input to it. Nothing of it
# is special to any login shell, and the line itself is in nobody's list of processes.
READ_LINE = 'IFS= read -rd "" __line; eval "$__line"'
BASH = ("bash", "--norc", "--noprofile", "-c", READ_LINE)


class FarRun(Protocol):
    """One bash, as far as it can be seen from here."""

    @property
    def ended(self) -> asyncio.Future[int]:
        """The end of the way to it, which comes after the end of the bash, or instead of it."""
        ...

    def close(self) -> None:
        """Let go; what runs there may run on."""
        ...


class Machine(Protocol):
    @property
    def protection(self) -> Protection: ...

    async def open(self) -> None:
        """Can be used when it returns, also after it was lost; ToolError says what is wrong."""
        ...

    async def start(self, line: str, data: bytes, out: Sink, errors: Sink) -> FarRun:
        """Begin a bash line with `data` as its input. ToolError only if it surely did not start."""
        ...

    def ask_now(self, line: str, data: bytes) -> bytes:
        """What a short line prints. Blocks; ToolError."""
        ...

    async def hibernate(self) -> None:
        """Give back what costs something; the next call wakes it up again. Files stay."""
        ...

    async def close(self, *, keep: bool = False) -> None:
        """With `keep`, what runs there is to run on, if the machine can outlive us."""
        ...
