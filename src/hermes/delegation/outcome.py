"""What became of a child session, read from its records alone, so that a crash changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value
from hermes.core.effects import DeletePath, Effect, WritePath
from hermes.core.events import (
    EffectDecided,
    EndReason,
    MessageReceived,
    ModelCalled,
    Record,
    ReplyAdded,
    SessionEnded,
    ToolFinished,
    ToolIntended,
    TurnEnded,
)
from hermes.core.messages import ToolCall
from hermes.core.transcript import Transcript, fold
from hermes.delegation.identity import CORRECTION_KEY, TASK_KEY

Status = Literal["completed", "failed", "error", "timeout", "interrupted"]
STATUSES: tuple[str, ...] = get_args(Status)

_BY_REASON: dict[EndReason, Status] = {
    "done": "completed",
    "interrupted": "interrupted",
    "failed": "error",
    "crashed": "error",
    "budget": "failed",
    "partial": "failed",
    "guardrail": "failed",
    "paused": "failed",
}


class ChildOutcome(NamedTuple):
    """The records of a child session and what they say."""

    records: tuple[Record, ...]
    transcript: Transcript
    ended: TurnEnded | None
    # Why the session was closed, "" while it is not.
    closed: str

    @property
    def task(self) -> MessageReceived | None:
        """The message with the task; None before it is received."""
        received = (r.event for r in self.records if isinstance(r.event, MessageReceived))
        return next((each for each in received if each.key == TASK_KEY), None)

    @property
    def is_finished(self) -> bool:
        """Whether no turn is open and no message waits."""
        transcript = self.transcript
        return self.ended is not None and not transcript.turn_id and not transcript.waiting

    @property
    def is_corrected(self) -> bool:
        """Whether the child session was asked to correct the form of its answer."""
        received = (r.event for r in self.records if isinstance(r.event, MessageReceived))
        return any(each.key == CORRECTION_KEY for each in received)

    @property
    def status(self) -> Status:
        if self.closed == "timeout":
            return "timeout"
        if self.ended is None:
            return "interrupted"
        return _BY_REASON[self.ended.reason]

    @property
    def summary(self) -> str:
        """The last text of the child session."""
        replies = (r.event.message.text for r in self.records if isinstance(r.event, ReplyAdded))
        return next((text for text in reversed([*replies]) if text.strip()), "")

    @property
    def origins(self) -> frozenset[str]:
        return self.transcript.origins()

    def changed_files(self) -> dict[str, float]:
        """The files that the tools of the child session wrote or deleted, with the last time."""
        wanted: dict[str, list[Effect]] = {}
        changed: dict[str, float] = {}
        for record in self.records:
            match record.event:
                case ToolIntended(call_id=call_id, judged=judged):
                    wanted[call_id] = [each.effect for each in judged]
                case EffectDecided(call_id=call_id, judged=one):
                    wanted.setdefault(call_id, []).append(one.effect)
                case ToolFinished(result=result) if not result.failed:
                    for effect in wanted.pop(result.call_id, []):
                        if isinstance(effect, WritePath | DeletePath):
                            changed[effect.path] = record.at
                case _:
                    pass
        return changed


def read_outcome(records: Sequence[Record]) -> ChildOutcome:
    ended: TurnEnded | None = None
    closed = ""
    for record in records:
        match record.event:
            case TurnEnded() as ended:
                pass
            case SessionEnded(reason=closed):
                pass
            case MessageReceived():
                closed = ""
            case _:
                pass
    return ChildOutcome(tuple(records), fold(records), ended, closed)


class TaskResult(Value):
    """The result of one task, as the parent's model sees it."""

    task_index: int
    status: Status
    summary: str
    api_calls: int
    duration_seconds: float
    tokens: JsonObject
    cost_usd: float | None
    exit_reason: str
    tool_trace: tuple[JsonObject, ...]
    child_session_id: str
    error: str = ""
    files_changed: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    schema_valid: bool | None = None
    schema_errors: tuple[str, ...] = ()


def task_result(index: int, child_id: str, outcome: ChildOutcome, summary: str) -> TaskResult:
    """Return the result without what depends on other tasks and on the schema."""
    records, usage = outcome.records, outcome.transcript.usage
    ended = outcome.ended
    return TaskResult(
        task_index=index,
        status=outcome.status,
        summary=summary,
        api_calls=sum(isinstance(record.event, ModelCalled) for record in records),
        duration_seconds=round(records[-1].at - records[0].at, 3) if records else 0.0,
        tokens={"input": usage.prompt, "output": usage.output},
        cost_usd=usage.cost,
        exit_reason=ended.detail if ended else "",
        tool_trace=tuple(_trace(records)),
        child_session_id=child_id,
        error=ended.error if ended else "",
        files_changed=tuple(sorted(outcome.changed_files())),
    )


MAX_TRACE = 50


def _trace(records: Iterable[Record]) -> list[JsonObject]:
    """The newest tool calls, with the sizes of their arguments and results."""
    calls: dict[str, ToolCall] = {}
    found: list[JsonObject] = []
    for record in records:
        match record.event:
            case ReplyAdded(message=message):
                calls |= {call.id: call for call in message.calls}
            case ToolFinished(result=result):
                call = calls.get(result.call_id)
                found.append(
                    {
                        "tool": result.name,
                        "args_bytes": len(encode(call.arguments)) if call else 0,
                        "result_bytes": len(result.text.encode()),
                        "status": "error" if result.failed else "ok",
                    }
                )
            case _:
                pass
    return found[-MAX_TRACE:]


def find_conflicts(outcomes: Sequence[ChildOutcome]) -> list[tuple[str, ...]]:
    """Return warnings per child session: files that a sibling had written before."""
    changed = [outcome.changed_files() for outcome in outcomes]
    warnings: list[tuple[str, ...]] = []
    for index, own in enumerate(changed):
        warnings.append(
            tuple(
                f"{path} was also changed by task {other}; check it."
                for path, at in sorted(own.items())
                for other, files in enumerate(changed)
                if other != index and path in files and (files[path], other) < (at, index)
            )
        )
    return warnings
