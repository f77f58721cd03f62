"""Notes what a session may have written in sight of strangers, so that later sessions know."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from hermes.core.effects import RunCommand
from hermes.core.errors import EffectDenied
from hermes.core.ports import ProcessInfo
from hermes.policy.rules import Rules
from hermes.policy.suspects.suspects import TICK_NS, Suspects

log = logging.getLogger(__name__)
T = TypeVar("T")

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


class TaintTracker:
    """Of one session: what is to be noted when something may write files with strangers in view.
    `clean` takes secrets out of words; a name that holds one is not written down."""

    def __init__(self, rules: Rules, clean: Callable[[str], str] = str) -> None:
        self._rules = rules
        self._clean = clean

    @property
    def has_untrusted_text(self) -> bool:
        return bool(self._rules.in_sight)

    def written_paths(self, effect: RunCommand) -> tuple[str, ...] | None:
        """What a command writes as far as its text tells; None where it only reads, or no stranger
        is there."""
        if not self.has_untrusted_text:
            return None
        verdict = self._rules.verdict(effect)
        return None if verdict.reads_only else verdict.touched

    def track_command(
        self, root: str, names: Iterable[str], *, look: bool = False, stays: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """On record before it begins. With `look`, files that were written are looked for; what
        `stays` goes on until the session is left."""
        raise NotImplementedError

    async def track_process(self, root: str, info: ProcessInfo, names: Iterable[str] = ()) -> None:
        """A process goes on by itself: whatever it writes until its end counts."""
        raise NotImplementedError

    def track_write(self, root: str, path: str, data: bytes) -> AbstractAsyncContextManager[None]:
        """A file is written as a whole."""
        return self.track_command(root, (path,))

    async def clear(self, paths: Iterable[str]) -> None:
        """No stranger has a part in what these hold now."""

    async def on_process_poll(self, root: str, info: ProcessInfo) -> None:
        """A process was looked at, which may have ended."""

    async def finish(self, root: str) -> None:
        """The session ends; its workspace is still there."""

    async def close(self) -> None:
        """Nothing of the session goes on any more."""

    async def _record(self, note: Callable[[frozenset[str]], T]) -> T:
        by = self._rules.in_sight
        try:
            return await asyncio.to_thread(note, by)
        except OSError as error:
            # Unknown to later sessions it would be taken for the person's own.
            raise EffectDenied(
                f"Not allowed: it cannot be written down that this happens with text from "
                f"{', '.join(sorted(by))} in view ({error}). Tell the person."
            ) from error

    def _plain(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self._clean(name) == name]


class LocalTaintTracker(TaintTracker):
    """For files of this machine, of which times and contents tell later who may have had them
    written."""

    def __init__(self, rules: Rules, suspects: Suspects, clean: Callable[[str], str] = str) -> None:
        super().__init__(rules, clean)
        self._suspects = suspects
        # Background processes that were told something with strangers in view.
        self._followed: set[str] = set()
        self._staying: list[str] = []

    @asynccontextmanager
    async def track_command(
        self, root: str, names: Iterable[str], *, look: bool = False, stays: bool = False
    ) -> AsyncIterator[None]:
        began = time.time_ns()
        period = await self._begin(root, names)
        if stays:
            self._staying.append(period)
        try:
            yield
        finally:
            if not stays:
                await asyncio.shield(asyncio.to_thread(self._end, period, root, began, look))

    async def close(self) -> None:
        while self._staying:
            await asyncio.to_thread(self._end, self._staying.pop(), "", 0, False)

    async def track_process(self, root: str, info: ProcessInfo, names: Iterable[str] = ()) -> None:
        if info.id not in self._followed and info.status == "running":
            self._followed.add(info.id)
            await self._begin(root, names, owner=info.pid)

    async def _begin(self, root: str, names: Iterable[str], owner: int = 0) -> str:
        def begin(by: Iterable[str]) -> str:
            sources = [self._clean(each) for each in by]
            return self._suspects.begin(root, self._plain(names), sources, owner)

        return await self._record(begin)

    def _end(self, period: str, root: str, began: int, look: bool) -> None:
        try:
            self._suspects.end(period, self._plain(_changed_since(root, began)) if look else ())
        except OSError as error:
            # It lasts until this process ends then, which says too much, not too little.
            log.warning("the end of a period is not on record", extra={"why": str(error)})


def _changed_since(root: str, began: int) -> tuple[str, ...]:
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
