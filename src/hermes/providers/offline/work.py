"""Runs a request: step after step, until one fails."""

from __future__ import annotations

from collections.abc import Generator
from functools import cached_property

from hermes.codec.values import JsonObject, replace
from hermes.core.messages import Text, ToolCall, ToolResult
from hermes.core.prompt import ToolSpec
from hermes.providers.offline.cutting import RequestStep
from hermes.providers.offline.failures import explain_failure
from hermes.providers.offline.focus import ReferenceContext, references_after
from hermes.providers.offline.language import RequestKind
from hermes.providers.offline.plan import (
    CallFailed,
    CallRequest,
    CallRequests,
    Results,
    StepOutcome,
    Steps,
    StepTask,
    call,
)
from hermes.providers.offline.plans.catalogue import plan_for
from hermes.providers.offline.requests import ParsedRequest
from hermes.providers.offline.tool_answers import has_succeeded
from hermes.providers.offline.transcript import DialogueTurn, ToolRound
from hermes.providers.offline.voice import Phrasebook, inline_code

MAX_ROUNDS = 12
MAX_CHOICES = 4


class RequestContext:
    """The context of a request: tools, earlier exchanges, and what was last shown."""

    def __init__(
        self, voice: Phrasebook, tools: tuple[ToolSpec, ...], earlier: tuple[DialogueTurn, ...]
    ) -> None:
        self.voice = voice
        self.tools = {tool.name: tool for tool in tools}
        self.earlier = earlier
        self._noted: list[tuple[ToolCall, ToolResult]] = []

    @cached_property
    def _focus(self) -> ReferenceContext:
        return references_after(self.earlier)

    @property
    def focus(self) -> ReferenceContext:
        """Built on demand: most requests refer to nothing earlier."""
        focus = self._focus
        for made, result in self._noted:
            focus.note(made, result)
        self._noted.clear()
        return focus

    def note(self, made: ToolCall, result: ToolResult) -> None:
        self._noted.append((made, result))

    def fit(self, wish: CallRequest) -> CallRequest | None:
        """The call with the arguments that the tool accepts; None if it cannot be made."""
        tool = self.tools.get(wish.name)
        if tool is None:
            return None
        properties: JsonObject = tool.parameters.get("properties", {})
        arguments = {name: value for name, value in wish.arguments.items() if name in properties}
        if not set(tool.parameters.get("required", ())) <= set(arguments):
            return None
        return CallRequest(name=wish.name, arguments=arguments)


def run_request(request: ParsedRequest, scene: RequestContext) -> Steps:
    """Runs all steps of a request; their answers are joined at the end."""
    said: list[str] = []
    for number, step in enumerate(request.steps, 1):
        outcome = yield from _step(step, scene)
        said.append(outcome.text)
        left = request.steps[number:]
        if outcome.failed and left:
            undone = ", ".join(inline_code(later.words) for later in left)
            said.append(scene.voice("stopped", steps=undone))
        if outcome.failed:
            return StepOutcome(text="\n\n".join(said), failed=True)
    return StepOutcome(text="\n\n".join(said))


def replay_plan(
    steps: Steps, rounds: tuple[ToolRound, ...], scene: RequestContext
) -> CallRequests | StepOutcome:
    """Replays a plan over the finished rounds; returns the next calls or the outcome."""
    try:
        wishes = next(steps)
        for number in range(MAX_ROUNDS + 1):
            fitted = [scene.fit(wish) for wish in wishes]
            missing = next((w.name for w, f in zip(wishes, fitted, strict=True) if f is None), "")
            if missing:
                wishes = steps.send(tuple(_without_tool(scene, wish) for wish in wishes))
                continue
            wanted = tuple(wish for wish in fitted if wish is not None)
            if number >= MAX_ROUNDS:
                break
            if not rounds:
                return wanted
            if not _matches(wanted, rounds[0]):
                return _unknown_calls(scene, rounds[-1])
            for made, result in zip(rounds[0].calls, rounds[0].results, strict=True):
                scene.note(made, result)
            wishes = steps.send(rounds[0].results)
            rounds = rounds[1:]
    except StopIteration as end:
        outcome: StepOutcome = end.value
        return outcome
    return StepOutcome(text=scene.voice("too_many_steps", count=MAX_ROUNDS), failed=True)


def _step(step: RequestStep, scene: RequestContext) -> Steps:
    kind = scene.voice.language.kinds.get(step.kind)
    filled = yield from _fill_slots(step, kind, scene)
    if isinstance(filled, StepOutcome):
        return filled
    tools = frozenset(scene.tools)
    task = StepTask(filled, scene.voice, lambda: scene.focus, scene.earlier, tools)
    try:
        return (yield from plan_for(filled.kind)(task))
    except CallFailed as error:
        return explain_failure(task, error.result, error.script)


def _fill_slots(
    step: RequestStep, kind: RequestKind | None, scene: RequestContext
) -> Generator[CallRequests, Results, RequestStep | StepOutcome]:
    """The step with its references resolved; missing slots are asked for."""
    slots = dict(step.slots)
    missing = [name for name in (kind.needs if kind else ()) if name not in slots]
    for name, reference in step.references.items():
        value = scene.focus.resolve(reference)
        if value:
            slots[name] = value
        elif reference != "there" and name not in missing:
            missing.append(name)
    for name in missing:
        if name not in slots:
            answer = yield from _ask_user(name, scene)
            if not answer:
                return StepOutcome(text=scene.voice(f"ask.{name}.plainly"), failed=True)
            slots[name] = answer
    return replace(step, slots=slots, references={})


def _ask_user(name: str, scene: RequestContext) -> Generator[CallRequests, Results, str]:
    """Asks the user through the tool for questions, if available."""
    if "clarify" not in scene.tools:
        return ""
    items = scene.focus.items[:MAX_CHOICES] if name == "path" else ()
    options = {"choices": list(items)} if len(items) > 1 else {}
    result = yield from call("clarify", question=scene.voice(f"ask.{name}"), **options)
    answer = result.details.get("user_response")
    return answer.strip() if has_succeeded(result) and isinstance(answer, str) else ""


def _matches(wanted: CallRequests, done: ToolRound) -> bool:
    """True if the round consists of these calls, each with a result."""
    if len(done.calls) != len(wanted) or len(done.results) != len(wanted):
        return False
    return all(_is_call_of(w, c) for w, c in zip(wanted, done.calls, strict=True))


def _is_call_of(wish: CallRequest, made: ToolCall) -> bool:
    return made.name == wish.name and made.arguments == wish.arguments


def _unknown_calls(scene: RequestContext, last: ToolRound) -> StepOutcome:
    """The calls are not from this plan: another model started the turn, or the plan changed."""
    names = ", ".join(inline_code(made.name) for made in last.calls)
    text = scene.voice("foreign", tools=names or inline_code("?"))
    shown = [result.text for result in last.results if result.text.strip()]
    if shown:
        text += "\n\n" + scene.voice.block("\n".join(shown).splitlines(), limit=30)
    return StepOutcome(text=text, failed=True)


def _without_tool(scene: RequestContext, wish: CallRequest) -> ToolResult:
    words = scene.voice("no_tool", tool=inline_code(wish.name))
    details: JsonObject = {"missing_tool": wish.name}
    return ToolResult(
        call_id="", name=wish.name, parts=(Text(text=words),), failed=True, details=details
    )
