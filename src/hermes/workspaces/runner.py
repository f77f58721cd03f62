"""What a shell needs from the place where its commands run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from hermes.codec.values import Value
from hermes.workspaces.child import Sink
from hermes.workspaces.shell_state import ShellSnapshot, ShellState


class CommandOutcome(Value):
    """How a command ended: `nowhere` means that its folder does not exist and it never began. Only
    a command that ended normally has an aftermath. `remarks` are notes for the reader of the
    output."""

    how: Literal["ended", "timeout", "stopped", "nowhere"]
    code: int
    after: ShellSnapshot | None = None
    remarks: tuple[str, ...] = ()


class Runner(Protocol):
    """Runs scripts, each in its own bash. A script that may have started never runs twice."""

    def can_use_sudo(self, *, unconfined: bool) -> bool:
        """Return whether a command can become another user at all."""
        ...

    async def prepare(self) -> Mapping[str, str]:
        """Return the variables that every command starts from."""
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
        password: bytes = b"",
        unconfined: bool = False,
    ) -> CommandOutcome:
        """`preface` is a line of bash before the script; `password` can be read once from
        descriptor PASSWORD_FD and is stored nowhere. An `unconfined` command runs without the
        sandbox."""
        ...

    async def is_folder(self, path: str) -> bool: ...

    def start_files(self, names: Sequence[str]) -> Sequence[str]:
        """Return those of these files that may exist; `~/` is the home folder."""
        ...

    async def close(self) -> None:
        """End what commands left running."""
        ...
