"""Tries a changed skill on past sessions: same task and tool results, changed skill text."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Mapping
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
from hermes.journal.usage_tally import sessions_with_skill
from hermes.learning.ledger import LearningLedger
from hermes.learning.rehearsal import (
    Introduction,
    RehearsalTrial,
    Revision,
    SkillRehearsal,
    outcome_of,
)
from hermes.learning.session_watch import is_correction
from hermes.models.model_ref import IN_PROCESS
from hermes.replay.collection import collect_recording
from hermes.replay.environment import ReplayOverrides
from hermes.replay.recorded_answers import OutsideProvider
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
    from collections.abc import Callable

    from hermes.config.home import Home
    from hermes.config.run_context import RunContext
    from hermes.journal.journal import SqliteJournal
    from hermes.memory.service import MemoryService
    from hermes.models.models import Models
    from hermes.replay.replay import OpenApp
    from hermes.skills.library import SkillLibrary

CAUSE = "rehearsal"
SECONDS = 300.0
NO_MODEL = "its model is not available now"
NOT_LOADED = "the skill was not loaded in it"
FOLDER = "learning"


class LearningDeps(NamedTuple):
    """What learning needs from the app."""

    run: RunContext
    journal: SqliteJournal
    models: Models
    memory: MemoryService
    # Returns the library of a project.
    skills: Callable[[str], SkillLibrary]
    # Creates the app of a rehearsal.
    open_app: OpenApp


class _TargetTurn(NamedTuple):
    """A turn that loaded the skill."""

    # The rewritten lines.
    lines: tuple[RecordedLine, ...]
    start: int
    end: int
    # Position of the first changed line.
    changed_at: int
    turn_id: str


def ledger_of(home: Home) -> LearningLedger:
    return LearningLedger(home.root / FOLDER)


class Rehearsals:
    """Replays past sessions with a proposed skill version. Books model costs on `meter` with the
    cause "rehearsal"."""

    def __init__(self, deps: LearningDeps, library: SkillLibrary, meter: Meter) -> None:
        self._deps = deps
        self._library = library
        self._meter = meter
        self._ledger = ledger_of(deps.run.home)

    async def rehearse(self, version: Version, *, most: int, session: str = "") -> SkillRehearsal:
        """Rehearse in the sessions that used the skill last, or in `session`; a new skill in the
        session that led to it. Stores the result."""
        old, new = await asyncio.to_thread(self._trees, version)
        names = (session,) if session else await self.sessions(version.name, most)
        if not names and not old and most and version.cause.session:
            names = (version.cause.session,)
        trials: dict[str, RehearsalTrial] = {}
        recordings: dict[str, Recording] = {}
        for name in names:
            try:
                recording = await collect_recording(self._deps.run, self._deps.journal, name)
                recordings[name] = recording
            except HermesError as error:
                trials[name] = RehearsalTrial(session=name, problem=str(error))
        for name, each in recordings.items():
            revision = _find_introduction(each, version, new) or Revision(version.name, old, new)
            try:
                async with asyncio.timeout(SECONDS):
                    trials[name] = await self._play(each, recordings.values(), revision)
            except TimeoutError:
                why = f"it took longer than {SECONDS:g} s"
                trials[name] = RehearsalTrial(session=name, problem=why)
            except HermesError as error:
                trials[name] = RehearsalTrial(session=name, problem=str(error))
        done = SkillRehearsal(
            skill=version.name,
            version=version.id,
            at=self._deps.run.world.clock.now(),
            trials=tuple(trials[name] for name in names),
        )
        await asyncio.to_thread(self._ledger.store_rehearsal, done)
        return done

    async def sessions(self, skill: str, most: int) -> tuple[str, ...]:
        """Return the sessions that used the skill, newest first."""
        usage = self._library.usages.of(skill)
        if not most or not usage.view_count + usage.use_count:
            return ()
        return await self._deps.journal.reading(lambda db: sessions_with_skill(db, skill, most))

    def _trees(self, version: Version) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
        store = self._library.store
        base = next((one for one in store.history(version.name) if one.hash == version.base), None)
        return (store.tree(base) if base else {}), store.tree(version)

    async def _play(
        self, recording: Recording, others: Iterable[Recording], revision: Revision
    ) -> RehearsalTrial:
        target = _find_target(recording, revision)
        continuation = OutsideProvider(self._model(target))
        revised = replace(recording, lines=target.lines, tapes=())
        with tempfile.TemporaryDirectory(prefix="hermes-rehearsal-") as folder:
            run = ReplayRun(
                revised,
                Path(folder) / "home",
                self._deps.open_app,
                ReplayOverrides(requests_may_differ=True, continue_with=continuation),
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
        return self._deps.models.link(ref, self._meter, cause=CAUSE).connect()


def _find_introduction(
    recording: Recording, version: Version, new: Mapping[str, bytes]
) -> Introduction | None:
    """Return the introduction of a new skill into the task that led to it; None for another
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
    """Return the first turn that loaded the skill. Raises UsageError when no turn did."""
    first = first_position(recording)
    events = [line.event for line in recording.lines]
    revised = [revision.rewrite(event) for event in events]
    lines = [
        line if now is event else replace(line, body=msgspec.Raw(encode(now)), hash="")
        for line, event, now in zip(recording.lines, events, revised, strict=True)
    ]
    loads = (i for i in range(first, len(lines)) if revision.loads(events[i]))
    position = next(loads, None)
    if position is None:
        raise UsageError(NOT_LOADED)
    start = max(first, idle_before(events, position))
    ends = (i for i in range(position, len(events)) if isinstance(events[i], TurnEnded))
    end = next(ends, None)
    if end is None:
        raise UsageError("the turn that loaded it has not ended; rehearse it later")
    is_listed = any(lines[i] is not recording.lines[i] for i in range(first))
    return _TargetTurn(
        lines=tuple(lines),
        start=start,
        end=end + 1,
        # A changed skill index affects the whole turn.
        changed_at=start if is_listed else position,
        turn_id=recording.lines[end].turn_id,
    )


def _compare(
    recording: Recording, target: _TargetTurn, n: int, after: tuple[Record, ...]
) -> RehearsalTrial:
    turn = [line for line in recording.lines if line.turn_id == target.turn_id]
    recorded = [line.event for line in turn]
    same = [line.event for line in turn if line.n < n]
    now = [record.event for record in after]
    later = (line.event for line in recording.lines[target.end :])
    received = (event.message for event in later if isinstance(event, MessageReceived))
    next_message = next((message.text for message in received if message.origin == "user"), "")
    return RehearsalTrial(
        session=recording.session_id,
        turn=target.turn_id,
        n=n,
        before=outcome_of(recorded, corrected=is_correction(next_message)),
        after=outcome_of((*same, *now), unknown=UNKNOWN_CALL),
    )


def _cwd(recording: Recording) -> str:
    opened = recording.lines[recording.shared].event
    return opened.cwd if isinstance(opened, SessionOpened) else ""
