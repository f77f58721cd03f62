"""What a killed run was doing: the words, the model's part, and what must be true afterwards."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from hermes.core.events import Record, ToolFinished, ToolStarted
from hermes.core.messages import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage
from hermes.core.tool_calls import UNKNOWN_OUTCOME
from hermes.core.transcript import Transcript
from hermes.testing.faults import paced
from hermes.testing.observers import EffectLog
from hermes.testing.request import Request
from hermes.testing.steps import ScriptedCall, Step, calls, calls_many, says
from tests.durability.observing import eventually, is_running

WORDS = ("Guten Tag", "日本語で", "naïve café", "🙂 please", "plain", "line\nbreak", "tab\there")

Shape = list[tuple[str, str]]


class Scenario(Protocol):
    """The first turn begins with `prompt`; every later one with something else."""

    prompt: str

    def step(self, request: Request) -> Step:
        """The model: its answer follows from the conversation alone."""
        ...

    def shape(self, *later: str) -> Shape:
        """Who says what in the end, with these words for the later turns, whatever was killed."""
        ...

    async def check(self, left: Sequence[Sequence[Record]], after: Transcript) -> None:
        """`left` are the records that each of the killed runs left."""
        ...


class Words:
    """A question and an answer."""

    def __init__(self, work: Path, seed: int) -> None:
        chance = random.Random(seed)
        self.prompt = f"{chance.choice(WORDS)} {seed}"
        self.answer = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 40)))
        self.chunk = chance.choice((0, 1, 3, 24))

    def step(self, request: Request) -> Step:
        text = self.answer if request.last_text == self.prompt else "Next."
        return paced(says(text), chunk=self.chunk)

    def shape(self, *later: str) -> Shape:
        return [("user", self.prompt), ("assistant", self.answer), *_plain_turns(later)]

    async def check(self, left: Sequence[Sequence[Record]], after: Transcript) -> None:
        """The shape says it all."""


class Tools:
    """Some files are read side by side, one is written, and a command has an effect that must not
    happen twice; in an order that depends on the seed."""

    def __init__(self, work: Path, seed: int) -> None:
        chance = random.Random(seed)
        self.prompt = f"Work on it, {chance.choice(WORDS)} {seed}"
        self.chunk = chance.choice((0, 1, 3, 24))
        self.effects = EffectLog(work / "effects.log")
        self.note = work / "note.txt"
        count = chance.randint(1, 5) if seed else 3
        for number in range(count):
            work.joinpath(f"{number}.txt").write_text(f"content {number}\n")
        self.calls = [
            *(ScriptedCall(name="read_file", arguments={"path": f"{n}.txt"}) for n in range(count)),
            ScriptedCall(name="write_file", arguments={"path": "note.txt", "content": "noted\n"}),
            ScriptedCall(name="terminal", arguments={"command": self.effects.shell("letter sent")}),
        ]
        if seed:
            chance.shuffle(self.calls)

    def step(self, request: Request) -> Step:
        if request.results:
            return says("Done.")
        if request.last_text == self.prompt:
            return paced(calls_many(*self.calls, text="I begin."), chunk=self.chunk)
        return says("Next.")

    def shape(self, *later: str) -> Shape:
        begun: Shape = [("user", self.prompt), ("assistant", "I begin."), ("tool", "")]
        return [*begun, ("assistant", "Done."), *_plain_turns(later)]

    async def check(self, left: Sequence[Sequence[Record]], after: Transcript) -> None:
        results = _results(after)
        assert [result.name for result in results] == [call.name for call in self.calls]
        for result in results:
            match result.name:
                case "read_file":
                    assert "content" in result.text
                case "write_file":
                    assert not result.failed and self.note.read_text() == "noted\n"
                case _:
                    self._check_effect(left, result)

    def _check_effect(self, left: Sequence[Sequence[Record]], result: ToolResult) -> None:
        times = self.effects.count("letter sent")
        if _was_cut(left, result.call_id):
            assert result.text.startswith(UNKNOWN_OUTCOME) and times <= 1
        else:
            assert not result.failed and times == 1


class Background:
    """A process is started that outlives Hermes; in the second turn the model looks for it."""

    def __init__(self, work: Path, seed: int) -> None:
        chance = random.Random(seed)
        self.prompt = f"Start it, {chance.choice(WORDS)} {seed}"
        self.chunk = chance.choice((0, 1, 3, 24))
        self.effects = EffectLog(work / "effects.log")
        self.command = f"{self.effects.shell('server up')}; sleep 600"
        self.notify = bool(seed % 2)

    def step(self, request: Request) -> Step:
        if request.results:
            return says("Fine.")
        if request.last_text != self.prompt:
            return calls("process", action="list")
        start = calls(
            "terminal", command=self.command, background=True, notify_on_complete=self.notify
        )
        return paced(start, chunk=self.chunk)

    def shape(self, *later: str) -> Shape:
        tools: Shape = [("assistant", ""), ("tool", ""), ("assistant", "Fine.")]
        return [pair for words in (self.prompt, *later) for pair in (("user", words), *tools)]

    async def check(self, left: Sequence[Sequence[Record]], after: Transcript) -> None:
        started, *others = _results(after)
        known = others[-1].details["processes"]
        running = [each["pid"] for each in known if each["status"] == "running"]
        await eventually(lambda: self.effects.count("server up") >= len(running))
        times = self.effects.count("server up")
        if _was_cut(left, started.call_id):
            assert started.text.startswith(UNKNOWN_OUTCOME) and times <= 1
        else:
            assert not started.failed and times == 1
        assert len(running) == times
        assert all(is_running(pid) for pid in running)


def _plain_turns(later: Sequence[str]) -> Shape:
    return [pair for words in later for pair in (("user", words), ("assistant", "Next."))]


def shape_of(messages: Sequence[Message]) -> Shape:
    found: Shape = []
    for message in messages:
        match message:
            case UserMessage():
                found.append(("user", message.text))
            case AssistantMessage():
                found.append(("assistant", message.text))
            case ToolMessage():
                found.append(("tool", ""))
    return found


def _results(transcript: Transcript) -> list[ToolResult]:
    messages = [message for message in transcript.messages if isinstance(message, ToolMessage)]
    return [result for message in messages for result in message.results]


def _was_cut(left: Sequence[Sequence[Record]], call_id: str) -> bool:
    """A killed run had begun the call and had not written down how it ended."""
    return any(_begun(records, call_id) and not _ended(records, call_id) for records in left)


def _begun(records: Sequence[Record], call_id: str) -> bool:
    return any(isinstance(r.event, ToolStarted) and r.event.call_id == call_id for r in records)


def _ended(records: Sequence[Record], call_id: str) -> bool:
    return any(
        isinstance(r.event, ToolFinished) and r.event.result.call_id == call_id for r in records
    )
