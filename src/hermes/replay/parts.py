"""Which process did which part of a session, as far as tapes tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hermes.core.errors import UsageError
from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    ReplyAdded,
    SessionOpened,
    ToolFinished,
    TurnEnded,
)
from hermes.providers.recorded.tape import TapedRun
from hermes.replay.recording import RecordedLine, Recording


class ProcessPart(NamedTuple):
    """The lines from `start` up to `end`, done by one process."""

    start: int
    end: int
    tape: TapedRun | None


def first_place(recording: Recording) -> int:
    """The first line that is played. Before it stand what a fork shares, the opening, and what
    was said elsewhere before the session began."""
    lines, place = recording.lines, recording.shared
    if place >= len(lines) or not isinstance(lines[place].event, SessionOpened):
        raise UsageError("The recording does not begin with the opening of a session.")
    place += 1
    taken_over = False
    while place < len(lines):
        event = lines[place].event
        taken_over |= isinstance(event, MessageReceived) and event.past
        if not taken_over or not _is_past(event):
            break
        place += 1
    return place


def parts_of(recording: Recording, first: int) -> list[ProcessPart]:
    """In order, without gaps; a process that did nothing has no part."""
    end = len(recording.lines)
    starts = [max(first, min(tape.run.after, end)) for tape in recording.tapes]
    parts = [ProcessPart(first, starts[0] if starts else end, None)]
    for number, tape in enumerate(recording.tapes):
        until = starts[number + 1] if number + 1 < len(starts) else end
        parts.append(ProcessPart(starts[number], until, tape))
    return [part for part in parts if part.start < part.end]


def idle_before(events: Sequence[DurableEvent], place: int) -> int:
    """The last place, up to this one, at which no turn was under way."""
    while place > 0 and not isinstance(events[place - 1], TurnEnded):
        place -= 1
    return place


def shell_before(lines: Sequence[RecordedLine]) -> str:
    """Where the newest command of these lines has left the shell; "" when none did."""
    for line in reversed(lines):
        if line.kind != "tool_finished" or b'"cwd"' not in bytes(line.body):
            continue
        event = line.event
        details = event.result.details if isinstance(event, ToolFinished) else {}
        if isinstance(cwd := details.get("cwd"), str) and "session_id" not in details:
            return cwd
    return ""


def _is_past(event: DurableEvent) -> bool:
    match event:
        case MessageReceived(past=past):
            return past
        case ReplyAdded() | ToolFinished():
            return True
        case _:
            return False
