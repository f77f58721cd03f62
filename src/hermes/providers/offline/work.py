"""Runs a request: step after step, until one fails."""

from __future__ import annotations

from collections.abc import Generator
from functools import cached_property

from hermes.codec.values import JsonObject, replace
from hermes.core.messages import Text, ToolCall, ToolResult
from hermes.core.prompt import ToolSpec
from hermes.providers.offline.cutting import Intent
from hermes.providers.offline.failures import failure
from hermes.providers.offline.focus import Focus, focus_after
from hermes.providers.offline.language import Kind
from hermes.providers.offline.plan import (
    CallFailed,
    Outcome,
    Results,
    Steps,
    Task,
    Wish,
    Wishes,
    call,
)
from hermes.providers.offline.plans.catalogue import plan_for
from hermes.providers.offline.requests import Request
from hermes.providers.offline.tool_answers import succeeded
from hermes.providers.offline.transcript import Exchange, Round
from hermes.providers.offline.voice import Voice, code

MAX_ROUNDS = 12
MAX_CHOICES = 4


class Scene:
    """The context of a request: tools, earlier exchanges, and what was last shown."""

    def __init__(
        self, voice: Voice, tools: tuple[ToolSpec, ...], earlier: tuple[Exchange, ...]
    ) -> None:
        self.voice = voice
        self.tools = {tool.name: tool for tool in tools}
        self.earlier = earlier
        self._noted: list[tuple[ToolCall, ToolResult]] = []

    @cached_property
    def _focus(self) -> Focus:
        return focus_after(self.earlier)

    @property
    def focus(self) -> Focus:
        """Built on demand: most requests refer to nothing earlier."""
        focus = self._focus
        for made, result in self._noted:
            focus.note(made, result)
        self._noted.clear()
        return focus

    def note(self, made: ToolCall, result: ToolResult) -> None:
        self._noted.append((made, result))

    def fit(self, wish: Wish) -> Wish | None:
        """The call with the arguments that the tool accepts; None if it cannot be made."""
        tool = self.tools.get(wish.name)
        if tool is None:
            return None
        properties: JsonObject = tool.parameters.get("properties", {})
        arguments = {name: value for name, value in wish.arguments.items() if name in properties}
        if not set(tool.parameters.get("required", ())) <= set(arguments):
            return None
        return Wish(name=wish.name, arguments=arguments)


def work(request: Request, scene: Scene) -> Steps:
    """Runs all steps of a request; their answers are joined at the end."""
    said: list[str] = []
    for number, step in enumerate(request.steps, 1):
        outcome = yield from _step(step, scene)
        said.append(outcome.text)
        left = request.steps[number:]
        if outcome.failed and left:
            undone = ", ".join(code(later.words) for later in left)
            said.append(scene.voice("stopped", steps=undone))
        if outcome.failed:
            return Outcome(text="\n\n".join(said), failed=True)
    return Outcome(text="\n\n".join(said))


def advance(steps: Steps, rounds: tuple[Round, ...], scene: Scene) -> Wishes | Outcome:
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
        outcome: Outcome = end.value
        return outcome
    return Outcome(text=scene.voice("too_many_steps", count=MAX_ROUNDS), failed=True)


def _step(step: Intent, scene: Scene) -> Steps:
    kind = scene.voice.language.kinds.get(step.kind)
    filled = yield from _fill_slots(step, kind, scene)
    if isinstance(filled, Outcome):
        return filled
    tools = frozenset(scene.tools)
    task = Task(filled, scene.voice, lambda: scene.focus, scene.earlier, tools)
    try:
        return (yield from plan_for(filled.kind)(task))
    except CallFailed as error:
        return failure(task, error.result, error.script)


def _fill_slots(
    step: Intent, kind: Kind | None, scene: Scene
) -> Generator[Wishes, Results, Intent | Outcome]:
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
                return Outcome(text=scene.voice(f"ask.{name}.plainly"), failed=True)
            slots[name] = answer
    return replace(step, slots=slots, references={})


def _ask_user(name: str, scene: Scene) -> Generator[Wishes, Results, str]:
    """Asks the user through the tool for questions, if available."""
    if "clarify" not in scene.tools:
        return ""
    items = scene.focus.items[:MAX_CHOICES] if name == "path" else ()
    options = {"choices": list(items)} if len(items) > 1 else {}
    result = yield from call("clarify", question=scene.voice(f"ask.{name}"), **options)
    answer = result.details.get("user_response")
    return answer.strip() if succeeded(result) and isinstance(answer, str) else ""


def _matches(wanted: Wishes, done: Round) -> bool:
    """True if the round consists of these calls, each with a result."""
    if len(done.calls) != len(wanted) or len(done.results) != len(wanted):
        return False
    return all(_is_call_of(w, c) for w, c in zip(wanted, done.calls, strict=True))


def _is_call_of(wish: Wish, made: ToolCall) -> bool:
    return made.name == wish.name and made.arguments == wish.arguments


def _unknown_calls(scene: Scene, last: Round) -> Outcome:
    """The calls are not from this plan: another model started the turn, or the plan changed."""
    names = ", ".join(code(made.name) for made in last.calls)
    text = scene.voice("foreign", tools=names or code("?"))
    shown = [result.text for result in last.results if result.text.strip()]
    if shown:
        text += "\n\n" + scene.voice.block("\n".join(shown).splitlines(), limit=30)
    return Outcome(text=text, failed=True)


def _without_tool(scene: Scene, wish: Wish) -> ToolResult:
    words = scene.voice("no_tool", tool=code(wish.name))
    details: JsonObject = {"missing_tool": wish.name}
    return ToolResult(
        call_id="", name=wish.name, parts=(Text(text=words),), failed=True, details=details
    )
