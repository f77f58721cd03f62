"""Follows the events of a session: which turns deserve a review, and how turns with skills end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from hermes.codec.values import Value, replace
from hermes.core.events import Event, MessageReceived, Record, ToolFinished, TurnEnded, TurnStarted
from hermes.learning.rehearsal import VIEW, TurnOutcome, outcome_of

# Longer texts are new tasks.
MOST_CHARS = 600
_BEGINS = re.compile(
    r"""(?xi) ^ \W*
    (?: no \b (?! \s+ (?:problem|worries|rush|hurry|need)) | nope | nah \b | wrong | incorrect
      | stop \b | don'?t \b | do \s not \b | never \b | (?:not \s (?:that|like|what|so|quite|right))
      | (?:that|this|it) (?:'s|\s is|\s was|\s isn'?t|\s wasn'?t) \s* (?:not|wrong|incorrect|right)
      | (?:i \s (?:said|meant|told \s you|asked (?:\s for)?|wanted|did\s?n'?t)) \b
      | you \s (?:should \s have|should\s?n'?t|forgot|missed|broke|were \s supposed|did\s?n'?t)
      | actually \b | instead \b | please \s (?:don'?t|stop|always|never) | always \b
      | next \s time | from \s now \s on
      | nein \b | falsch | nicht \s so | non \b | pas \s comme | ce \s n'est \s pas | mal \b
      | eso \s no | no \s es
    )"""
)
_HOLDS = re.compile(
    r"(?i)\b(?:not what i (?:asked|wanted|meant)|you (?:should have|forgot to)|that(?:'s| is) wrong"
    r"|instead of what you|use \S+ instead|rather than what)\b"
)


def is_correction(text: str) -> bool:
    """Return whether the text corrects the turn before. A false positive costs one review; a false
    negative loses what the review would have learned."""
    if not text or len(text) > MOST_CHARS:
        return False
    return bool(_BEGINS.search(text) or _HOLDS.search(text))


CHANGES = "skill_manage"
# Tools that do not count as work.
OWN_TOOLS = frozenset(("skills_list", "skill_view", CHANGES, "memory", "todo", "clarify"))

TriggerReason = Literal["task", "session", "correction"]


class ReviewTrigger(Value):
    why: TriggerReason
    calls: int


class TriggerWatch:
    """Follows the events of a session from its start. A limit of 0 is disabled."""

    def __init__(self, *, task_calls: int, session_calls: int) -> None:
        self._task_calls = task_calls
        self._session_calls = session_calls
        self._calls = 0
        self._since = 0
        self._is_answered = False
        self._is_corrected = False
        self._has_saved = False

    def note(self, event: Event) -> ReviewTrigger | None:
        """Return a trigger when the event ends a turn that deserves a review."""
        match event:
            case MessageReceived(message=message):
                if message.origin == "user" and self._is_answered and is_correction(message.text):
                    self._is_corrected = True
            case TurnStarted():
                self._calls, self._has_saved = 0, False
            case ToolFinished(result=result) if result.name == CHANGES and not result.failed:
                self._since, self._has_saved = 0, True
            case ToolFinished(result=result) if result.name not in OWN_TOOLS:
                self._calls += 1
                self._since += 1
            case TurnEnded(reason=reason):
                self._is_answered = reason == "done"
                if self._is_answered and (why := self._why()):
                    self._since, self._is_corrected = 0, False
                    return ReviewTrigger(why=why, calls=self._calls)
            case _:
                pass
        return None

    def _why(self) -> TriggerReason | None:
        if self._is_corrected:
            return "correction"
        # The agent has already saved something itself.
        if self._has_saved:
            return None
        if 0 < self._task_calls <= self._calls:
            return "task"
        return "session" if 0 < self._session_calls <= self._since else None


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
        """Return new runs, or runs that were just corrected."""
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
    """Return why version `now` should be reverted to `before`, or "". Failed calls count only where
    the previous number is known."""
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
