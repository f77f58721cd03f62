"""What a session is told of memory and of its user; where there is nothing, nothing is loaded."""

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
    """The text for the prompt, and a guard against what is forgotten before it is written down."""

    def __init__(self, memory: MemoryService, taken: MemorySnapshot | None) -> None:
        self._memory = memory
        self._taken = taken
        self.text = taken.text if taken else ""

    def guard(self, recorder: Recorder) -> None:
        if self._taken and self.text:
            self._memory.guard(recorder, self._taken)


async def session_memory(memory: MemoryService, opening: SessionRequest) -> SessionMemory:
    is_new = not memory.run.home.memories.exists()
    return SessionMemory(memory, None if is_new else await memory.snapshot(opening))


def external_block(memory: MemoryService, session: SessionRequest | SessionOpened) -> str:
    """What the system text says of what else models the user."""
    return memory.user_model.block(session) if memory.run.settings.memory.provider else ""


async def renew_system(
    memory: MemoryService,
    session_id: str,
    opened: SessionOpened,
    transcript: Transcript,
    window: int,
) -> str:
    """The system text with memory as it is now; "" when nothing has changed."""
    if memory.run.settings.memory.provider:
        memory.user_model.on_compaction(session_id)
    if not memory.run.home.memories.exists():
        return ""
    taken = await memory.snapshot_for(opened)
    system = transcript.system
    text = with_memory(
        system,
        fit_block("memory", taken.text, window),
        fit_block("provider", external_block(memory, opened), 0),
    )
    return "" if text == system else text


def with_memory(system: str, memory: str, external: str = "") -> str:
    """A system text with this block of memory in the place of its own. The block of an external
    memory stands after it and stays, and so do the facts, which come last."""
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
    """The way to models, past what models the user, where something is chosen for it."""
    if not memory.run.settings.memory.provider:
        return connect
    return memory.user_model.wrap(session_id, opened, connect)
