"""Prompts that ask the model to review memory after a turn and before compaction."""

from __future__ import annotations

REVIEW = (
    "Review this conversation. Is there anything about the user, their preferences, corrections or "
    "this environment that later sessions should know and memory lacks or has wrong? Save it with "
    "the memory tool: short statements, no task progress, no temporary failures. If there is "
    "nothing, say “nothing to save” and stop."
)
FLUSH = (
    "This conversation is about to be compacted. Save durable facts that would be lost with the "
    "memory tool: preferences, corrections, the environment. Nothing else; if there is nothing, "
    "say so."
)


def review_request(turns_since: int, interval: int) -> str:
    """Returns the review prompt when `interval` turns have passed without a memory change, else "".
    An interval of 0 disables it."""
    return REVIEW if interval > 0 and turns_since >= interval else ""


def flush_request(user_turns: int, least_turns: int) -> str:
    """Returns the prompt before compaction, or "" for a short conversation."""
    return FLUSH if least_turns > 0 and user_turns >= least_turns else ""
