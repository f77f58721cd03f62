"""Plays a recorded session again, offline, and tells whether everything came as it did then."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hermes.core.errors import UsageError
from hermes.core.events import SessionOpened
from hermes.core.ports import Provider
from hermes.core.tools import Tool
from hermes.replay.file import load
from hermes.replay.parts import ProcessPart, first_place, idle_before, parts_of
from hermes.replay.performance import OpenApp, ReplayRun
from hermes.replay.recording import Recording
from hermes.replay.report import Report
from hermes.replay.scratch import copy_folder
from hermes.replay.tools import Mode

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
