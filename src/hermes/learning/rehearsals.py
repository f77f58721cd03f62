"""Tries a changed skill on past sessions: same task and tool results, changed skill text."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from hermes.codec.json import encode
from hermes.codec.values import replace
from hermes.core.errors import HermesError, UsageError
from hermes.core.events import (
    MessageReceived,
    ModelSwitched,
    Record,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from hermes.core.ports import Meter, Provider
from hermes.learning.ledger import LearningLedger
from hermes.learning.rehearsal import (
    Introduction,
    RehearsalTrial,
    Revision,
    SkillRehearsal,
    outcome_of,
)
from hermes.learning.triggers import is_correction
from hermes.models.model_ref import IN_PROCESS
from hermes.replay.collection import collect_recording
from hermes.replay.recorded_provider import OutsideProvider
from hermes.replay.recorded_tools import UNKNOWN_CALL
from hermes.replay.recording import (
    ProcessPart,
    RecordedLine,
    Recording,
    first_position,
    idle_before,
)
from hermes.replay.replay import ReplayRun
from hermes.skills.history import Version

if TYPE_CHECKING:
    from hermes.config.home import Home
    from hermes.learning.deps import LearningDeps
    from hermes.skills.library import SkillLibrary

CAUSE = "rehearsal"
SECONDS = 300.0
NO_MODEL = "its model is not available now"
NOT_LOADED = "the skill was not loaded in it"
FOLDER = "learning"
_USED = (
    "SELECT DISTINCT sessions.id FROM events JOIN sessions ON sessions.session = events.session"
    " WHERE (kind = 'tool_finished' AND instr(body, 'skill_view') > 0 AND instr(body, ?) > 0)"
    " OR (kind = 'message_received' AND instr(body, ?) > 0)"
    # Session ids do not sort by age: clients may choose them, and one second may have several.
    " ORDER BY sessions.session DESC"
)


class _TargetTurn(NamedTuple):
    """A turn that loaded the skill: the rewritten lines, its bounds, and the position of the first
    changed line."""

    lines: tuple[RecordedLine, ...]
    start: int
    end: int
    changed_at: int
    turn_id: str


def ledger_of(home: Home) -> LearningLedger:
    return LearningLedger(home.root / FOLDER)


class Rehearsals:
    """Books model costs on `meter` with the cause "rehearsal"."""

    def __init__(self, deps: LearningDeps, library: SkillLibrary, meter: Meter) -> None:
        self._deps = deps
        self._library = library
        self._meter = meter
        self._ledger = ledger_of(deps.run.home)

    async def rehearse(self, version: Version, *, most: int, session: str = "") -> SkillRehearsal:
        """Rehearses in the sessions that used the skill last, or in `session`; a new skill in the
        session that led to it. Stores the result."""
        old, new = await asyncio.to_thread(self._trees, version)
        names = (session,) if session else await self.sessions(version.name, most)
        if not names and not old and most and version.cause.session:
            names = (version.cause.session,)
        found = [await self._collect(name) for name in names]
        recordings = [each for each in found if isinstance(each, Recording)]
        trials: list[RehearsalTrial] = []
        for each in found:
            if isinstance(each, Recording):
                revision = _find_introduction(each, version, new) or Revision(
                    version.name, old, new
                )
                trials.append(await self._trial(each, recordings, revision))
            else:
                trials.append(each)
        done = SkillRehearsal(
            skill=version.name,
            version=version.id,
            at=self._deps.run.world.clock.now(),
            trials=tuple(trials),
        )
        await asyncio.to_thread(self._ledger.store_rehearsal, done)
        return done

    async def sessions(self, skill: str, most: int) -> tuple[str, ...]:
        """Returns the sessions that used the skill, newest first."""
        words = (f'"{skill}"', f"# Skill {skill}\\n\\n")

        def query(db: sqlite3.Connection) -> list[str]:
            return [row[0] for row in db.execute(_USED, words)]

        usage = self._library.usages.of(skill)
        if not most or not usage.view_count + usage.use_count:
            return ()
        return tuple(await self._deps.journal.reading(query))[:most]

    def _trees(self, version: Version) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
        store = self._library.store
        base = next((one for one in store.history(version.name) if one.hash == version.base), None)
        return (store.tree(base) if base else {}), store.tree(version)

    async def _collect(self, session_id: str) -> Recording | RehearsalTrial:
        try:
            return await collect_recording(self._deps.run, self._deps.journal, session_id)
        except HermesError as error:
            return RehearsalTrial(session=session_id, problem=str(error))

    async def _trial(
        self, recording: Recording, others: list[Recording], revision: Revision
    ) -> RehearsalTrial:
        session_id = recording.session_id
        try:
            async with asyncio.timeout(SECONDS):
                return await self._play(recording, others, revision)
        except TimeoutError:
            return RehearsalTrial(session=session_id, problem=f"it took longer than {SECONDS:g} s")
        except HermesError as error:
            return RehearsalTrial(session=session_id, problem=str(error))

    async def _play(
        self, recording: Recording, others: list[Recording], revision: Revision
    ) -> RehearsalTrial:
        target = _find_target(recording, revision)
        continuation = OutsideProvider(self._model(target))
        revised = replace(recording, lines=target.lines, tapes=())
        with tempfile.TemporaryDirectory(prefix="hermes-rehearsal-") as folder:
            run = ReplayRun(
                revised,
                Path(folder) / "home",
                self._deps.open_app,
                tools={},
                system=None,
                mode="recorded",
                requests_may_differ=True,
                continue_with=continuation,
                env={},
                copy=None,
            )
            run.expected.diverge_after = target.changed_at
            for other in others:
                # For unrecorded calls, the best guess is the same call in the same folder.
                if other is not recording and _cwd(other) == _cwd(recording):
                    run.results.add([line.event for line in other.lines])
            await run.begin(target.start)
            await run.play(ProcessPart(start=target.start, end=target.end, tape=None))
            report = await run.report((), ())
        if report.divergence is None:
            raise UsageError(NOT_LOADED)
        return _compare(recording, target, report.divergence.n, report.after)

    def _model(self, target: _TargetTurn) -> Provider:
        model = provider = ""
        for line in target.lines[: target.start + 1]:
            event = line.event
            if isinstance(event, SessionOpened | ModelSwitched):
                model, provider = event.model, event.provider
        if provider in IN_PROCESS:
            raise UsageError(NO_MODEL)
        ref = self._deps.models.ref(model, provider)
        return self._deps.models.link(ref, self._meter, cause=CAUSE).variants.patient


def _find_introduction(
    recording: Recording, version: Version, new: Mapping[str, bytes]
) -> Introduction | None:
    """Returns the introduction of a new skill into the task that led to it; None for another
    session."""
    turn, _, call = version.cause.call.partition(" ")
    if version.action != "create" or version.cause.session != recording.session_id or not call:
        return None
    lines = recording.lines
    began = (line.event for line in lines if line.turn_id == turn)
    takes = next((event.takes for event in began if isinstance(event, TurnStarted)), ())
    message = next((line.event for line in lines if line.n in takes), None)
    return (
        Introduction(version.name, new, message) if isinstance(message, MessageReceived) else None
    )


def _find_target(recording: Recording, revision: Revision) -> _TargetTurn:
    """Returns the first turn that loaded the skill; raises UsageError when no turn did."""
    first = first_position(recording)
    lines = [_revise(line, revision) for line in recording.lines]
    events = [line.event for line in recording.lines]
    loads = (i for i in range(first, len(lines)) if revision.loads(events[i]))
    position = next(loads, None)
    if position is None:
        raise UsageError(NOT_LOADED)
    start = max(first, idle_before(events, position))
    ends = (i for i in range(position, len(events)) if isinstance(events[i], TurnEnded))
    end = next(ends, None)
    if end is None:
        raise UsageError("its turn has not ended")
    is_listed = any(lines[i] is not recording.lines[i] for i in range(first))
    return _TargetTurn(
        lines=tuple(lines),
        start=start,
        end=end + 1,
        # A changed skill index affects the whole turn.
        changed_at=start if is_listed else position,
        turn_id=recording.lines[end].turn_id,
    )


def _revise(line: RecordedLine, revision: Revision) -> RecordedLine:
    event = line.event
    now = revision.rewrite(event)
    return line if now is event else replace(line, body=msgspec.Raw(encode(now)), hash="")


def _compare(
    recording: Recording, target: _TargetTurn, n: int, after: tuple[Record, ...]
) -> RehearsalTrial:
    turn = [line for line in recording.lines if line.turn_id == target.turn_id]
    recorded = [line.event for line in turn]
    same = [line.event for line in turn if line.n < n]
    now = [record.event for record in after]
    return RehearsalTrial(
        session=recording.session_id,
        turn=target.turn_id,
        n=n,
        before=outcome_of(recorded, corrected=_is_corrected(recording, target.end)),
        after=outcome_of((*same, *now), unknown=UNKNOWN_CALL),
    )


def _cwd(recording: Recording) -> str:
    opened = recording.lines[recording.shared].event
    return opened.cwd if isinstance(opened, SessionOpened) else ""


def _is_corrected(recording: Recording, end: int) -> bool:
    """Returns whether the user's next message was a correction."""
    for line in recording.lines[end:]:
        event = line.event
        if isinstance(event, MessageReceived) and event.message.origin == "user":
            return is_correction(event.message.text)
    return False
