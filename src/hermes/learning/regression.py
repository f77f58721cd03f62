"""Detects that a skill version performs worse than its predecessor."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import Value, replace
from hermes.core.events import Event, MessageReceived, Record, ToolFinished, TurnEnded, TurnStarted
from hermes.learning.rehearsal import VIEW, TurnOutcome, outcome_of
from hermes.learning.triggers import is_correction

# BAD_RUNS of the last RECENT_RUNS uses must be bad.
RECENT_RUNS = 5
BAD_RUNS = 3
# Turn endings that reflect the work done.
_CONCLUSIVE = frozenset(("done", "failed", "guardrail", "budget", "partial"))


class SkillRun(Value):
    """A turn that used a skill version, named by a hash prefix."""

    skill: str
    version: str
    session: str
    turn: str
    outcome: TurnOutcome


class SkillUseTracker:
    """Follows the events of a session and reports turns that used skills."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._loaded: dict[str, str] = {}
        self._events: list[Event] = []
        self._last: tuple[SkillRun, ...] = ()

    def note(self, record: Record) -> tuple[SkillRun, ...]:
        """Returns new runs, or runs that were just corrected."""
        match record.event:
            case TurnStarted():
                self._loaded, self._events, self._last = {}, [], ()
            case MessageReceived(message=message) if message.origin == "user":
                return tuple(
                    replace(run, outcome=replace(run.outcome, corrected=True))
                    for run in self._last
                    if is_correction(message.text)
                )
            case ToolFinished(result=result) if result.name == VIEW and not result.failed:
                if version := result.details.get("version"):
                    self._loaded[str(result.details.get("name"))] = str(version)
            case event if self._loaded:
                self._events.append(event)
        if isinstance(record.event, TurnEnded) and record.event.reason in _CONCLUSIVE:
            self._last = tuple(
                SkillRun(
                    skill=name,
                    version=version,
                    session=self._session,
                    turn=record.turn_id,
                    outcome=outcome_of(self._events),
                )
                for name, version in self._loaded.items()
            )
            return self._last
        return ()


def find_regression(runs: Sequence[SkillRun], now: str, before: str) -> str:
    """Returns why version `now` should be reverted to `before`, or "". Failed calls count only
    where the previous number is known."""
    mine = [run.outcome for run in runs if run.version == now][-RECENT_RUNS:]
    theirs = sorted(run.outcome.failures for run in runs if run.version == before)
    usual = theirs[len(theirs) // 2] if theirs else None
    bad = sum(
        each.end != "done" or each.corrected or (usual is not None and each.failures > usual)
        for each in mine
    )
    if bad < BAD_RUNS or 2 * bad <= len(mine):
        return ""
    return f"{bad} of {len(mine)} turns with it went badly"
