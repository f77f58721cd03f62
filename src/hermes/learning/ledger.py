"""Which turns were looked back upon, what rehearsals have shown, and how skills do in use;
durable, per home."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import V, Value
from hermes.codec.whole_files import replace_file
from hermes.learning.relapse import Run
from hermes.learning.verdicts import Rehearsal
from hermes.skills.files import sole_writer

REVIEWS = "reviews.jsonl"
RUNS = "runs"
REHEARSALS = "rehearsals"
# One that died twice would die again.
MOST_ATTEMPTS = 2


class Look(Value):
    """A look back at a turn was begun, or is `done`."""

    session: str
    turn: str
    at: float
    done: bool = False


class Ledger:
    """Blocks; callers in an event loop use a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def claim(self, session: str, turn: str, at: float) -> bool:
        """Whether the caller may look back at this turn now. Nobody else may then, until the
        caller is gone without having said that it is done."""
        with sole_writer(self._made()):
            looks = self.looks(session, turn)
            if len(looks) >= MOST_ATTEMPTS or any(look.done for look in looks):
                return False
            self._append(Look(session=session, turn=turn, at=at))
            return True

    def done(self, session: str, turn: str, at: float) -> None:
        with sole_writer(self._made()):
            self._append(Look(session=session, turn=turn, at=at, done=True))

    def looks(self, session: str, turn: str) -> tuple[Look, ...]:
        return tuple(each for each in self._read() if (each.session, each.turn) == (session, turn))

    def unfinished(self, before: float) -> tuple[Look, ...]:
        """Looks that were begun before this moment, never ended, and may be tried once more."""
        by_turn: dict[tuple[str, str], list[Look]] = {}
        for look in self._read():
            by_turn.setdefault((look.session, look.turn), []).append(look)
        return tuple(
            looks[-1]
            for looks in by_turn.values()
            if len(looks) < MOST_ATTEMPTS
            and not any(look.done for look in looks)
            and looks[-1].at < before
        )

    def rehearsal(self, version: str) -> Rehearsal | None:
        """What came of rehearsing this version, if it was."""
        try:
            return decode(Rehearsal, (self._folder / REHEARSALS / f"{version}.json").read_bytes())
        except (OSError, DecodeError):
            return None

    def keep(self, rehearsal: Rehearsal) -> None:
        replace_file(self._folder / REHEARSALS / f"{rehearsal.version}.json", encode(rehearsal))

    def ran(self, run: Run) -> None:
        """Takes the place of what was said of the same turn before."""
        with sole_writer(self._made()):
            (self._folder / RUNS).mkdir(exist_ok=True, mode=0o700)
            self._append(run, f"{RUNS}/{run.skill}.jsonl")

    def runs(self, skill: str) -> tuple[Run, ...]:
        """The turns that used it, oldest first."""
        found = {(run.session, run.turn): run for run in self._rows(Run, f"{RUNS}/{skill}.jsonl")}
        return tuple(found.values())

    def _made(self) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self._folder

    def _read(self) -> list[Look]:
        return self._rows(Look, REVIEWS)

    def _rows(self, kind: type[V], name: str) -> list[V]:
        try:
            rows = (self._folder / name).read_bytes().split(b"\n")
        except OSError:
            return []
        found = []
        for row in rows:
            try:
                found.append(decode(kind, row))
            except DecodeError:
                continue
        return found

    def _append(self, look: Value, name: str = REVIEWS) -> None:
        """A line that a crash has cut is closed, and is no line."""
        descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            end = file.seek(0, os.SEEK_END)
            torn = end > 0 and os.pread(file.fileno(), 1, end - 1) != b"\n"
            file.write(b"\n" * torn + encode(look) + b"\n")
            file.flush()
            os.fsync(file.fileno())
