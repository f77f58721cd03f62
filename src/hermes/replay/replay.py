"""Replays a recording, one process after another, and reports the outcome."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from hermes.codec.json import encode
from hermes.codec.values import replace
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.core.errors import UsageError
from hermes.core.events import SessionOpened
from hermes.core.ports import Provider
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.tools import Tool
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.journal.rows import read_rows
from hermes.net.http import current_interceptor
from hermes.providers.recorded.player import TapePlayer
from hermes.replay.collection import facts_in, known_in
from hermes.replay.driver import Driver
from hermes.replay.environment import ReplayEnvironment, ReplayPlan, config_of
from hermes.replay.expected_events import Divergence, ExpectedEvents, Report
from hermes.replay.recorded_tools import Mode, RecordedResults
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
        *,
        tools: Mapping[str, Tool],
        system: str | None,
        mode: Mode,
        requests_may_differ: bool,
        continue_with: Provider | None,
        env: Mapping[str, str],
        copy: Path | None,
    ) -> None:
        lines = recording.lines if system is None else _with_system(recording, system)
        self.expected = ExpectedEvents(lines, continue_after=continue_with is not None)
        self._recording = recording
        self._home = home
        self._open_app = open_app
        self._requests_may_differ = requests_may_differ
        self._requests = 0
        self._differing: Divergence | None = None
        self._plan = ReplayPlan(
            self.expected,
            RecordedResults(self.expected.events, recording.saved_results),
            mode=mode,
            tools=tools,
            continue_with=continue_with,
            env=env,
            copy=copy,
        )

    @property
    def results(self) -> RecordedResults:
        """The tool results used after a divergence."""
        return self._plan.results

    async def begin(self, position: int) -> None:
        """Creates the journal with all records before this position."""
        self._home.mkdir(mode=0o700)
        async with SqliteJournal(Home(self._home).journal, World()) as journal:
            lines = self.expected.lines[:position]
            await seed(journal, self._recording.session_id, lines, self._recording.shared)

    async def play(self, part: ProcessPart) -> bool:
        """Replays one process in a task of its own, whose requests all go to the tape. Returns
        whether any reply was taken from the records because there was no tape."""
        return await asyncio.create_task(self._play_process(part))

    async def report(self, restarts: tuple[int, ...], words: tuple[str, ...]) -> Report:
        expected, diverged = self.expected, self.expected.divergence
        report = Report(
            session_id=self._recording.session_id,
            records=len(expected.lines),
            played=len(expected.lines) if diverged is None else expected.diverged_at,
            requests=self._requests,
            restarts=restarts,
            words=words,
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
        sync = SyncPoints(self.expected, part.start, requests_may_differ=self._requests_may_differ)
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
            known=known_in(part.tape.ways) if part.tape is not None else (),
            cwd=facts.cwd or shell_before(lines),
        )
        app = self._open_app(config, environment)
        try:
            await driver.drive(await app.open(self._session_request(facts.attended)))
        finally:
            await driver.stop()
            await app.close()
        self._requests += sync.requests
        self._differing = self._differing or sync.first_difference
        return environment.without_tape

    def _session_request(self, attended: bool) -> SessionRequest:
        opened = self.expected.events[self._recording.shared]
        assert isinstance(opened, SessionOpened)
        return SessionRequest(
            source=opened.source, attended=attended, resume=self._recording.session_id
        )

    async def _hashes(self, journal: SqliteJournal) -> Literal["same", "differ", "unknown"]:
        own = self.expected.lines[self._recording.shared :]
        if not all(line.hash for line in own):
            return "unknown"
        found = await journal.reading(lambda db: _chain(db, self._recording.session_id))
        return "same" if found == [line.hash for line in own] else "differ"


def _chain(db: sqlite3.Connection, session_id: str) -> list[str]:
    query = "SELECT session FROM sessions WHERE id = ?"
    session = db.execute(query, (session_id,)).fetchone()[0]
    return [row.hash.hex() for row in read_rows(db, session).whole]


def _with_system(recording: Recording, system: str) -> tuple[RecordedLine, ...]:
    """Returns the lines with another system prompt in the opening event."""
    position = recording.shared
    opened = recording.lines[position].event
    assert isinstance(opened, SessionOpened)
    body = msgspec.Raw(encode(replace(opened, system=system)))
    changed = replace(recording.lines[position], body=body, hash="")
    return (*recording.lines[:position], changed, *recording.lines[position + 1 :])


NO_TAPE = "No tape for {}: replies were taken from the records, requests were not compared."
GUESSED = "Another process probably continued after record {}; no tape confirms this."
MASKED = "{} secret value(s) were masked, so hashes were not compared."


class ReplayOverrides:
    """Differences from the recording: `tools` by name, the `system` prompt, live tools (`mode`).
    A changed prompt changes every request; `requests_may_differ` uses the recorded answers anyway.
    `continue_with` continues the session after a divergence."""

    def __init__(
        self,
        *,
        tools: Mapping[str, Tool] | None = None,
        system: str | None = None,
        mode: Mode = "recorded",
        requests_may_differ: bool = False,
        continue_with: Provider | None = None,
    ) -> None:
        self.tools = tools or {}
        self.system = system
        self.mode: Mode = mode
        self.requests_may_differ = requests_may_differ
        self.continue_with = continue_with


async def replay(
    session: Path | Recording,
    overrides: ReplayOverrides | None = None,
    *,
    open_app: OpenApp,
    env: Mapping[str, str] | None = None,
) -> Report:
    """Raises UsageError when the recording cannot be replayed. `env` is the environment of live
    tools, which work in a copy of the session's folder."""
    recording = await asyncio.to_thread(load, session) if isinstance(session, Path) else session
    changes = overrides or ReplayOverrides()
    with tempfile.TemporaryDirectory(prefix="hermes-replay-") as folder:
        run = _Replay(recording, changes, open_app, env or {}, Path(folder))
        return await run.report()


class _Replay:
    def __init__(
        self,
        recording: Recording,
        overrides: ReplayOverrides,
        open_app: OpenApp,
        env: Mapping[str, str],
        folder: Path,
    ) -> None:
        self._open_app = open_app
        self._recording = recording
        self._overrides = overrides
        self._env = env
        self._folder = folder
        self._attempts = 0
        self._restarts: list[int] = []
        self._words: list[str] = []

    async def report(self) -> Report:
        first = first_position(self._recording)
        parts = parts_of(self._recording, first)
        run = await self._begin(first)
        for number, part in enumerate(parts):
            if number:
                self._restarts.append(part.start)
            run = await self._play(run, part)
            if run.expected.divergence is not None:
                break
        if self._recording.masked:
            self._words.append(MASKED.format(self._recording.masked))
        return await run.report(tuple(self._restarts), tuple(self._words))

    async def _play(self, run: ReplayRun, part: ProcessPart) -> ReplayRun:
        """Replays one part. Without a tape, process starts are unknown: if the session diverges,
        the rest is tried as another process."""
        if await run.play(part):
            self._words.append(NO_TAPE.format(_record_range(part)))
        start = part.start
        while part.tape is None and run.expected.divergence is not None:
            reached = run.expected.diverged_at
            for position in (reached, idle_before(run.expected.events, reached)):
                if not start < position < part.end:
                    continue
                other = await self._begin(position)
                await other.play(ProcessPart(start=position, end=part.end, tape=None))
                if other.expected.divergence is None or other.expected.diverged_at > reached:
                    start = position
                    break
            else:
                break
            self._restarts.append(start)
            self._words.append(GUESSED.format(start))
            run = other
        return run

    async def _begin(self, position: int) -> ReplayRun:
        """Prepares a new home with all records before this position."""
        self._attempts += 1
        home = self._folder / f"home-{self._attempts}"
        run = ReplayRun(
            self._recording,
            home,
            self._open_app,
            tools=self._overrides.tools,
            system=self._overrides.system,
            mode=self._overrides.mode,
            requests_may_differ=self._overrides.requests_may_differ,
            continue_with=self._overrides.continue_with,
            env=self._env,
            copy=await self._copy() if self._overrides.mode == "live" else None,
        )
        await run.begin(position)
        return run

    async def _copy(self) -> Path:
        opened = self._recording.lines[self._recording.shared].event
        if not isinstance(opened, SessionOpened):
            raise UsageError("The start of the session is not recorded.")
        copy = self._folder / f"copy-{self._attempts}"
        await asyncio.to_thread(copy_folder, Path(opened.cwd), copy)
        return copy.resolve()


def _record_range(part: ProcessPart) -> str:
    return f"records {part.start + 1} to {part.end}"
