"""Stores reviewed turns, rehearsal results and runs of skills, per home."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.atomic_files import append_line, replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.learning.rehearsal import SkillRehearsal
from hermes.learning.session_watch import SkillRun
from hermes.skills.files import lock_skills
from hermes.skills.history import read_lines

REVIEWS = "reviews.jsonl"
RUNS = "runs"
REHEARSALS = "rehearsals"
# A review that crashed twice would crash again.
MOST_ATTEMPTS = 2


class TurnReview(Value):
    """A review of a turn, started or `done`."""

    session: str
    turn: str
    at: float
    done: bool = False


class LearningLedger:
    """The record of reviews, rehearsals and skill runs. Methods block; call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def claim(self, session: str, turn: str, at: float) -> bool:
        """Claim the review of a turn. A claim whose owner crashed can be taken once more."""
        with lock_skills(self._folder):
            reviews = self.reviews().get((session, turn), [])
            if not _may_retry(reviews):
                return False
            review = TurnReview(session=session, turn=turn, at=at)
            append_line(self._folder / REVIEWS, encode(review))
            return True

    def mark_done(self, session: str, turn: str, at: float) -> None:
        with lock_skills(self._folder):
            review = TurnReview(session=session, turn=turn, at=at, done=True)
            append_line(self._folder / REVIEWS, encode(review))

    def unfinished_reviews(self, before: float) -> tuple[TurnReview, ...]:
        """Return reviews started before this time that never ended and may be retried."""
        by_turn = self.reviews().values()
        return tuple(some[-1] for some in by_turn if _may_retry(some) and some[-1].at < before)

    def reviews(self) -> dict[tuple[str, str], list[TurnReview]]:
        by_turn: dict[tuple[str, str], list[TurnReview]] = {}
        for review in read_lines(TurnReview, self._folder / REVIEWS):
            by_turn.setdefault((review.session, review.turn), []).append(review)
        return by_turn

    def rehearsal(self, version: str) -> SkillRehearsal | None:
        """Return the rehearsal of a version, if there is one."""
        file = self._folder / REHEARSALS / f"{version}.json"
        try:
            return decode(SkillRehearsal, file.read_bytes())
        except (OSError, DecodeError):
            return None

    def store_rehearsal(self, rehearsal: SkillRehearsal) -> None:
        replace_file(self._folder / REHEARSALS / f"{rehearsal.version}.json", encode(rehearsal))

    def record_run(self, run: SkillRun) -> None:
        """Record a run; a later record of the same turn replaces it."""
        with lock_skills(self._folder):
            append_line(self._folder / RUNS / f"{run.skill}.jsonl", encode(run))

    def runs(self, skill: str) -> tuple[SkillRun, ...]:
        """Return the turns that used the skill, oldest first."""
        runs = read_lines(SkillRun, self._folder / RUNS / f"{skill}.jsonl")
        return tuple({(run.session, run.turn): run for run in runs}.values())


def _may_retry(reviews: list[TurnReview]) -> bool:
    return len(reviews) < MOST_ATTEMPTS and not any(review.done for review in reviews)
