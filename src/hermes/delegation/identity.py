"""The identity of child sessions: which call made them, so that the call finds them again."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from hermes.journal.listing import CHILD_SOURCES

SUBAGENT, BACKGROUND = CHILD_SOURCES

# The keys of the messages that a child session receives.
TASK_KEY = "task"
CORRECTION_KEY = "correction"
# The origin of text that a model wrote for a child session: trusted like the parent, whose sources
# the child session has, but not what the person wrote.
FROM_PARENT = "hermes"

REPORTED = "reported"
STOPPED = "stopped"


class Delegation(NamedTuple):
    """One call of `delegate_task`. Models reuse call ids, so the record number of the reply that
    contains the call is part of the identity."""

    owner: str
    reply_n: int
    call_id: str

    @property
    def key(self) -> str:
        text = f"{self.owner}\n{self.reply_n}\n{self.call_id}"
        return blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def id(self) -> str:
        return f"deleg_{self.key}"

    def child(self, index: int) -> str:
        """Return the session id of a task. After a crash, the same call finds the same session."""
        return f"sub_{self.key}_{index}"


def notice_key(child_id: str) -> str:
    """Return the key of the message that announces a background result: each is received once."""
    return f"{child_id}:{REPORTED}"
