"""Stores reviewed turns, rehearsal results and runs of skills, per home."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import V, Value
from hermes.learning.regression import SkillRun
from hermes.learning.rehearsal import SkillRehearsal
from hermes.skills.files import lock_skills

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
    """Methods block; call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def claim(self, session: str, turn: str, at: float) -> bool:
        """Claims the review of a turn. A claim whose owner crashed can be taken once more."""
        with lock_skills(self._ensure_folder()):
            reviews = self.reviews().get((session, turn), [])
            if not _may_retry(reviews):
                return False
            self._append(TurnReview(session=session, turn=turn, at=at))
            return True

    def mark_done(self, session: str, turn: str, at: float) -> None:
        with lock_skills(self._ensure_folder()):
            self._append(TurnReview(session=session, turn=turn, at=at, done=True))

    def unfinished_reviews(self, before: float) -> tuple[TurnReview, ...]:
        """Returns reviews started before this time that never ended and may be retried."""
        by_turn = self.reviews().values()
        return tuple(some[-1] for some in by_turn if _may_retry(some) and some[-1].at < before)

    def reviews(self) -> dict[tuple[str, str], list[TurnReview]]:
        by_turn: dict[tuple[str, str], list[TurnReview]] = {}
        for review in self._rows(TurnReview, REVIEWS):
            by_turn.setdefault((review.session, review.turn), []).append(review)
        return by_turn

    def rehearsal(self, version: str) -> SkillRehearsal | None:
        """Returns the rehearsal of a version, if there is one."""
        file = self._folder / REHEARSALS / f"{version}.json"
        try:
            return decode(SkillRehearsal, file.read_bytes())
        except (OSError, DecodeError):
            return None

    def store_rehearsal(self, rehearsal: SkillRehearsal) -> None:
        replace_file(self._folder / REHEARSALS / f"{rehearsal.version}.json", encode(rehearsal))

    def record_run(self, run: SkillRun) -> None:
        """Records a run; a later record of the same turn replaces it."""
        with lock_skills(self._ensure_folder()):
            (self._folder / RUNS).mkdir(exist_ok=True, mode=0o700)
            self._append(run, f"{RUNS}/{run.skill}.jsonl")

    def runs(self, skill: str) -> tuple[SkillRun, ...]:
        """Returns the turns that used the skill, oldest first."""
        runs = self._rows(SkillRun, f"{RUNS}/{skill}.jsonl")
        return tuple({(run.session, run.turn): run for run in runs}.values())

    def _ensure_folder(self) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self._folder

    def _rows(self, kind: type[V], name: str) -> list[V]:
        try:
            rows = (self._folder / name).read_bytes().split(b"\n")
        except OSError:
            return []
        found = []
        for row in rows:
            with suppress(DecodeError):
                found.append(decode(kind, row))
        return found

    def _append(self, review: Value, name: str = REVIEWS) -> None:
        """Appends durably. A line truncated by a crash is terminated and ignored."""
        descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            end = file.seek(0, os.SEEK_END)
            is_truncated = end > 0 and os.pread(file.fileno(), 1, end - 1) != b"\n"
            file.write(b"\n" * is_truncated + encode(review) + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _may_retry(reviews: list[TurnReview]) -> bool:
    return len(reviews) < MOST_ATTEMPTS and not any(review.done for review in reviews)
