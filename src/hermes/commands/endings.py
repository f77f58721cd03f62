"""Explains in one sentence how a turn ended."""

from __future__ import annotations

from typing import assert_never

from hermes.commands.language import ENGLISH, Translator
from hermes.core.events import TurnEnded


def explain_ending(ended: TurnEnded, *, answered: bool, say: Translator = ENGLISH) -> str:
    """Empty when the turn ended normally. `answered` means that its last reply has text."""
    match ended.reason:
        case "done":
            return _unusual(ended.detail, answered, say)
        case "interrupted":
            return say("Interrupted.")
        case "paused":
            cap = "Paused at a spending cap."
            return say("Paused: {why}", why=ended.error) if ended.error else say(cap)
        case "failed" | "crashed":
            return ended.error or say("The turn failed ({why}).", why=ended.detail)
        case "budget":
            used = ended.detail.rpartition("(")[2].rstrip(")").partition("/")[0]
            words = "Stopped after {used} model calls (agent.max_turns); say “go on” for more."
            return say(words, used=used)
        case "partial":
            return say("Stopped: the model kept making calls that cannot be run.")
        case "guardrail":
            return say("Stopped, because it went in circles: {why}.", why=ended.detail)
        case _:
            assert_never(ended.reason)


def is_error(ended: TurnEnded) -> bool:
    """Whether the turn failed, rather than stopped."""
    return ended.reason in ("failed", "crashed")


def _unusual(detail: str, answered: bool, say: Translator) -> str:
    match detail:
        case "text_response(length)":
            return say("The answer was cut at the length limit; say “go on” for the rest.")
        case "text_response(filtered)":
            return say("The provider held back (a part of) the answer.")
        case "text_response(cut)":
            return say("The answer was cut off on its way; say “go on” for the rest.")
        case _:
            return "" if answered else say("The model gave an empty answer.")
