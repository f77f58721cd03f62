"""Memory in the system prompt of a session; loads nothing if there is no memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.context.system import FACTS, fit_block
from hermes.core.events import SessionOpened
from hermes.core.ports import Middleware
from hermes.core.recorder import Recorder
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import Transcript

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.memory.entries import MemorySnapshot
    from hermes.memory.service import MemoryService

LoadMemory = Callable[[], "MemoryService"]


class SessionMemory:
    """The memory text of a new session, and a guard against erasure before it is journaled."""

    def __init__(self, load: LoadMemory, snapshot: MemorySnapshot | None) -> None:
        self._load = load
        self._snapshot = snapshot
        self.text = snapshot.text if snapshot else ""
        self.origins = snapshot.origins if snapshot else ()

    def guard(self, recorder: Recorder) -> None:
        if self._snapshot and self.text:
            self._load().guard(recorder, self._snapshot)


async def session_memory(
    run: RunContext, load: LoadMemory, request: SessionRequest
) -> SessionMemory:
    is_new = not run.home.memories.exists()
    return SessionMemory(load, None if is_new else await load().snapshot(request))


def external_block(
    run: RunContext, load: LoadMemory, session: SessionRequest | SessionOpened
) -> str:
    """Return the memory provider's block of the system prompt."""
    return load().user_model.block(session) if run.settings.memory.provider else ""


async def renew_system(
    memory: MemoryService,
    session_id: str,
    opened: SessionOpened,
    transcript: Transcript,
    window: int,
) -> tuple[str, tuple[str, ...]]:
    """Return the system prompt with the current memory, "" when nothing has changed, and the
    sources of memories in it."""
    if memory.run.settings.memory.provider:
        memory.user_model.on_compaction(session_id)
    if not memory.run.home.memories.exists():
        return "", ()
    snapshot = await memory.snapshot_for(opened)
    system = transcript.system
    text = with_memory(
        system,
        fit_block("memory", snapshot.text, window),
        fit_block("external_memory", external_block(memory.run, lambda: memory, opened), 0),
    )
    return ("", ()) if text == system else (text, snapshot.origins)


def with_memory(system: str, memory: str, external: str = "") -> str:
    """Replace the memory block of a system prompt. The provider's block and the facts, which follow
    it, stay unchanged."""
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


def recall_middleware(
    run: RunContext, load: LoadMemory, session_id: str, opened: SessionOpened
) -> Middleware | None:
    """Return the middleware that adds what the memory provider recalls; None if no provider is
    configured."""
    if not run.settings.memory.provider:
        return None
    return load().user_model.middleware(session_id, opened)
