"""One journal that is played into, process after process, and what is to be said of it after."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from hermes.codec.json import encode
from hermes.codec.values import replace
from hermes.config.home import Home
from hermes.config.load import Config
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
from hermes.replay.conductor import Driver
from hermes.replay.environment import ReplayEnvironment, ReplayPlan, config_of
from hermes.replay.facts import facts_in, known_in
from hermes.replay.gates import SyncPoints
from hermes.replay.journal import seed
from hermes.replay.parts import ProcessPart, shell_before
from hermes.replay.recording import RecordedLine, Recording
from hermes.replay.report import Divergence, Report
from hermes.replay.score import ExpectedEvents
from hermes.replay.tools import Mode, RecordedResults


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
