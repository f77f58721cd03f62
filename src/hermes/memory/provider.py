"""The interface of memory providers, which model the user beside the two files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value
from hermes.core.messages import Message
from hermes.memory.entries import Action, Target

SwitchCause = Literal["resumed", "compacted", "rewound"]


class ProviderContext(Value):
    """The session that a provider serves. `context` says which kind of agent works in it."""

    session_id: str
    cwd: str = ""
    platform: str = "cli"
    person: str = "owner"
    context: Literal["primary", "subagent", "cron", "flush"] = "primary"


class MemoryProvider:
    """Every method but `name` has a default. Errors are logged and the turn continues; `prefetch`
    has eight seconds, `shutdown` five. Calls after a turn run one at a time, in the order of the
    turns."""

    name = ""

    def is_available(self) -> bool:
        """Checks settings only; contacts no server."""
        return True

    async def initialize(self, began: ProviderContext) -> None:
        """Called before the first use in a session."""

    def system_prompt_block(self) -> str:
        """Returns text for the system prompt; it must not change within a session."""
        return ""

    async def prefetch(self, query: str) -> str:
        """Returns context for this message; the model sees it beside the message."""
        return ""

    async def queue_prefetch(self, query: str) -> None:
        """Called after a turn to prepare for the next."""

    async def on_turn_start(self, number: int, message: str) -> None: ...

    async def sync_turn(self, user: str, assistant: str, *, trusted: bool) -> None:
        """Called after a successful turn. `trusted` is False when untrusted text was in view."""

    async def on_session_end(self, messages: Sequence[Message]) -> None:
        """Called when the session closes. It may be resumed later."""

    async def on_session_switch(self, session_id: str, cause: SwitchCause) -> None:
        """Called when the conversation was resumed, compacted or rewound."""

    async def on_pre_compress(self, messages: Sequence[Message]) -> str:
        """Returns text that the summary of these messages should include."""
        return ""

    async def on_memory_write(self, action: Action, target: Target, content: str) -> None: ...

    async def on_delegation(self, task: str, result: str, child_session_id: str) -> None: ...

    async def forget(self, remove_phrases: Callable[[str], str]) -> list[str]:
        """Deletes what `erased` changes; returns notes about what cannot be deleted."""
        return []

    def backup_paths(self) -> tuple[Path, ...]:
        """Returns files outside the home to back up."""
        return ()

    async def shutdown(self) -> None: ...
