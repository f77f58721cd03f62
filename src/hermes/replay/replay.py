"""Replays a recording, one process after another, and reports the outcome."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from hermes.codec.json import encode
from hermes.codec.values import replace
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.core.events import SessionOpened
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.journal.reading import read_rows
from hermes.net.http import current_interceptor
from hermes.providers.recorded.player import TapePlayer
from hermes.replay.collection import facts_in, known_in
from hermes.replay.driver import Driver
from hermes.replay.environment import (
    ReplayEnvironment,
    ReplayOverrides,
    ReplayPlan,
    config_of,
)
from hermes.replay.expected_events import Divergence, ExpectedEvents, Report
from hermes.replay.recorded_tools import RecordedResults
from hermes.replay.recorded_workspace import copy_folder
from hermes.replay.recording import (
    ProcessPart,
    RecordedLine,
    Recording,
    first_position,
    idle_before,
    load,
    parts_of,
    shell_before,
)
from hermes.replay.replay_journal import seed
from hermes.replay.sync_points import SyncPoints


class ReplayApp(Protocol):
    """An app that runs in a replay environment."""

    async def open(self, request: SessionRequest) -> Session: ...
    async def close(self) -> None: ...


OpenApp = Callable[[Config, ReplayEnvironment], ReplayApp]


class ReplayRun:
    """One replay attempt. `home` is its private folder; `open_app` creates the app of a process."""

    def __init__(
        self,
        recording: Recording,
        home: Path,
        open_app: OpenApp,
        overrides: ReplayOverrides,
        *,
        env: Mapping[str, str],
        copy: Path | None,
    ) -> None:
        system, continue_with = overrides.system, overrides.continue_with
        lines = recording.lines if system is None else _with_system(recording, system)
        self.expected = ExpectedEvents(lines, continue_after=continue_with is not None)
        self._recording = recording
        self._home = home
        self._open_app = open_app
        self._requests = 0
        self._differing: Divergence | None = None
        self._plan = ReplayPlan(
            self.expected,
            RecordedResults(self.expected.events, recording.saved_results),
            overrides,
            env=env,
            copy=copy,
        )

    @property
    def results(self) -> RecordedResults:
        """The tool results used after a divergence."""
        return self._plan.results

    async def begin(self, position: int) -> None:
        """Create the journal with all records before this position."""
        self._home.mkdir(mode=0o700)
        async with SqliteJournal(Home(self._home).journal, World()) as journal:
            lines = self.expected.lines[:position]
            await seed(journal, self._recording.session_id, lines, self._recording.shared)

    async def play(self, part: ProcessPart) -> bool:
        """Replay one process in a task of its own, whose requests all go to the tape. Return
        whether any reply was taken from the records because there was no tape."""
        return await asyncio.create_task(self._play_process(part))

    async def report(self, restarts: tuple[int, ...], notices: tuple[str, ...]) -> Report:
        expected, diverged = self.expected, self.expected.divergence
        report = Report(
            session_id=self._recording.session_id,
            records=len(expected.lines),
            played=len(expected.lines) if diverged is None else expected.diverged_at,
            requests=self._requests,
            restarts=restarts,
            words=notices,
            divergence=diverged,
            request=self._differing,
        )
        async with SqliteJournal(Home(self._home).journal, World()) as journal:
            if diverged is None:
                return replace(report, hashes=await self._hashes(journal))
            if not expected.is_free:
                return report
            records = await journal.read(self._recording.session_id, after=diverged.n - 1)
            return replace(report, after=records)

    async def _play_process(self, part: ProcessPart) -> bool:
        facts = facts_in(part.tape.run if part.tape is not None else self._recording.now)
        lines = self.expected.lines[self._recording.shared : part.start]
        may_differ = self._plan.overrides.requests_may_differ
        sync = SyncPoints(self.expected, part.start, requests_may_differ=may_differ)
        current_interceptor.set(TapePlayer((), sync))
        player = TapePlayer(part.tape.exchanges, sync) if part.tape is not None else None
        self.expected.has_more_requests = lambda: player is not None and player.upcoming is not None
        driver = sync.driver = Driver(self.expected, part.start, part.end)
        config = config_of(facts, self._home)
        environment = ReplayEnvironment(
            config,
            facts,
            self._plan,
            driver,
            sync,
            start=part.start,
            player=player,
            known=known_in(part.tape.models) if part.tape is not None else (),
            cwd=facts.cwd or shell_before(lines),
        )
        app = self._open_app(config, environment)
        try:
            opened = self.expected.events[self._recording.shared]
            assert isinstance(opened, SessionOpened)
            request = SessionRequest(
                source=opened.source, attended=facts.attended, resume=self._recording.session_id
            )
            await driver.drive(await app.open(request))
        finally:
            await driver.stop()
            await app.close()
        self._requests += sync.requests
        self._differing = self._differing or sync.first_difference
        return environment.without_tape

    async def _hashes(self, journal: SqliteJournal) -> Literal["same", "differ", "unknown"]:
        own = self.expected.lines[self._recording.shared :]
        if not all(line.hash for line in own):
            return "unknown"

        def chain(db: sqlite3.Connection) -> list[str]:
            query = "SELECT session FROM sessions WHERE id = ?"
            session = db.execute(query, (self._recording.session_id,)).fetchone()[0]
            return [row.hash.hex() for row in read_rows(db, session).whole]

        found = await journal.reading(chain)
        return "same" if found == [line.hash for line in own] else "differ"


def _with_system(recording: Recording, system: str) -> tuple[RecordedLine, ...]:
    """Return the lines with another system prompt in the opening event."""
    position = recording.shared
    opened = recording.lines[position].event
    assert isinstance(opened, SessionOpened)
    body = msgspec.Raw(encode(replace(opened, system=system)))
    changed = replace(recording.lines[position], body=body, hash="")
    return (*recording.lines[:position], changed, *recording.lines[position + 1 :])


NO_TAPE = "No tape for {}: replies were taken from the records, requests were not compared."
GUESSED = "Another process probably continued after record {}; no tape confirms this."
MASKED = "{} secret value(s) were masked, so hashes were not compared."


async def replay(
    session: Path | Recording,
    overrides: ReplayOverrides | None = None,
    *,
    open_app: OpenApp,
    env: Mapping[str, str] | None = None,
) -> Report:
    """Replay a recording and report the first difference. Raises UsageError when the recording
    cannot be replayed. `env` is the environment of live tools, which work in a copy of the
    session's folder."""
    recording = await asyncio.to_thread(load, session) if isinstance(session, Path) else session
    changes = overrides or ReplayOverrides()
    first = first_position(recording)
    opened = recording.lines[recording.shared].event
    assert isinstance(opened, SessionOpened)
    attempts = count(1)
    restarts: list[int] = []
    notices: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hermes-replay-") as folder:

        async def begin(position: int) -> ReplayRun:
            """Prepare a new home with all records before this position."""
            number, copy = next(attempts), None
            if changes.mode == "live":
                target = Path(folder, f"copy-{number}")
                copy = await asyncio.to_thread(copy_folder, Path(opened.cwd), target)
            home = Path(folder, f"home-{number}")
            run = ReplayRun(recording, home, open_app, changes, env=env or {}, copy=copy)
            await run.begin(position)
            return run

        run = await begin(first)
        for number, part in enumerate(parts_of(recording, first)):
            if number:
                restarts.append(part.start)
            if await run.play(part):
                notices.append(NO_TAPE.format(f"records {part.start + 1} to {part.end}"))
            start = part.start
            while part.tape is None and run.expected.divergence is not None:
                # Without a tape, process starts are unknown: the rest is tried as another process.
                found = await _play_from_later(run, begin, start, part.end)
                if found is None:
                    break
                start, run = found
                restarts.append(start)
                notices.append(GUESSED.format(start))
            if run.expected.divergence is not None:
                break
        if recording.masked:
            notices.append(MASKED.format(recording.masked))
        return await run.report(tuple(restarts), tuple(notices))


async def _play_from_later(
    run: ReplayRun, begin: Callable[[int], Awaitable[ReplayRun]], start: int, end: int
) -> tuple[int, ReplayRun] | None:
    """Replay the rest from where the session diverged, or from the last idle position before.
    Return the first attempt that gets further."""
    reached = run.expected.diverged_at
    for position in (reached, idle_before(run.expected.events, reached)):
        if start < position < end:
            other = await begin(position)
            await other.play(ProcessPart(start=position, end=end, tape=None))
            if other.expected.divergence is None or other.expected.diverged_at > reached:
                return position, other
    return None
