"""Judges a changed skill by replayed sessions."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.learning.outcomes import TurnOutcome, find_regressions

Judgement = Literal["better", "same", "worse", "unclear"]
Verdict = Literal["promote", "refuse", "keep", "unrehearsed"]


class RehearsalTrial(Value, omit_defaults=False):
    """One replayed session. `n` is the record at which it diverged; `problem` says why it could
    not be replayed."""

    session: str
    turn: str = ""
    n: int = 0
    before: TurnOutcome = TurnOutcome()
    after: TurnOutcome = TurnOutcome()
    problem: str = ""

    @property
    def worse(self) -> tuple[str, ...]:
        return () if self.problem else find_regressions(self.before, self.after)

    @property
    def judgement(self) -> Judgement:
        if self.worse:
            return "worse"
        # Doing nothing does not prove success.
        is_idle = self.before.calls > 0 and not self.after.calls
        if self.problem or self.after.unknown or is_idle:
            return "unclear"
        gains = (
            self.after.calls < self.before.calls,
            self.after.failures < self.before.failures,
            self.before.end != "done" and self.after.end == "done",
        )
        return "better" if any(gains) else "same"

    def __str__(self) -> str:
        if self.problem:
            return f"{self.session}: {self.problem}"
        why = f" ({'; '.join(self.worse)})" if self.worse else ""
        return f"{self.session}: {self.judgement}{why}. Then: {self.before}. Now: {self.after}."


class SkillRehearsal(Value, omit_defaults=False):
    """All trials of one skill version."""

    skill: str
    version: str
    at: float = 0.0
    trials: tuple[RehearsalTrial, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """One worse session means refuse; one unclear session means keep waiting."""
        judged = {trial.judgement for trial in self.trials if not trial.problem}
        if not judged:
            return "unrehearsed"
        if "worse" in judged:
            return "refuse"
        return "keep" if "unclear" in judged else "promote"

    @property
    def words(self) -> str:
        """Summarises the result in one sentence."""
        harmful = next((trial for trial in self.trials if trial.judgement == "worse"), None)
        if harmful is not None:
            return (
                f"worse in session {harmful.session} from record {harmful.n} on: "
                f"{'; '.join(harmful.worse)}"
            )
        played = [trial for trial in self.trials if not trial.problem]
        if not played:
            return "unrehearsed"
        calls = sum(trial.before.calls for trial in played), sum(t.after.calls for t in played)
        names = ", ".join(trial.session for trial in played)
        return f"rehearsed in {names}: {calls[0]} calls before, {calls[1]} now"
