"""Notes what a session may have written in sight of strangers, so that later sessions know."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hermes.core.effects import RunCommand
from hermes.core.errors import EffectDenied
from hermes.core.ports import CommandResult, Processes, ProcessInfo, Workspace
from hermes.core.wrapped import RunOptions, SpawnOptions, WrappedProcesses, WrappedWorkspace
from hermes.policy.rules import Rules
from hermes.policy.suspects.suspects import FILE, TICK_NS, Suspects

if TYPE_CHECKING:
    from typing import Unpack

    from hermes.app.build import App
    from hermes.config.load import Config
    from hermes.core.parts import Parts

log = logging.getLogger(__name__)

# How far is looked for what a command has written.
MOST_ENTRIES = 4_000
MOST_NAMES = 200
LONGEST_LOOK = 0.2
PASSED_OVER = frozenset(
    """
    .git node_modules .venv venv env __pycache__ .tox .nox .mypy_cache .ruff_cache .pytest_cache
    site-packages vendor target dist build .gradle .cache
    """.split()
)
# A command leaves something behind in the shell that runs on.
_LEFT = re.compile(r"(?<![&>|])&(?![&>])|\b(?:nohup|setsid|disown|coproc|daemon(?:ize)?)\b")


def suspects_of(config: Config) -> Suspects:
    return Suspects(config.home.root / FILE)


def witness(app: App, session_id: str, parts: Parts) -> None:
    """Put around all that a session has for its files, whoever brought it."""
    # Nothing of a far place can be looked into from here.
    if not parts.workspace.far:
        rules, clean = app.tuned[session_id].rules, app.secrecy.text
        parts.workspace = Witnessed(parts.workspace, Witness(rules, app.commons.suspects, clean))


class Witness:
    """For one session: writes down when something may write files with strangers in view. `clean`
    takes secrets out of words; a name that holds one is not written down."""

    def __init__(self, rules: Rules, suspects: Suspects, clean: Callable[[str], str] = str) -> None:
        self._rules = rules
        self._suspects = suspects
        self._clean = clean
        # Background processes that were told something with strangers in view.
        self._followed: set[str] = set()
        self._staying: list[str] = []

    @property
    def has_strangers(self) -> bool:
        return bool(self._rules.in_sight)

    def named(self, effect: RunCommand) -> tuple[str, ...] | None:
        """What a command writes as far as its text tells; None where it only reads, or no stranger
        is there."""
        if not self.has_strangers:
            return None
        verdict = self._rules.verdict(effect)
        return None if verdict.reads_only else verdict.touched

    @asynccontextmanager
    async def watching(
        self, root: str, names: Iterable[str], *, look: bool = False, stays: bool = False
    ) -> AsyncIterator[None]:
        """On record before it begins. With `look`, files that were written are looked for; what
        `stays` goes on until the session is left."""
        began = time.time_ns()
        period = await self._begin(root, names)
        if stays:
            self._staying.append(period)
        try:
            yield
        finally:
            if not stays:
                await asyncio.shield(asyncio.to_thread(self._end, period, root, began, look))

    async def leave(self) -> None:
        while self._staying:
            await asyncio.to_thread(self._end, self._staying.pop(), "", 0, False)

    async def follow(self, root: str, info: ProcessInfo, names: Iterable[str] = ()) -> None:
        """A process goes on by itself: whatever it writes until its end counts."""
        if info.id not in self._followed and info.status == "running":
            self._followed.add(info.id)
            await self._begin(root, names, owner=info.pid)

    async def _begin(self, root: str, names: Iterable[str], owner: int = 0) -> str:
        by = self._rules.in_sight
        try:
            return await asyncio.to_thread(self._written_down, root, names, by, owner)
        except OSError as error:
            # Unknown to later sessions it would be taken for the person's own.
            raise EffectDenied(
                f"Not allowed: it cannot be written down that this happens with text from "
                f"{', '.join(sorted(by))} in view ({error}). Tell the person."
            ) from error

    def _written_down(self, root: str, names: Iterable[str], by: Iterable[str], owner: int) -> str:
        sources = [self._clean(each) for each in by]
        return self._suspects.begin(root, self._plain(names), sources, owner)

    def _plain(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self._clean(name) == name]

    def _end(self, period: str, root: str, began: int, look: bool) -> None:
        try:
            self._suspects.end(period, self._plain(_written_since(root, began)) if look else ())
        except OSError as error:
            # It lasts until this process ends then, which says too much, not too little.
            log.warning("the end of a period is not on record", extra={"why": str(error)})


class Witnessed(WrappedWorkspace):
    """The same workspace with a witness."""

    def __init__(self, inner: Workspace, witness: Witness) -> None:
        super().__init__(inner)
        self._witness = witness

    @property
    def processes(self) -> Processes:
        return _Processes(self._inner.processes, self.root, self._witness)

    async def write_bytes(self, path: str, data: bytes) -> None:
        if not self._witness.has_strangers:
            await self._inner.write_bytes(path, data)
            return
        async with self._witness.watching(self.root, (path,)):
            await self._inner.write_bytes(path, data)

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        if (names := self._witness.named(effect)) is None:
            return await self._inner.run(effect, **options)
        stays = _LEFT.search(effect.script) is not None
        async with self._witness.watching(self.root, names, look=True, stays=stays):
            return await self._inner.run(effect, **options)

    async def spawn(self, effect: RunCommand, **options: Unpack[SpawnOptions]) -> ProcessInfo:
        if (names := self._witness.named(effect)) is None:
            return await self._inner.spawn(effect, **options)
        async with self._witness.watching(self.root, names):
            info = await self._inner.spawn(effect, **options)
            await self._witness.follow(self.root, info, names)
            return info

    async def close(self) -> None:
        await self._inner.close()
        await self._witness.leave()


class _Processes(WrappedProcesses):
    def __init__(self, inner: Processes, root: str, witness: Witness) -> None:
        super().__init__(inner)
        self._root = root
        self._witness = witness

    async def write(self, process_id: str, data: str) -> ProcessInfo:
        """What a stranger says to a program, the program may write down."""
        if self._witness.has_strangers:
            for info in await self._inner.list():
                if info.id == process_id:
                    await self._witness.follow(self._root, info)
        return await self._inner.write(process_id, data)


def _written_since(root: str, began: int) -> tuple[str, ...]:
    """Files of a project that changed since then, those near its top first."""
    found, folders, left = list[str](), [root], MOST_ENTRIES
    until = time.monotonic() + LONGEST_LOOK
    while folders and left > 0 and len(found) < MOST_NAMES and time.monotonic() < until:
        try:
            with os.scandir(folders.pop(0)) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        folders += () if entry.name in PASSED_OVER else (entry.path,)
                    elif entry.stat(follow_symlinks=False).st_ctime_ns >= began - TICK_NS:
                        found.append(entry.path)
        except OSError:
            continue
    return tuple(found[:MOST_NAMES])
