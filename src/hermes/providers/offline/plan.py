"""Plans: a request as a generator that requests tool calls and receives their results.

Nothing is stored between replies. Each reply runs the plan from its start and feeds it the results
in
the transcript, so a plan continues after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from hermes.codec.values import JsonObject, Value, replace
from hermes.core.messages import ToolResult
from hermes.providers.offline.cutting import RequestStep
from hermes.providers.offline.focus import ReferenceContext
from hermes.providers.offline.tool_answers import has_succeeded
from hermes.providers.offline.transcript import DialogueTurn
from hermes.providers.offline.voice import Phrasebook, inline_code


class CallRequest(Value):
    """A tool call requested by a plan."""

    name: str
    arguments: JsonObject


class StepOutcome(Value):
    """The answer of a step. A failed step ends the whole request."""

    text: str
    failed: bool = False


CallRequests = tuple[CallRequest, ...]
Results = tuple[ToolResult, ...]
Steps = Generator[CallRequests, Results, StepOutcome]


class StepTask:
    """One step to do, with everything known from before."""

    def __init__(
        self,
        intent: RequestStep,
        voice: Phrasebook,
        focus: Callable[[], ReferenceContext],
        earlier: tuple[DialogueTurn, ...],
        tools: frozenset[str],
    ) -> None:
        self.intent = intent
        self.say = voice
        self._focus = focus
        self.earlier = earlier
        self.tools = tools

    @property
    def focus(self) -> ReferenceContext:
        """What was last shown, including the results of this request."""
        return self._focus()

    def slot(self, name: str, default: str = "") -> str:
        return self.intent.slots.get(name, default)

    def has(self, name: str) -> bool:
        return name in self.intent.slots

    @property
    def path(self) -> str:
        return self.slot("path", ".")

    @property
    def place(self) -> str:
        """The folder of a plan, for display."""
        return self.say("this_folder") if self.path == "." else inline_code(self.path)

    def number(self, name: str, default: int) -> int:
        value = self.slot(name)
        return int(value) if value.isdigit() else default

    def with_slot(self, name: str, value: str) -> StepTask:
        slots = {**self.intent.slots, name: value}
        intent = replace(self.intent, slots=slots)
        return StepTask(intent, self.say, self._focus, self.earlier, self.tools)

    def answer(self, key: str, **facts: object) -> StepOutcome:
        return StepOutcome(text=self.say(key, **facts))

    def fail(self, key: str, **facts: object) -> StepOutcome:
        return StepOutcome(text=self.say(key, **facts), failed=True)


Plan = Callable[[StepTask], Steps]


def call(name: str, **arguments: object) -> Generator[CallRequests, Results, ToolResult]:
    """Requests one call and returns its result."""
    (result,) = yield (CallRequest(name=name, arguments=arguments),)
    return result


def terminal(script: str) -> Generator[CallRequests, Results, ToolResult]:
    return (yield from call("terminal", command=script))


class CallFailed(Exception):
    """Ends a step with the explanation of a failed call."""

    def __init__(self, result: ToolResult, script: str = "") -> None:
        super().__init__(script)
        self.result = result
        self.script = script


def checked_call(name: str, **arguments: object) -> Generator[CallRequests, Results, ToolResult]:
    """Like `call`, but raises CallFailed."""
    result = yield from call(name, **arguments)
    if not has_succeeded(result):
        raise CallFailed(result)
    return result


def run_command(script: str) -> Generator[CallRequests, Results, ToolResult]:
    """Like `terminal`, but raises CallFailed."""
    result = yield from terminal(script)
    if not has_succeeded(result):
        raise CallFailed(result, script)
    return result
