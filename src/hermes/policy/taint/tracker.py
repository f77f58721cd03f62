"""Records which files a session may have written under the influence of untrusted text."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TypeVar

from hermes.core.effects import RunCommand
from hermes.core.errors import EffectDenied
from hermes.core.ports import ProcessInfo
from hermes.policy.patterns import word_set
from hermes.policy.rules import SessionPolicy
from hermes.policy.taint.registry import TICK_NS, TaintRegistry

log = logging.getLogger(__name__)
T = TypeVar("T")

# Limits of the search for files written by a command.
MAX_ENTRIES = 4_000
MAX_NAMES = 200
SEARCH_SECONDS = 0.2


class TaintTracker:
    """Records which files one session may have written under the influence of untrusted text.
    `clean` redacts secrets; a path that contains one is not recorded."""

    def __init__(self, rules: SessionPolicy, clean: Callable[[str], str] = str) -> None:
        self._rules = rules
        self._clean = clean

    @property
    def has_untrusted_text(self) -> bool:
        return bool(self._rules.untrusted_sources)

    def written_paths(self, effect: RunCommand) -> tuple[str, ...] | None:
        """Return the paths that a command writes according to its text; None if it only reads or no
        untrusted text is in context."""
        if not self.has_untrusted_text:
            return None
        verdict = self._rules.verdict(effect)
        return None if verdict.reads_only else verdict.touched

    def track_command(
        self, root: str, names: Iterable[str], *, look: bool = False, stays: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """Record a command before it starts. With `look`, search for changed files; with `stays`,
        track until the session closes."""
        raise NotImplementedError

    def track_if_tainted(self, root: str, effect: RunCommand) -> AbstractAsyncContextManager[None]:
        """Record a command if untrusted text comes into view while it runs: a script can get such
        text from a tool that it calls, and write it."""
        return nullcontext()

    async def track_process(self, root: str, info: ProcessInfo, names: Iterable[str] = ()) -> None:
        """Record that a background process started; everything it writes until it exits counts."""
        raise NotImplementedError

    def track_write(self, root: str, path: str, data: bytes) -> AbstractAsyncContextManager[None]:
        """Record that a file is written as a whole."""
        return self.track_command(root, (path,))

    async def clear(self, paths: Iterable[str]) -> None:
        """Record that the content of these files is no longer tainted."""

    async def on_process_poll(self, root: str, info: ProcessInfo) -> None:
        """Note that a process was polled and may have exited."""

    async def finish(self, root: str) -> None:
        """Finish tracking at the end of the session, while its workspace is still open."""

    async def close(self) -> None:
        """End tracking when the workspace is closed."""

    async def _record(self, note: Callable[[frozenset[str]], T]) -> T:
        by = self._rules.untrusted_sources
        try:
            return await asyncio.to_thread(note, by)
        except OSError as error:
            # Without the record, later sessions would trust the file.
            raise EffectDenied(
                f"Not allowed: cannot record that this happens with text from "
                f"{', '.join(sorted(by))} in context ({error}). Tell the user."
            ) from error

    def _without_secrets(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self._clean(name) == name]


class LocalTaintTracker(TaintTracker):
    """Tracks local files: times and contents show later whether untrusted text may have influenced
    them."""

    def __init__(
        self, rules: SessionPolicy, taint: TaintRegistry, clean: Callable[[str], str] = str
    ) -> None:
        super().__init__(rules, clean)
        self._registry = taint
        # Background processes that received input while untrusted text was in context.
        self._followed: set[str] = set()
        self._open_periods: list[str] = []

    @asynccontextmanager
    async def track_command(
        self, root: str, names: Iterable[str], *, look: bool = False, stays: bool = False
    ) -> AsyncIterator[None]:
        started = time.time_ns()
        period = await self._begin(root, names)
        if stays:
            self._open_periods.append(period)
        try:
            yield
        finally:
            if not stays:
                await asyncio.shield(asyncio.to_thread(self._end, period, root, started, look))

    @asynccontextmanager
    async def track_if_tainted(self, root: str, effect: RunCommand) -> AsyncIterator[None]:
        periods: list[str] = []

        def begin() -> None:
            # Before the text reaches the command.
            if not periods and not (verdict := self._rules.verdict(effect)).reads_only:
                names = self._without_secrets(verdict.touched)
                sources = [self._clean(each) for each in self._rules.untrusted_sources]
                periods.append(self._registry.begin(root, names, sources))

        started = time.time_ns()
        self._rules.on_untrusted.append(begin)
        try:
            yield
        finally:
            self._rules.on_untrusted.remove(begin)
            for period in periods:
                await asyncio.shield(asyncio.to_thread(self._end, period, root, started, True))

    async def close(self) -> None:
        while self._open_periods:
            await asyncio.to_thread(self._end, self._open_periods.pop(), "", 0, False)

    async def track_process(self, root: str, info: ProcessInfo, names: Iterable[str] = ()) -> None:
        if info.id not in self._followed and info.status == "running":
            self._followed.add(info.id)
            await self._begin(root, names, owner=info.pid)

    async def _begin(self, root: str, names: Iterable[str], owner: int = 0) -> str:
        def begin(by: Iterable[str]) -> str:
            sources = [self._clean(each) for each in by]
            return self._registry.begin(root, self._without_secrets(names), sources, owner)

        return await self._record(begin)

    def _end(self, period: str, root: str, started: int, look: bool) -> None:
        try:
            self._registry.end(
                period, self._without_secrets(_changed_since(root, started)) if look else ()
            )
        except OSError as error:
            # The period then lasts until this process exits: too long, but safe.
            log.warning("cannot record the end of a taint period", extra={"why": str(error)})


def _changed_since(root: str, started: int) -> tuple[str, ...]:
    """Return the files changed since then, those near the root first."""
    found, folders, left = list[str](), [root], MAX_ENTRIES
    until = time.monotonic() + SEARCH_SECONDS
    while folders and left > 0 and len(found) < MAX_NAMES and time.monotonic() < until:
        try:
            with os.scandir(folders.pop(0)) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in word_set("unsearched_folders"):
                            folders.append(entry.path)
                    elif entry.stat(follow_symlinks=False).st_ctime_ns >= started - TICK_NS:
                        found.append(entry.path)
        except OSError:
            continue
    return tuple(found[:MAX_NAMES])
