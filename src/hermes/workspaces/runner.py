"""The interface of runners, with resource limits and command output."""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from hermes.codec.values import Value
from hermes.workspaces.child import Sink
from hermes.workspaces.shell_state import ShellSnapshot, ShellState

# The grant that lifts the confinement of a command.
ANYWHERE = "/"
HEAD_SHARE = 0.4
# A cut moves to the next line break within this distance.
LINE_REACH_BYTES = 1_000

_ESCAPES = re.compile(
    rb"\x1b(?:"
    rb"\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor
    rb"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    rb"|[PX^_][^\x1b]*\x1b\\"  # device strings
    rb"|[ -/]*[0-OQ-WYZ\\`-~]"  # the rest
    rb")"
)


def plain_text(raw: bytes) -> str:
    """Remove escape sequences and carriage returns at line ends, and replace broken UTF-8."""
    if b"\x1b" in raw:
        raw = _ESCAPES.sub(b"", raw)
    return raw.replace(b"\r\n", b"\n").decode("utf-8", "replace")


class OutputWindow:
    """Keeps the beginning and the end of a stream in bounded memory."""

    def __init__(self, max_bytes: int) -> None:
        self.total_bytes = 0
        self._head_size = int(max_bytes * HEAD_SHARE)
        self._tail_size = max_bytes - self._head_size
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> None:
        self.total_bytes += len(data)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Trimmed in large steps, so that each byte moves about once.
        if len(self._tail) > 2 * self._tail_size + 65_536:
            del self._tail[: -self._tail_size or None]

    def text(self) -> str:
        """Return all of it, or head and tail around a line with the number of omitted bytes."""
        held = len(self._head) + len(self._tail)
        if len(self._tail) <= self._tail_size and held == self.total_bytes:
            return plain_text(bytes(self._head + self._tail))
        head = bytes(self._head)
        end = head.rfind(b"\n", max(0, len(head) - LINE_REACH_BYTES))
        head = head[: end + 1] if end >= 0 else complete_characters(head)
        tail = bytes(self._tail[-self._tail_size or len(self._tail) :])
        start = tail.find(b"\n", 0, LINE_REACH_BYTES) + 1
        if not start:
            # Without a line break, the cut moves to the next whole character.
            while start < min(3, len(tail)) and 0x80 <= tail[start] < 0xC0:
                start += 1
        tail = tail[start:]
        left_out = self.total_bytes - len(head) - len(tail)
        marker = f"[... {left_out} bytes omitted ...]\n"
        opening = plain_text(head)
        if opening and not opening.endswith("\n"):
            opening += "\n"
        return opening + marker + plain_text(tail)


def complete_characters(raw: bytes) -> bytes:
    """Drop the bytes of an incomplete last character."""
    for size in range(1, min(4, len(raw) + 1)):
        lead = raw[-size]
        if lead >= 0xC0:
            wanted = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return raw[:-size] if size < wanted else raw
        if lead < 0x80:
            break
    return raw


class LiveText:
    """Passes on a stream as text while it arrives, with whole characters and escape sequences."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = b""

    def add(self, data: bytes) -> None:
        data = self._held + data
        start = data.rfind(b"\x1b", max(0, len(data) - 256))
        torn = start >= 0 and not _ESCAPES.match(data, start)
        self._held = data[start:] if torn else b""
        whole = _ESCAPES.sub(b"", data[:start] if torn else data)
        if text := self._decoder.decode(whole).replace("\r\n", "\n"):
            self._show(text)


class CommandRequest(Value):
    """A script and how to run it. `preface` is a line of bash before the script. An `unconfined`
    command runs without the sandbox, an `offline` one without a network in it."""

    script: str
    cwd: str
    timeout: float
    pty: bool = False
    preface: str = ""
    unconfined: bool = False
    offline: bool = False
    # Variables for this script only.
    env: dict[str, str] = {}


class CommandOutcome(Value):
    """How a command ended."""

    # "nowhere" means that its folder does not exist and it never began.
    how: Literal["ended", "timeout", "stopped", "nowhere"]
    code: int
    # Only a command that ended normally has a snapshot.
    after: ShellSnapshot | None = None
    # Notes for readers of the output.
    remarks: tuple[str, ...] = ()


def interrupted_outcome(
    how: Literal["timeout", "stopped"], remarks: tuple[str, ...] = ()
) -> CommandOutcome:
    """Return the outcome of a command that was ended, with the exit code that a shell reports."""
    return CommandOutcome(how=how, code=124 if how == "timeout" else 130, remarks=remarks)


class Runner(Protocol):
    """Runs scripts, each in its own bash. A script that may have started never runs twice."""

    def can_use_sudo(self, *, unconfined: bool) -> bool:
        """Return whether a command can become another user at all."""
        ...

    async def prepare(self) -> Mapping[str, str]:
        """Return the variables that every command starts from."""
        ...

    def take_reports(self) -> Sequence[str]:
        """Return, once, what became of commands of a Hermes that was killed."""
        ...

    async def run(
        self,
        command: CommandRequest,
        state: ShellState,
        sinks: Sequence[Sink],
        *,
        stop: asyncio.Event,
        password: bytes = b"",
    ) -> CommandOutcome:
        """Run a command. It can read `password` once from descriptor PASSWORD_FD; the password is
        stored nowhere."""
        ...

    async def is_folder(self, path: str) -> bool: ...

    def start_files(self, names: Sequence[str]) -> Sequence[str]:
        """Return those of these files that may exist; `~/` is the home folder."""
        ...

    async def close(self) -> None:
        """End the processes that commands left running."""
        ...
