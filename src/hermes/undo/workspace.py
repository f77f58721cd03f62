"""A workspace whose changes can be undone: stores contents before a change and issues a receipt
after it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from hermes.codec.values import replace
from hermes.core.delegating import DelegatingWorkspace, RunOptions, SpawnOptions
from hermes.core.effects import DeletePath, Effect, FetchUrl, RunCommand, SignalProcess, WritePath
from hermes.core.errors import HermesError
from hermes.core.ports import CommandResult, ProcessInfo, Workspace

if TYPE_CHECKING:
    from typing import Unpack

    from hermes.undo.attribution import ChangeReceipt, OpenCall
    from hermes.undo.calls import CallKind
    from hermes.undo.recorder import UndoRecorder
    from hermes.undo.script_effects import ScriptEffects

log = logging.getLogger(__name__)

T = TypeVar("T")
WORDS = 120
SENTENCES = 8
SHORT = 1_000


class UndoableWorkspace(DelegatingWorkspace):
    """`protect` creates the protection with the first change, because many sessions make none.
    `touched` returns what a command does to files; by default its text is read. `heard` receives
    every receipt, `warn` a message when a call cannot be covered; `clean` redacts the description
    of a call."""

    def __init__(
        self,
        inner: Workspace,
        protect: Callable[[], UndoRecorder],
        *,
        home: str = "",
        touched: Callable[[RunCommand], ScriptEffects] | None = None,
        heard: Callable[[ChangeReceipt], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
        clean: Callable[[str], str] = str,
    ) -> None:
        super().__init__(inner)
        self._protect = protect
        self._made: UndoRecorder | None = None
        self._touched = touched or (lambda effect: _read_intent(effect, home))
        self._heard = heard
        self._warn = warn
        self._clean = clean
        self._one = asyncio.Lock()

    def insert_layer(self, layer: Callable[[Workspace], Workspace]) -> None:
        """Insert a layer below, so that its changes can be undone too."""
        self._inner = layer(self._inner)

    @property
    def _protection(self) -> UndoRecorder:
        if self._made is None:
            self._made = self._protect()
        return self._made

    async def write_bytes(self, path: str, data: bytes) -> None:
        window = await self._begin_path("write", path)
        try:
            await self._inner.write_bytes(path, data)
        finally:
            await self._end(window, lambda ended: self._protection.end_path(ended))

    async def delete(self, path: str) -> None:
        window = await self._begin_path("delete", path)
        try:
            await self._inner.delete(path)
        finally:
            await self._end(window, lambda ended: self._protection.end_path(ended))

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        intent = await self._intent(effect)
        window = None if intent.reads_only else await self._begin(effect, intent, "command")
        try:
            return await self._inner.run(effect, **options)
        finally:
            await self._end(window, lambda ended: self._protection.end_command(ended))

    async def spawn(self, effect: RunCommand, **options: Unpack[SpawnOptions]) -> ProcessInfo:
        intent = await self._intent(effect)
        window = None if intent.reads_only else await self._begin(effect, intent, "background")
        try:
            info = await self._inner.spawn(effect, **options)
        except BaseException:
            await self._end(window, lambda ended: self._protection.end_command(ended))
            raise
        if window is not None:
            started = window
            await self._run_guarded(lambda: self._protection.mark_background(started, info.id))
        return info

    async def settle(self) -> None:
        """Record what background processes have done so far; for the end of a turn."""
        if self._made is not None and self._made.background:
            running = await self._running()
            await self._run_guarded(lambda: self._protection.sync(running))

    async def close(self) -> None:
        await self.settle()
        await self._inner.close()
        if self._made is not None:
            await self._run_guarded(self._made.close)

    async def preflight(self, effect: Effect) -> tuple[str, ...]:
        """Return what of this effect could not be undone, one sentence each."""
        match effect:
            case RunCommand():
                intent = await self._intent(effect)
                if intent.reads_only:
                    return ()
                gaps = await self._run_guarded(
                    lambda: self._protection.find_gaps(intent, effect.cwd)
                )
                return _shorten((*intent.sends, *(gaps or {}).values()))
            case FetchUrl(sends_body=True):
                return (f"It sends data to {effect.url}; that cannot be undone.",)
            case SignalProcess(action="kill"):
                return ("A killed process cannot be restored.",)
            case WritePath() | DeletePath():
                return ()
            case _:
                return ()

    async def _intent(self, effect: RunCommand) -> ScriptEffects:
        """Reading a short script is faster than waking a thread."""
        if len(effect.script) <= SHORT:
            return self._read(effect)
        return await asyncio.to_thread(self._read, effect)

    def _read(self, effect: RunCommand) -> ScriptEffects:
        intent = self._touched(effect)
        if not intent.complete:
            return intent
        from hermes.undo.script_effects import (
            has_redefined_names,  # needed with the first command only
        )

        misled = has_redefined_names(
            effect.script, self._inner.shell, cwd=effect.cwd, root=self.root
        )
        return replace(intent, complete=False) if misled else intent

    async def _begin_path(self, kind: CallKind, path: str) -> OpenCall | None:
        words = self._clean(f"{kind} {path.removeprefix(self.root + '/')}")
        return await self._run_guarded(lambda: self._protection.begin_path(kind, words, path))

    async def _begin(
        self, effect: RunCommand, intent: ScriptEffects, kind: CallKind
    ) -> OpenCall | None:
        await self.settle()
        # Redact before cutting: half a secret would not be recognized.
        words = " ".join(self._clean(effect.script).split())[:WORDS]
        return await self._run_guarded(
            lambda: self._protection.begin_command(kind, words, effect.cwd, intent)
        )

    async def _end(self, window: OpenCall | None, end: Callable[[OpenCall], ChangeReceipt]) -> None:
        """Also after a cancellation: what the call did until then counts."""
        if window is None:
            return
        receipt = await asyncio.shield(self._run_guarded(lambda: end(window)))
        if receipt is not None and (receipt.changes or receipt.notes):
            self._heard(receipt)

    async def _run_guarded(self, work: Callable[[], T]) -> T | None:
        """One at a time, in a thread. A broken store stops no work, but is reported."""
        async with self._one:
            try:
                return await asyncio.to_thread(work)
            except (HermesError, OSError) as error:
                log.warning("not covered by undo", extra={"why": str(error)})
                self._warn(f"This change cannot be undone: {error}")
                return None

    async def _running(self) -> frozenset[str]:
        found = await self._inner.processes.list()
        return frozenset(each.id for each in found if each.status == "running")


def _read_intent(effect: RunCommand, home: str) -> ScriptEffects:
    from hermes.undo.script_effects import read_script_effects  # needed with the first command only

    return read_script_effects(effect, home)


def _shorten(sentences: tuple[str, ...]) -> tuple[str, ...]:
    if len(sentences) <= SENTENCES:
        return sentences
    return (*sentences[:SENTENCES], f"And {len(sentences) - SENTENCES} more.")
