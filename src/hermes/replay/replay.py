"""Replays a recording, process after process, and reports the outcome."""

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
    first_place,
    idle_before,
    load,
    parts_of,
    shell_before,
)
from hermes.replay.replay_journal import seed
from hermes.replay.sync_points import SyncPoints


class ReplayApp(Protocol):
    """An app that runs in a replay environment."""

    async def open(self, opening: SessionRequest) -> Session: ...
    async def close(self) -> None: ...


OpenApp = Callable[[Config, ReplayEnvironment], ReplayApp]


class ReplayRun:
    """`home` is a folder that nobody else uses. `open_app` makes the app that plays."""

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
        then: Provider | None,
        env: Mapping[str, str],
        copy: Path | None,
    ) -> None:
        lines = recording.lines if system is None else _with_system(recording, system)
        self.score = ExpectedEvents(lines, goes_on=then is not None)
        self._recording = recording
        self._home = home
        self._open_app = open_app
        self._requests_may_differ = requests_may_differ
        self._requests = 0
        self._differing: Divergence | None = None
        self._play = ReplayPlan(
            self.score,
            RecordedResults(self.score.events, recording.kept),
            mode=mode,
            tools=tools,
            then=then,
            env=env,
            copy=copy,
        )

    @property
    def results(self) -> RecordedResults:
        """What tools give behind a divergence."""
        return self._play.results

    async def begin(self, place: int) -> None:
        """Everything before this place is as it was."""
        self._home.mkdir(mode=0o700)
        async with SqliteJournal(Home(self._home).journal, World()) as journal:
            lines = self.score.lines[:place]
            await seed(journal, self._recording.session_id, lines, self._recording.shared)

    async def play(self, part: ProcessPart) -> bool:
        """In a task of its own, out of which no request gets past the tape. Whether any reply was
        taken from the records for want of one."""
        return await asyncio.create_task(self._play_process(part))

    async def report(self, restarts: tuple[int, ...], words: tuple[str, ...]) -> Report:
        score, diverged = self.score, self.score.divergence
        report = Report(
            session_id=self._recording.session_id,
            records=len(score.lines),
            played=len(score.lines) if diverged is None else score.diverged_at,
            requests=self._requests,
            restarts=restarts,
            words=words,
            divergence=diverged,
            request=self._differing,
        )
        async with SqliteJournal(Home(self._home).journal, World()) as journal:
            if diverged is None:
                return replace(report, hashes=await self._hashes(journal))
            if not score.is_free:
                return report
            records = await journal.read(self._recording.session_id, after=diverged.n - 1)
            return replace(report, after=records)

    async def _play_process(self, part: ProcessPart) -> bool:
        facts = facts_in(part.tape.run if part.tape is not None else self._recording.now)
        lines = self.score.lines[self._recording.shared : part.start]
        gates = SyncPoints(self.score, part.start, requests_may_differ=self._requests_may_differ)
        current_interceptor.set(TapePlayer((), gates))
        player = TapePlayer(part.tape.exchanges, gates) if part.tape is not None else None
        self.score.asks_on = lambda: player is not None and player.upcoming is not None
        conductor = gates.conductor = Driver(self.score, part.start, part.end)
        config = config_of(facts, self._home)
        environment = ReplayEnvironment(
            config,
            facts,
            self._play,
            conductor,
            gates,
            start=part.start,
            player=player,
            known=known_in(part.tape.ways) if part.tape is not None else (),
            cwd=facts.cwd or shell_before(lines),
        )
        app = self._open_app(config, environment)
        try:
            await conductor.drive(await app.open(self._opening(facts.attended)))
        finally:
            await conductor.stop()
            await app.close()
        self._requests += gates.requests
        self._differing = self._differing or gates.differing
        return environment.without_tape

    def _opening(self, attended: bool) -> SessionRequest:
        opened = self.score.events[self._recording.shared]
        assert isinstance(opened, SessionOpened)
        return SessionRequest(
            source=opened.source, attended=attended, resume=self._recording.session_id
        )

    async def _hashes(self, journal: SqliteJournal) -> Literal["same", "differ", "unknown"]:
        own = self.score.lines[self._recording.shared :]
        if not all(line.hash for line in own):
            return "unknown"
        found = await journal.reading(lambda db: _chain(db, self._recording.session_id))
        return "same" if found == [line.hash for line in own] else "differ"


def _chain(db: sqlite3.Connection, session_id: str) -> list[str]:
    query = "SELECT session FROM sessions WHERE id = ?"
    session = db.execute(query, (session_id,)).fetchone()[0]
    return [row.hash.hex() for row in read_rows(db, session).whole]


def _with_system(recording: Recording, system: str) -> tuple[RecordedLine, ...]:
    """The same session, had it been opened with another system text."""
    place = recording.shared
    opened = recording.lines[place].event
    assert isinstance(opened, SessionOpened)
    body = msgspec.Raw(encode(replace(opened, system=system)))
    changed = replace(recording.lines[place], body=body, hash="")
    return (*recording.lines[:place], changed, *recording.lines[place + 1 :])


NO_TAPE = "Nothing was taped for {}: replies were taken from the records, requests not compared."
GUESSED = "After record {} another process must have gone on; that is a guess."
MASKED = "{} secret value(s) were masked, so hashes are not compared."


class ReplayOverrides:
    """What is to be different from then: `tools` by name, the `system` text, whether tools run
    `live`. A changed prompt makes every request another one; `requests_may_differ` plays on with
    the recorded answers all the same. `then` goes on behind a divergence."""

    def __init__(
        self,
        *,
        tools: Mapping[str, Tool] | None = None,
        system: str | None = None,
        mode: Mode = "recorded",
        requests_may_differ: bool = False,
        then: Provider | None = None,
    ) -> None:
        self.tools = tools or {}
        self.system = system
        self.mode: Mode = mode
        self.requests_may_differ = requests_may_differ
        self.then = then


async def replay(
    session: Path | Recording,
    overrides: ReplayOverrides | None = None,
    *,
    open_app: OpenApp,
    env: Mapping[str, str] | None = None,
) -> Report:
    """UsageError when the recording cannot be played. `env` is what live tools start from; the
    session's own folder is copied for them and never touched."""
    recording = await asyncio.to_thread(load, session) if isinstance(session, Path) else session
    wanted = overrides or ReplayOverrides()
    with tempfile.TemporaryDirectory(prefix="hermes-replay-") as folder:
        run = _Replay(recording, wanted, open_app, env or {}, Path(folder))
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
        first = first_place(self._recording)
        parts = parts_of(self._recording, first)
        performance = await self._begin(first)
        for number, part in enumerate(parts):
            if number:
                self._restarts.append(part.start)
            performance = await self._play(performance, part)
            if performance.score.divergence is not None:
                break
        if self._recording.masked:
            self._words.append(MASKED.format(self._recording.masked))
        return await performance.report(tuple(self._restarts), tuple(self._words))

    async def _play(self, performance: ReplayRun, part: ProcessPart) -> ReplayRun:
        """Where there is no tape, nobody knows when another process came: if the session leaves
        its record, that may be why."""
        if await performance.play(part):
            self._words.append(NO_TAPE.format(_places(part)))
        start = part.start
        while part.tape is None and performance.score.divergence is not None:
            reached = performance.score.diverged_at
            for place in (reached, idle_before(performance.score.events, reached)):
                if not start < place < part.end:
                    continue
                other = await self._begin(place)
                await other.play(ProcessPart(start=place, end=part.end, tape=None))
                if other.score.divergence is None or other.score.diverged_at > reached:
                    start = place
                    break
            else:
                break
            self._restarts.append(start)
            self._words.append(GUESSED.format(start))
            performance = other
        return performance

    async def _begin(self, place: int) -> ReplayRun:
        """A home of its own with everything up to this place."""
        self._attempts += 1
        home = self._folder / f"home-{self._attempts}"
        performance = ReplayRun(
            self._recording,
            home,
            self._open_app,
            tools=self._overrides.tools,
            system=self._overrides.system,
            mode=self._overrides.mode,
            requests_may_differ=self._overrides.requests_may_differ,
            then=self._overrides.then,
            env=self._env,
            copy=await self._copy() if self._overrides.mode == "live" else None,
        )
        await performance.begin(place)
        return performance

    async def _copy(self) -> Path:
        opened = self._recording.lines[self._recording.shared].event
        if not isinstance(opened, SessionOpened):
            raise UsageError("The beginning of the session is not recorded.")
        copy = self._folder / f"copy-{self._attempts}"
        await asyncio.to_thread(copy_folder, Path(opened.cwd), copy)
        return copy.resolve()


def _places(part: ProcessPart) -> str:
    return f"records {part.start + 1} to {part.end}"
