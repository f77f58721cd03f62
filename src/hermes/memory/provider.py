"""What may model the user besides the two files: the interface of memory providers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value
from hermes.core.messages import Message
from hermes.memory.entries import Action, Target

SwitchCause = Literal["resumed", "compacted", "rewound"]


class Began(Value):
    """The session that a provider is asked to serve. `context` says who works in it."""

    session_id: str
    cwd: str = ""
    platform: str = "cli"
    person: str = "owner"
    context: Literal["primary", "subagent", "cron", "flush"] = "primary"


class MemoryProvider:
    """All but `name` may be left as it is. Whatever a provider raises is logged and the turn goes
    on without it; `prefetch` has eight seconds, `shutdown` five. Calls after a turn are made one
    after the other, in the order of the turns."""

    name = ""

    def is_available(self) -> bool:
        """By settings alone: nothing is contacted."""
        return True

    async def initialize(self, began: Began) -> None:
        """Before the first use in a session."""

    def system_prompt_block(self) -> str:
        """Text for the system prompt; the same for as long as the session lives."""
        return ""

    async def prefetch(self, query: str) -> str:
        """What may help with this message of the user; shown to the model beside it."""
        return ""

    async def queue_prefetch(self, query: str) -> None:
        """A turn is over: get ready for the next."""

    async def on_turn_start(self, number: int, message: str) -> None: ...

    async def sync_turn(self, user: str, assistant: str, *, trusted: bool) -> None:
        """A turn ended well. What was said in sight of strangers' words is not `trusted`."""

    async def on_session_end(self, messages: Sequence[Message]) -> None:
        """The person has left it. It may be taken up again."""

    async def on_session_switch(self, session_id: str, cause: SwitchCause) -> None:
        """The conversation is not what it was a moment ago: it was taken up again, its older part
        was summarised, or its last turns were taken back."""

    async def on_pre_compress(self, messages: Sequence[Message]) -> str:
        """Text that the summary of these messages should take up."""
        return ""

    async def on_memory_write(self, action: Action, target: Target, content: str) -> None: ...

    async def on_delegation(self, task: str, result: str, child_session_id: str) -> None: ...

    async def forget(self, erased: Callable[[str], str]) -> list[str]:
        """Take out what `erased` changes; sentences about what cannot be taken out."""
        return []

    def backup_paths(self) -> tuple[Path, ...]:
        """Files outside of the home that belong to a backup."""
        return ()

    async def shutdown(self) -> None: ...
