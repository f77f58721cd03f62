"""A workspace whose changes can be undone, and the undo service of an application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from hermes.codec.values import replace
from hermes.core.delegating import DelegatingWorkspace, RunOptions, SpawnOptions
from hermes.core.effects import Effect, FetchUrl, RunCommand, SignalProcess
from hermes.core.errors import HermesError
from hermes.core.ports import CommandResult, ProcessInfo, Workspace

if TYPE_CHECKING:
    from typing import Unpack

    from hermes.config.run_context import RunContext
    from hermes.undo.attribution import OpenCall
    from hermes.undo.calls import CallKind
    from hermes.undo.change_recorder import ChangeRecorder
    from hermes.undo.history import CheckpointHistory
    from hermes.undo.scanner import UndoLimits
    from hermes.undo.script_effects import ScriptEffects

log = logging.getLogger(__name__)

T = TypeVar("T")
WORDS = 120
SENTENCES = 8
SHORT = 1_000


class UndoableWorkspace(DelegatingWorkspace):
    """A workspace whose file changes can be undone. `make_recorder` is called with the first
    change, because many sessions make none. `touched` returns what a command does to files; by
    default its text is read. `warn` receives a message when a call cannot be covered; `clean`
    redacts the description of a call."""

    def __init__(
        self,
        inner: Workspace,
        make_recorder: Callable[[], ChangeRecorder],
        *,
        touched: Callable[[RunCommand], ScriptEffects] | None = None,
        warn: Callable[[str], None] = lambda _: None,
        clean: Callable[[str], str] = str,
    ) -> None:
        super().__init__(inner)
        self._make_recorder = make_recorder
        self._touched = touched
        self._warn = warn
        self._clean = clean
        self._one = asyncio.Lock()
        # Paths that the user knows are not covered.
        self._reported: set[str] = set()

    def insert_layer(self, layer: Callable[[Workspace], Workspace]) -> None:
        """Insert a layer below, so that its changes can be undone too."""
        self._inner = layer(self._inner)

    @cached_property
    def _recorder(self) -> ChangeRecorder:
        return self._make_recorder()

    @property
    def _used_recorder(self) -> ChangeRecorder | None:
        return self.__dict__.get("_recorder")

    async def write_bytes(self, path: str, data: bytes) -> None:
        await self._change_path("write", path, lambda: self._inner.write_bytes(path, data))

    async def delete(self, path: str) -> None:
        await self._change_path("delete", path, lambda: self._inner.delete(path))

    async def _change_path(
        self, kind: CallKind, path: str, work: Callable[[], Awaitable[None]]
    ) -> None:
        description = self._clean(f"{kind} {path.removeprefix(self.root + '/')}")
        open_call = await self._run_guarded(
            lambda: self._recorder.begin_path(kind, description, path)
        )
        try:
            await work()
        finally:
            await self._end(open_call)

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        intent = await self._intent(effect)
        open_call = None if intent.reads_only else await self._begin(effect, intent, "command")
        try:
            return await self._inner.run(effect, **options)
        finally:
            await self._end(open_call)

    async def spawn(self, effect: RunCommand, **options: Unpack[SpawnOptions]) -> ProcessInfo:
        intent = await self._intent(effect)
        open_call = None if intent.reads_only else await self._begin(effect, intent, "background")
        try:
            info = await self._inner.spawn(effect, **options)
        except BaseException:
            await self._end(open_call)
            raise
        if open_call is not None:
            started = open_call
            await self._run_guarded(lambda: self._recorder.mark_background(started, info.id))
        return info

    async def settle(self) -> None:
        """Record what background processes have done so far; for the end of a turn."""
        recorder = self._used_recorder
        if recorder is not None and recorder.background:
            found = await self._inner.processes.list()
            running = frozenset(each.id for each in found if each.status == "running")
            await self._run_guarded(lambda: recorder.sync(running))

    async def close(self) -> None:
        await self.settle()
        await self._inner.close()
        if (recorder := self._used_recorder) is not None:
            await self._run_guarded(recorder.close)

    async def preflight(self, effect: Effect) -> tuple[str, ...]:
        """Return the parts of this effect that could not be undone, one sentence each."""
        match effect:
            case RunCommand():
                intent = await self._intent(effect)
                if intent.reads_only:
                    return ()
                gaps = await self._run_guarded(lambda: self._recorder.find_gaps(intent, effect.cwd))
                sentences = (*intent.sends, *(gaps or {}).values())
                more = len(sentences) - SENTENCES
                return sentences if more <= 0 else (*sentences[:SENTENCES], f"And {more} more.")
            case FetchUrl(sends_body=True):
                return (f"It sends data to {effect.url}; that cannot be undone.",)
            case SignalProcess(action="kill"):
                return ("A killed process cannot be restored.",)
            case _:
                return ()

    async def _intent(self, effect: RunCommand) -> ScriptEffects:
        """Return what a script does to files. Reading a short script is faster than waking a
        thread."""
        if len(effect.script) <= SHORT:
            return self._read(effect)
        return await asyncio.to_thread(self._read, effect)

    def _read(self, effect: RunCommand) -> ScriptEffects:
        # Needed with the first command only.
        from hermes.undo.script_effects import has_redefined_names, read_script_effects

        intent = self._touched(effect) if self._touched else read_script_effects(effect)
        if not intent.complete:
            return intent
        misled = has_redefined_names(
            effect.script, self._inner.shell, cwd=effect.cwd, root=self.root
        )
        return replace(intent, complete=False) if misled else intent

    async def _begin(
        self, effect: RunCommand, intent: ScriptEffects, kind: CallKind
    ) -> OpenCall | None:
        await self.settle()
        # Redact before cutting: half a secret would not be recognized.
        description = " ".join(self._clean(effect.script).split())[:WORDS]
        open_call = await self._run_guarded(
            lambda: self._recorder.begin_command(kind, description, effect.cwd, intent)
        )
        if open_call is not None and open_call.gaps:
            self._report_gaps(open_call)
        return open_call

    def _report_gaps(self, open_call: OpenCall) -> None:
        """Name the files that the call may change and that could not be stored, each once in a
        session. Folders that can be recreated are not named."""
        gaps = open_call.gaps
        files = (path for path in gaps if path == self.root or is_file(open_call, path))
        fresh = [
            path
            for path in files
            if path not in self._reported and open_call.intent.may_change(path)
        ]
        self._reported.update(fresh)
        if fresh:
            more = f" And {len(fresh) - SENTENCES} more." if len(fresh) > SENTENCES else ""
            named = " ".join(gaps[path] for path in fresh[:SENTENCES])
            self._warn(f"If it changes these, that cannot be undone: {named}{more}")

    async def _end(self, open_call: OpenCall | None) -> None:
        """End a call, also after a cancellation: what it did until then counts."""
        if open_call is not None:
            await asyncio.shield(self._run_guarded(lambda: self._recorder.end(open_call)))

    async def _run_guarded(self, work: Callable[[], T]) -> T | None:
        """Run work in a thread, one at a time. A broken store stops no work, but is reported."""
        async with self._one:
            try:
                return await asyncio.to_thread(work)
            except (HermesError, OSError) as error:
                log.warning("not covered by undo", extra={"why": str(error)})
                self._warn(f"This change cannot be undone: {error}")
                return None


def is_file(open_call: OpenCall, path: str) -> bool:
    entry = open_call.before.get(path)
    return entry is not None and entry.is_file


class UndoService:
    """Gives sessions their recorders and commands the history. Nothing is imported or created
    before it is needed."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._folder = run.home.root / "checkpoints"

    async def in_thread(self, work: Callable[[CheckpointHistory], T]) -> T:
        """Let `work` use the history in a thread, because its methods block."""
        return await asyncio.to_thread(work, self._history())

    def _history(self) -> CheckpointHistory:
        from hermes.undo.history import CheckpointHistory
        from hermes.undo.store import CheckpointStore

        return CheckpointHistory(
            CheckpointStore(self._folder),
            world=self._run.world,
            limits=self._limits(),
        )

    def make_recorder(self, root: str, where: Callable[[], tuple[str, str]]) -> ChangeRecorder:
        """Make the recorder for one session in one project; `where` returns session and turn."""
        from hermes.undo.change_recorder import ChangeRecorder
        from hermes.undo.store import CheckpointStore

        settings = self._run.settings.checkpoints
        return ChangeRecorder(
            CheckpointStore(self._folder),
            root,
            where=where,
            world=self._run.world,
            limits=self._limits(),
            prune_hours=settings.min_interval_hours if settings.auto_prune else 0,
        )

    def _limits(self) -> UndoLimits:
        from hermes.undo.scanner import MB, UndoLimits

        settings = self._run.settings.checkpoints
        return UndoLimits(
            max_files=int(settings.max_files),
            max_file_bytes=int(settings.max_file_size_mb * MB),
            max_total_bytes=int(settings.max_total_size_mb * MB),
            skipped=frozenset((self._run.state_dir,)),
            untouched=frozenset(("/", self._run.user_home)),
            max_snapshots=int(settings.max_snapshots),
            retention_days=settings.retention_days,
        )
