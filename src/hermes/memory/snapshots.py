"""Memory in the system prompt of a session; loads nothing if there is no memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.context.system import FACTS, fit_block
from hermes.core.events import SessionOpened
from hermes.core.recorder import Recorder
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import Transcript
from hermes.core.turn import Connect

if TYPE_CHECKING:
    from hermes.memory.entries import MemorySnapshot
    from hermes.memory.service import MemoryService


class SessionMemory:
    """The memory text of a new session, and a guard against erasure before it is journaled."""

    def __init__(self, memory: MemoryService, snapshot: MemorySnapshot | None) -> None:
        self._memory = memory
        self._snapshot = snapshot
        self.text = snapshot.text if snapshot else ""

    def guard(self, recorder: Recorder) -> None:
        if self._snapshot and self.text:
            self._memory.guard(recorder, self._snapshot)


async def session_memory(memory: MemoryService, request: SessionRequest) -> SessionMemory:
    is_new = not memory.run.home.memories.exists()
    return SessionMemory(memory, None if is_new else await memory.snapshot(request))


def external_block(memory: MemoryService, session: SessionRequest | SessionOpened) -> str:
    """Returns the memory provider's block of the system prompt."""
    return memory.user_model.block(session) if memory.run.settings.memory.provider else ""


async def renew_system(
    memory: MemoryService,
    session_id: str,
    opened: SessionOpened,
    transcript: Transcript,
    window: int,
) -> str:
    """Returns the system prompt with the current memory; "" when nothing has changed."""
    if memory.run.settings.memory.provider:
        memory.user_model.on_compaction(session_id)
    if not memory.run.home.memories.exists():
        return ""
    snapshot = await memory.snapshot_for(opened)
    system = transcript.system
    text = with_memory(
        system,
        fit_block("memory", snapshot.text, window),
        fit_block("provider", external_block(memory, opened), 0),
    )
    return "" if text == system else text


def with_memory(system: str, memory: str, external: str = "") -> str:
    """Replaces the memory block of a system prompt. The provider's block and the facts, which
    follow it, stay unchanged."""
    from hermes.memory.entries import HEADINGS, RULE

    before, mark, facts = system.rpartition(f"\n\n{FACTS}")
    if not mark:
        return system
    last = f"\n\n{external}" if external and before.endswith(f"\n\n{external}") else ""
    before = before.removesuffix(last)
    starts = (before.rfind(f"\n\n{RULE}\n{heading} [") for heading in HEADINGS.values())
    found = next((start for start in starts if start >= 0), len(before))
    block = f"\n\n{memory}" if memory else ""
    return f"{before[:found]}{block}{last}{mark}{facts}"


def wrap_connect(
    memory: MemoryService, session_id: str, opened: SessionOpened, connect: Connect
) -> Connect:
    """Wraps `connect` with the memory provider, if one is configured."""
    if not memory.run.settings.memory.provider:
        return connect
    return memory.user_model.wrap(session_id, opened, connect)
