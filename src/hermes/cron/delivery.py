"""Where the output of a job goes: its targets, the port to the gateway, and what waits for one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from hermes.codec.atomic_files import PRIVATE, replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import UsageError

LOCAL, ORIGIN = "local", "origin"
_TARGET = re.compile(r"[a-z][a-z0-9_-]{0,39}(?::\S{1,200})?")


class JobOrigin(Value):
    """The chat in which a job was created."""

    platform: str
    chat_id: str
    thread_id: str = ""
    chat_name: str = ""


class DeliveryReport(Value):
    """What became of one delivery. `unavailable`: there is no way to that platform now."""

    state: Literal["delivered", "failed", "unavailable"]
    # The chats that have it, or why there are none.
    detail: str = ""


class OutputDelivery(Protocol):
    """Sends the output of jobs to chats; a gateway provides it."""

    async def deliver(
        self,
        target: str,
        text: str,
        *,
        key: str,
        files: Sequence[Path] = (),
        origin: JobOrigin | None = None,
        mirror: bool = False,
    ) -> DeliveryReport:
        """Send Markdown of any length to `origin`, `all`, `<platform>` (its home channel),
        `<platform>:<chat>[:<thread>]` or `<platform>:#name`. The same `key` to the same chat is
        sent once. With `mirror`, the chat's session gets the text too."""
        ...


class NoDelivery:
    """The delivery of a process without a gateway: everything has to wait."""

    async def deliver(self, target: str, text: str, **_facts: object) -> DeliveryReport:
        detail = f"no gateway runs in this process to reach {target}"
        return DeliveryReport(state="unavailable", detail=detail)


def parse_targets(text: str) -> tuple[str, ...]:
    """The targets of a `deliver` field, each once. Raise UsageError for one of another form."""
    targets = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for target in targets:
        if not _TARGET.fullmatch(target):
            raise UsageError(
                f"{target!r} is not a delivery target; use local, origin, all, a platform, or "
                "platform:chat."
            )
    return targets


class WaitingOutput(Value):
    """Output that could not be sent yet."""

    job: str
    due_at: float
    target: str
    text: str
    key: str
    origin: JobOrigin | None = None
    mirror: bool = False


class WaitingOutputs:
    """The folder of output that waits for a gateway, one file per target."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, waiting: WaitingOutput) -> None:
        replace_file(self._path(waiting), encode(waiting), mode=PRIVATE)

    def remove(self, waiting: WaitingOutput) -> None:
        self._path(waiting).unlink(missing_ok=True)

    def all(self) -> list[WaitingOutput]:
        """The waiting output, oldest due time first; unreadable files are left alone."""
        found = []
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            try:
                found.append(decode(WaitingOutput, path.read_bytes()))
            except (OSError, DecodeError):
                continue
        return sorted(found, key=lambda each: (each.due_at, each.key, each.target))

    def _path(self, waiting: WaitingOutput) -> Path:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{waiting.key}_{waiting.target}")[:200]
        return self._folder / f"{name}.json"
