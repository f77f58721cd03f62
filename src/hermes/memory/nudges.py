"""When memory is to be looked after: the words for a review after a turn, and before compaction."""

from __future__ import annotations

REVIEW = (
    "Look back over this conversation. Is there anything about the user, their wishes, corrections "
    "or this environment that later sessions should know and memory does not hold yet, or that it "
    "holds wrongly? Save it with the memory tool: short statements, no task progress, no failures "
    "of the moment. If there is nothing, say “nothing to save” and stop."
)
FLUSH = (
    "This conversation is about to be shortened. Save now, with the memory tool, what is durable "
    "and would be lost: preferences, corrections, facts of the environment. Nothing else; if there "
    "is nothing, say so."
)


def nudge(turns_since: int, interval: int) -> str:
    """What to ask after a turn when so many turns have passed without a change of memory, "" for
    nothing. An interval of 0 never asks."""
    return REVIEW if interval > 0 and turns_since >= interval else ""


def flush_request(user_turns: int, least_turns: int) -> str:
    """What to ask before a conversation is compacted, "" for one that is too short to matter."""
    return FLUSH if least_turns > 0 and user_turns >= least_turns else ""
