"""The tools of a replay: real planning and policy, recorded results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal

from hermes.codec.json import DecodeError
from hermes.codec.values import JsonObject
from hermes.core.effects import (
    DeletePath,
    Effect,
    FetchUrl,
    ReadPath,
    RunCommand,
    SignalProcess,
    WritePath,
)
from hermes.core.errors import NotFound, ToolError
from hermes.core.events import (
    ApprovalAsked,
    DurableEvent,
    EffectDecided,
    InnerCallFinished,
    InnerCallIntended,
    JudgedEffect,
    QuestionAsked,
    ReplyAdded,
    ToolFinished,
    ToolStarted,
    inner_id,
)
from hermes.core.messages import Image, Text, ToolCall, ToolResult
from hermes.core.prompt import ToolSpec
from hermes.core.session_deps import Toolbox
from hermes.core.tools import Tool, ToolContext, ToolOutput
from hermes.replay.sync_points import Finished, SyncPoints
from hermes.tools.toolbox import SessionTools

Mode = Literal["recorded", "live"]
UNKNOWN_CALL = "This call was never made in the recording, so its result is unknown."


class RecordedResults:
    """The tool results of a recording. `saved_results` maps paths to the full texts of truncated
    results."""

    def __init__(self, events: list[DurableEvent], saved_results: Mapping[str, str]) -> None:
        self._saved_results = saved_results
        self._results_by_call = _calls_with_results(events)

    def add(self, events: list[DurableEvent]) -> None:
        """Add results of another session, for calls that this one never made."""
        self._results_by_call += _calls_with_results(events)

    def output(self, result: ToolResult) -> ToolOutput:
        """Restore a tool's own output: untruncated and without appended notes."""
        parts, details = result.parts, dict(result.details)
        last = parts[-1] if parts else None
        if len(parts) > 1 and isinstance(last, Text) and last.text.startswith("\n\n["):
            parts = parts[:-1]
        whole = self._saved_results.get(str(details.get("persisted", "")))
        if whole is not None:
            del details["persisted"]
            parts = (Text(text=whole), *(part for part in parts if isinstance(part, Image)))
        return ToolOutput(
            parts=parts,
            details=details,
            failed=result.failed,
            origin=result.origin,
            failure=result.failure,
        )

    def of(self, tool: Tool, arguments: JsonObject) -> ToolOutput:
        """Return the first recorded result of this call."""
        for call, result in self._results_by_call:
            with suppress(DecodeError):
                if result.name == tool.name and tool.parameters.decode(call.arguments) == arguments:
                    return self.output(result)
        return ToolOutput.text(UNKNOWN_CALL, failed=True)


class ReplayTools(SessionTools):
    """The tools of a replayed session. `replacements` override tools of the same name.
    `on_cwd_change` receives the shell's working directory after a command."""

    def __init__(
        self,
        sync: SyncPoints,
        results: RecordedResults,
        *,
        mode: Mode,
        replacements: Mapping[str, Tool],
        on_cwd_change: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._sync = sync
        self._results = results
        self._mode: Mode = mode
        self._replacements = replacements
        self._on_cwd_change = on_cwd_change

    def choose(  # type: ignore[override]
        self, names: tuple[str, ...], findable: tuple[str, ...] = ()
    ) -> Toolbox:
        return _Toolbox(super().choose(names, findable), self._replacements, self._wrap)

    def _wrap(self, tool: Tool) -> Tool:
        if self._mode == "live":
            return LiveTool(tool, self._sync)
        return RecordedTool(tool, self._sync, self._results, self._on_cwd_change)


class _Toolbox:
    def __init__(
        self, inner: Toolbox, replacements: Mapping[str, Tool], wrap: Callable[[Tool], Tool]
    ) -> None:
        self._inner = inner
        self._replacements = replacements
        self._wrap = wrap
        specs = [
            replacements[spec.name].spec if spec.name in replacements else spec
            for spec in inner.specs
        ]
        known = {spec.name for spec in specs}
        added = [tool.spec for name, tool in replacements.items() if name not in known]
        self._specs = tuple(sorted((*specs, *added), key=lambda spec: spec.name))

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    def load(self, name: str) -> Tool | None:
        found = self._replacements.get(name) or self._inner.load(name)
        return self._wrap(found) if found is not None else None


class _ToolCopy(Tool):
    """The declaration of another tool without its implementation."""

    def __init__(self, real: Tool) -> None:
        self.name = real.name
        self.description = real.description
        self.parameters = real.parameters
        self.effects = real.effects
        self.repeat = real.repeat
        self.interactive = real.interactive
        self.stateful = real.stateful
        self.real = real


class RecordedTool(_ToolCopy):
    """Repeats the recorded questions and result at their recorded positions."""

    orders_effects = True
    names_inner_sources = True

    def __init__(
        self,
        real: Tool,
        sync: SyncPoints,
        results: RecordedResults,
        on_cwd_change: Callable[[str], None],
    ) -> None:
        super().__init__(real)
        self._sync = sync
        self._results = results
        self._on_cwd_change = on_cwd_change

    def _load(self, name: str) -> Tool | None:
        """Return the recorded version of a private tool of this tool; None if it has none of this
        name, because the session offers that tool."""
        private = self.real.private.get(name)
        if private is None:
            return None
        return RecordedTool(private, self._sync, self._results, self._on_cwd_change)

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        inner: list[asyncio.Future[ToolResult]] = []
        try:
            return await self._follow(ctx, arguments, inner)
        finally:
            # The recorded call left them behind.
            for call in inner:
                call.cancel()

    async def _follow(
        self, ctx: ToolContext, arguments: JsonObject, inner: list[asyncio.Future[ToolResult]]
    ) -> ToolOutput:
        branch = self._sync.clock.branch()
        waiting = await self._repeat_earlier(ctx)
        while True:
            due = await self._sync.next_of(ctx.call_id, waiting)
            own_id = due.result.call_id if isinstance(due, Finished) else due and due.call_id
            if own_id in waiting:
                begun: InnerCallIntended | None = waiting.pop(own_id)
            else:
                begun = due if isinstance(due, InnerCallIntended) else None
            if due is not None and begun is not None:
                waiting.pop(inner_id(ctx.call_id, begun.key), None)
                inner.append(asyncio.ensure_future(self._call_inner(ctx, begun)))
                await self._sync.wait_until_past(due)
                continue
            match due:
                case None:
                    return self._results.of(self, arguments)
                case InnerCallIntended() | ToolStarted():
                    pass
                case ToolFinished(result=result) | InnerCallFinished(result=result):
                    branch.spend(due.seconds)
                    cwd = result.details.get("cwd")
                    if isinstance(cwd, str) and "session_id" not in result.details:
                        self._on_cwd_change(cwd)
                    return self._results.output(result)
                case QuestionAsked():
                    await ctx.ask(due.question, due.choices)
                case (
                    ApprovalAsked(effect=effect) | EffectDecided(judged=JudgedEffect(effect=effect))
                ):
                    await _attempt(ctx, effect, arguments)

    async def _repeat_earlier(self, ctx: ToolContext) -> dict[str, InnerCallIntended]:
        """Repeat the inner calls of a call that an earlier process began, as far as their results
        are known. Return the others by id: each begins at its first recorded event."""
        waiting = {}
        for intended in self._sync.earlier_inner_calls(ctx.call_id):
            if ctx.known_result(intended.key) is not None:
                await self._call_inner(ctx, intended)
            else:
                waiting[inner_id(ctx.call_id, intended.key)] = intended
        return waiting

    async def _call_inner(self, ctx: ToolContext, intended: InnerCallIntended) -> ToolResult:
        name = intended.name
        return await ctx.call_tool(self._load(name) or name, intended.arguments, key=intended.key)


class LiveTool(_ToolCopy):
    """Runs the real tool and finishes at the recorded position."""

    def __init__(self, real: Tool, sync: SyncPoints) -> None:
        super().__init__(real)
        self._sync = sync

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        branch, failed = self._sync.clock.branch(), None
        with self._sync.running_tool():
            try:
                output = await self.real(ctx, arguments)
            except ToolError as error:
                failed = error
        due = await self._sync.next_of(ctx.call_id)
        if isinstance(due, ToolFinished):
            branch.spend(due.seconds)
        if failed is not None:
            raise failed
        return output


async def _attempt(ctx: ToolContext, effect: Effect, arguments: JsonObject) -> None:
    """Repeat the recorded effect so that the policy decides on it; nothing is executed."""
    workspace = ctx.workspace
    try:
        match effect:
            case ReadPath(path=path):
                await workspace.read_bytes(path)
            case WritePath(path=path):
                await workspace.write_bytes(path, b"")
            case DeletePath(path=path):
                await workspace.delete(path)
            case RunCommand():
                await workspace.run(effect, timeout=1, stop=ctx.stop, max_bytes=1)
            case SignalProcess(process_id=process_id, action="write"):
                end = "\n" if arguments.get("action") == "submit" else ""
                await workspace.processes.write(process_id, f"{arguments.get('data', '')}{end}")
            case SignalProcess(process_id=process_id):
                await workspace.processes.kill(process_id)
            case FetchUrl():
                await ctx.web.fetch(effect)
            case _:
                pass
    except (ToolError, NotFound):
        pass


def _calls_with_results(events: list[DurableEvent]) -> list[tuple[ToolCall, ToolResult]]:
    """Pair each call with its result."""
    pairs = []
    calls: dict[str, ToolCall] = {}
    for event in events:
        if isinstance(event, ReplyAdded):
            calls = {call.id: call for call in event.message.calls}
        elif isinstance(event, ToolFinished) and event.result.call_id in calls:
            pairs.append((calls[event.result.call_id], event.result))
    return pairs
