"""How a turn ended, in one sentence for a person."""

from __future__ import annotations

from typing import assert_never

from hermes.core.events import TurnEnded


def explain(ended: TurnEnded, *, answered: bool) -> str:
    """Nothing when all is well. `answered` means that the turn's last reply had words in it."""
    match ended.reason:
        case "done":
            return _unusual(ended.detail, answered)
        case "interrupted":
            return "Interrupted."
        case "paused":
            return f"Paused: {ended.error}" if ended.error else "Paused at a spending cap."
        case "failed" | "crashed":
            return ended.error or f"The turn failed ({ended.detail})."
        case "budget":
            used = ended.detail.rpartition("(")[2].rstrip(")").partition("/")[0]
            return f"Stopped after {used} model calls (agent.max_turns); say “go on” for more."
        case "partial":
            return "Stopped: the model kept making calls that cannot be run."
        case "guardrail":
            return f"Stopped, because it went in circles: {ended.detail}."
        case _:
            assert_never(ended.reason)


def is_error(ended: TurnEnded) -> bool:
    """Whether the sentence is about something that went wrong, rather than about a stop."""
    return ended.reason in ("failed", "crashed")


def _unusual(detail: str, answered: bool) -> str:
    match detail:
        case "text_response(length)":
            return "The answer was cut at the length limit; say “go on” for the rest."
        case "text_response(filtered)":
            return "The provider held back (a part of) the answer."
        case "text_response(cut)":
            return "The answer was cut off on its way; say “go on” for the rest."
        case _:
            return "" if answered else "The model gave an empty answer."
