"""Fits the answers of child sessions into the context of their parent."""

from __future__ import annotations

from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.core.ports import Workspace

LEAST_CHARS = 1_000
# The share of the parent's free context that all answers of a call may take.
SHARE = 0.5


def summary_limit(most: int, window: int, used: int, count: int) -> int:
    """Return the characters that each of `count` answers may have. `used` are the tokens of the
    parent's last prompt."""
    free = max(0, window - used) * CHARS_PER_TOKEN
    return max(LEAST_CHARS, min(most, int(free * SHARE) // max(1, count)))


async def fit_summary(text: str, limit: int, workspace: Workspace, name: str) -> str:
    """Return the text, or its beginning and end with the path of a file that has all of it."""
    if len(text) <= limit:
        return text
    path = await workspace.scratch(f"{name}.txt", text.encode())
    head, tail = limit * 2 // 3, limit // 3
    left = len(text) - head - tail
    note = f"[… {left} characters left out; the whole text is in {path} …]"
    return f"{text[:head]}\n{note}\n{text[-tail:]}"
