"""What a shell needs of the place where its commands run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from hermes.codec.values import Value
from hermes.workspaces.child import Sink
from hermes.workspaces.shell_state import Aftermath, ShellState


class Finished(Value):
    """How a command came to its end: `nowhere` when its folder does not exist and it did not even
    begin. Only one that ended by itself has an aftermath. `remarks` are for whoever reads the
    output."""

    how: Literal["ended", "timeout", "stopped", "nowhere"]
    code: int
    after: Aftermath | None = None
    remarks: tuple[str, ...] = ()


class Runner(Protocol):
    """Runs scripts, each in a bash of its own. A script that may have started never runs twice."""

    def privileged(self, *, free: bool) -> bool:
        """Whether a command can become another user at all."""
        ...

    async def prepare(self) -> Mapping[str, str]:
        """The variables that every command starts from."""
        ...

    async def run(
        self,
        script: str,
        cwd: str,
        state: ShellState,
        sinks: Sequence[Sink],
        *,
        timeout: float,
        stop: asyncio.Event,
        pty: bool,
        preface: str = "",
        aside: bytes = b"",
        free: bool = False,
    ) -> Finished:
        """`preface` is a line of bash before the script; `aside` can be read once from descriptor
        ASIDE and stands nowhere else. A `free` command is not confined, where others are."""
        ...

    async def is_folder(self, path: str) -> bool: ...

    def start_files(self, names: Sequence[str]) -> Sequence[str]:
        """Of these files, those that may be there; `~/` is the home folder."""
        ...

    async def close(self) -> None:
        """End what commands left running."""
        ...
