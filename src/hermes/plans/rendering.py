"""Plans as text, for the model and for people."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.plans.model import ExecutionStep, PlanState, Problem

SIGNS = {
    "pending": "[ ]",
    "running": "[>]",
    "done": "[x]",
    "failed": "[!]",
    "skipped": "[-]",
    "cancelled": "[-]",
    "unknown": "[?]",
}
HEAD_CHARS, TAIL_CHARS = 1_000, 300
INSTRUCTION = (
    "Answer the person from these results. Name every step that failed, was skipped or has an "
    "unknown outcome, and do not claim what it would have done."
)


def render_state(state: PlanState) -> str:
    """The plan as a tree: each step below the last step that it waits for."""
    lines = [f"{state.plan.plan_id} [{state.status}] {state.plan.goal}"]
    depth: dict[str, int] = {}
    for step in _in_order(state):
        depth[step.step_id] = max((depth.get(n, 0) + 1 for n in step.depends_on), default=0)
        lines.append("  " * depth[step.step_id] + _line(state, step))
    return "\n".join((*lines, *(f"Note: {each}" for each in state.warnings)))


def _line(state: PlanState, step: ExecutionStep) -> str:
    at = state.state(step.step_id)
    after = f" after {', '.join(step.depends_on)}" if step.depends_on else ""
    error = f" — {' '.join(at.error.split())[:160]}" if at.error else ""
    name = f"{step.title} ({step.tool_name})" if step.title else step.tool_name
    return f"{SIGNS[at.status]} {step.step_id}: {name}{after}{error}"


def _in_order(state: PlanState) -> list[ExecutionStep]:
    """The steps in an order in which none comes before a step that it needs."""
    left, done = list(state.plan.steps), set[str]()
    ordered: list[ExecutionStep] = []
    while left:
        ready = [step for step in left if done.issuperset(step.depends_on)]
        if not ready:
            return [*ordered, *left]
        ordered += ready
        done |= {step.step_id for step in ready}
        left = [step for step in left if step.step_id not in done]
    return ordered


def render_results(state: PlanState) -> str:
    """What the model needs for its answer: all steps, with the beginning and end of results."""
    parts = [render_state(state)]
    for step in state.plan.steps:
        at = state.state(step.step_id)
        if at.status == "done" and at.text:
            parts.append(f"--- {step.step_id} ---\n{_shorten(at.text)}")
    return "\n".join((*parts, INSTRUCTION))


def _shorten(text: str) -> str:
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        return text
    left_out = len(text) - HEAD_CHARS - TAIL_CHARS
    return f"{text[:HEAD_CHARS]}\n[... {left_out} characters ...]\n{text[-TAIL_CHARS:]}"


def render_problems(problems: Iterable[Problem]) -> str:
    lines = (
        f"- {' '.join(filter(None, (each.step_id, each.field)))}: {each.message}".replace(
            "- : ", "- "
        )
        for each in problems
    )
    return "\n".join(("The plan cannot run, and nothing was run:", *lines))
