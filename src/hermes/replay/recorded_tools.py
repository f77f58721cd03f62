"""The tools of a replay: planned and judged for real, with the results that they gave then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    JudgedEffect,
    QuestionAsked,
    ReplyAdded,
    ToolFinished,
)
from hermes.core.messages import Image, Text, ToolCall, ToolResult
from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool, ToolContext, ToolOutput
from hermes.core.turn import Toolbox
from hermes.replay.sync_points import SyncPoints
from hermes.tools.toolbox import SessionTools

Mode = Literal["recorded", "live"]
UNKNOWN_CALL = "This call was never made in the recording, so nobody knows its result."


class RecordedResults:
    """What tools gave in a recording. `kept` are texts that were put aside, by their paths."""

    def __init__(self, events: list[DurableEvent], kept: Mapping[str, str]) -> None:
        self._kept = kept
        self._made = _make_output(events)

    def also(self, events: list[DurableEvent]) -> None:
        """What calls gave in another session, for those that this one never made."""
        self._made += _make_output(events)

    def output(self, result: ToolResult) -> ToolOutput:
        """As the tool gave it: whole, and without the words that were added behind it."""
        parts, details = result.parts, dict(result.details)
        last = parts[-1] if parts else None
        if len(parts) > 1 and isinstance(last, Text) and last.text.startswith("\n\n["):
            parts = parts[:-1]
        whole = self._kept.get(str(details.get("persisted", "")))
        if whole is not None:
            del details["persisted"]
            parts = (Text(text=whole), *(part for part in parts if isinstance(part, Image)))
        return ToolOutput(parts=parts, details=details, failed=result.failed, origin=result.origin)

    def of(self, tool: Tool, arguments: JsonObject) -> ToolOutput:
        """What this very call gave when it was first made."""
        for call, result in self._made:
            if result.name == tool.name and _decode(tool, call) == arguments:
                return self.output(result)
        return ToolOutput.text(UNKNOWN_CALL, failed=True)


class ReplayTools(SessionTools):
    """`changed` are tools that take the place of those of the same name. `moved` is told where a
    command has left the shell."""

    def __init__(
        self,
        gates: SyncPoints,
        results: RecordedResults,
        *,
        mode: Mode,
        changed: Mapping[str, Tool],
        moved: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._gates = gates
        self._results = results
        self._mode: Mode = mode
        self._changed = changed
        self._moved = moved

    def choose(  # type: ignore[override]
        self, names: tuple[str, ...], findable: tuple[str, ...] = ()
    ) -> Toolbox:
        return _Toolbox(super().choose(names, findable), self._changed, self._wrap)

    def _wrap(self, tool: Tool) -> Tool:
        if self._mode == "live":
            return LiveTool(tool, self._gates)
        return RecordedTool(tool, self._gates, self._results, self._moved)


class _Toolbox:
    def __init__(
        self, inner: Toolbox, changed: Mapping[str, Tool], wrap: Callable[[Tool], Tool]
    ) -> None:
        self._inner = inner
        self._changed = changed
        self._wrap = wrap
        kept = [changed[spec.name].spec if spec.name in changed else spec for spec in inner.specs]
        known = {spec.name for spec in kept}
        added = [tool.spec for name, tool in changed.items() if name not in known]
        self._specs = tuple(sorted((*kept, *added), key=lambda spec: spec.name))

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    def load(self, name: str) -> Tool | None:
        found = self._changed.get(name) or self._inner.load(name)
        return self._wrap(found) if found is not None else None


class _ToolCopy(Tool):
    """Everything but the run of another tool."""

    def __init__(self, real: Tool) -> None:
        self.name = real.name
        self.description = real.description
        self.parameters = real.parameters
        self.effects = real.effects
        self.repeat = real.repeat
        self.interactive = real.interactive
        self.real = real


class RecordedTool(_ToolCopy):
    """Asks what it asked then, and gives what it gave then, when its turn has come."""

    def __init__(
        self, real: Tool, gates: SyncPoints, results: RecordedResults, moved: Callable[[str], None]
    ) -> None:
        super().__init__(real)
        self._gates = gates
        self._results = results
        self._moved = moved

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        branch = self._gates.clock.branch()
        while True:
            due = await self._gates.next_of(ctx.call_id)
            match due:
                case None:
                    return self._results.of(self, arguments)
                case ToolFinished(result=result):
                    branch.spend(due.seconds)
                    self._follow_shell(result)
                    return self._results.output(result)
                case QuestionAsked():
                    await ctx.ask(due.question, due.choices)
                case (
                    ApprovalAsked(effect=effect) | EffectDecided(judged=JudgedEffect(effect=effect))
                ):
                    await _attempt(ctx, effect, arguments)

    def _follow_shell(self, result: ToolResult) -> None:
        cwd = result.details.get("cwd")
        if isinstance(cwd, str) and "session_id" not in result.details:
            self._moved(cwd)


class LiveTool(_ToolCopy):
    """Really runs, and ends when its turn has come."""

    def __init__(self, real: Tool, gates: SyncPoints) -> None:
        super().__init__(real)
        self._gates = gates

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        branch, failed = self._gates.clock.branch(), None
        with self._gates.at_work():
            try:
                output = await self.real(ctx, arguments)
            except ToolError as error:
                failed = error
        due = await self._gates.next_of(ctx.call_id)
        if isinstance(due, ToolFinished):
            branch.spend(due.seconds)
        if failed is not None:
            raise failed
        return output


async def _attempt(ctx: ToolContext, effect: Effect, arguments: JsonObject) -> None:
    """Do what the tool did when it was decided; nothing happens, but the gate is passed."""
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
                return
    except (ToolError, NotFound):
        return


def _make_output(events: list[DurableEvent]) -> list[tuple[ToolCall, ToolResult]]:
    """Every call with its result."""
    found = []
    calls: dict[str, ToolCall] = {}
    for event in events:
        if isinstance(event, ReplyAdded):
            calls = {call.id: call for call in event.message.calls}
        elif isinstance(event, ToolFinished) and event.result.call_id in calls:
            found.append((calls[event.result.call_id], event.result))
    return found


def _decode(tool: Tool, call: ToolCall) -> JsonObject | None:
    try:
        return tool.parameters.decode(call.arguments)
    except DecodeError:
        return None
