"""Measures the outcome of a turn, so that two runs can be compared."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.codec.values import Value
from hermes.core.events import Event, ReplyAdded, ToolFinished, TurnEnded

# More tokens alone are not harmful, up to this.
TOKENS_FACTOR = 1.25
TOKENS_MORE = 1_000


class TurnOutcome(Value, omit_defaults=False):
    """The outcome of one turn. `end` is its reason, "" while open. `failures` are failed calls,
    `unknown` calls without a known result; `corrected` is set when the next message was a
    correction, which only a real turn has."""

    end: str = ""
    calls: int = 0
    failures: int = 0
    unknown: int = 0
    tokens: int = 0
    corrected: bool = False

    def __str__(self) -> str:
        parts = [f"{self.calls} calls", f"{self.tokens} tokens"]
        if self.failures:
            parts.append(f"{self.failures} failed")
        if self.unknown:
            parts.append(f"{self.unknown} of unknown result")
        if self.corrected:
            parts.append("corrected")
        return f"{self.end or 'open'}, {', '.join(parts)}"


def outcome_of(
    events: Iterable[Event], *, unknown: str | None = None, corrected: bool = False
) -> TurnOutcome:
    """`unknown` lists how results of simulated calls begin."""
    end, calls, failures, missing, tokens = "", 0, 0, 0, 0
    for event in events:
        match event:
            case ReplyAdded(message=message, usage=usage):
                calls += len(message.calls)
                tokens += usage.prompt + usage.output
            case ToolFinished(result=result) if result.failed:
                is_unknown = unknown is not None and (
                    result.denied in ("unattended", "timeout") or result.text.startswith(unknown)
                )
                missing += is_unknown
                failures += not is_unknown
            case TurnEnded(reason=reason):
                end = reason
            case _:
                pass
    return TurnOutcome(
        end=end,
        calls=calls,
        failures=failures,
        unknown=missing,
        tokens=tokens,
        corrected=corrected,
    )


def find_regressions(before: TurnOutcome, after: TurnOutcome) -> tuple[str, ...]:
    """Lists what got worse. More work does not count after a correction, nor after a call with
    unknown result."""
    found = []
    if before.end == "done" and after.end != "done":
        found.append(f"it ended {after.end or 'never'} instead of done")
    if after.failures > before.failures:
        found.append(f"{after.failures} failed calls instead of {before.failures}")
    was_good = before.end == "done" and not before.corrected
    if was_good and not after.unknown:
        if after.calls > before.calls:
            found.append(f"{after.calls} calls instead of {before.calls}")
        if after.tokens > before.tokens * TOKENS_FACTOR + TOKENS_MORE:
            found.append(f"{after.tokens} tokens instead of {before.tokens}")
    return tuple(found)
