"""The system prompt: layers in a fixed order, written once per session and never changed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hermes.codec.values import Value

DEFAULT_IDENTITY = (
    "You are Hermes, a helpful and knowledgeable assistant who gets things done with tools. "
    "Be direct and useful rather than long. Say so when you are not sure."
)
COMPLETION = (
    "Finish the job: deliver a working result, not a plan or a stub, and check it with real "
    "output. If something is in the way, say exactly what failed. Never invent results."
)
PARALLEL = (
    "Call tools that do not depend on each other together in one reply; keep dependent steps apart."
)
ENFORCEMENT = (
    "When you say that you will do something, do it in the same reply. Keep going until the task "
    "is done; do not end with a promise. Use tools for arithmetic, time, files and git."
)
ENFORCED_FAMILIES = ("gpt", "codex", "gemini", "gemma", "grok", "glm", "qwen", "deepseek")
PLATFORMS = {
    "cli": "You are in a terminal: short Markdown reads well, wide tables do not. "
    "Name files by their path.",
    "api": "Follow the format that the client asks for.",
}


class Layer(Value):
    """A named piece of the system prompt; empty ones vanish."""

    name: str
    text: str


class Surroundings(Value):
    """What the prompt tells about the place where it runs."""

    platform: str
    cwd: str
    system: str
    model: str
    provider: str
    now: float
    hint: str = ""


def layers(
    here: Surroundings,
    *,
    soul: str = "",
    tools: Sequence[str] = (),
    completion: bool = True,
    parallel: bool = True,
    extra: str = "",
    project: str = "",
) -> tuple[Layer, ...]:
    """All layers that have something to say, in the order in which they are sent."""
    enforced = tools and any(family in here.model.lower() for family in ENFORCED_FAMILIES)
    return tuple(
        layer
        for layer in (
            Layer(name="identity", text=soul.strip() or DEFAULT_IDENTITY),
            Layer(name="completion", text=COMPLETION if tools and completion else ""),
            Layer(name="parallel calls", text=PARALLEL if tools and parallel else ""),
            Layer(name="tool use", text=ENFORCEMENT if enforced else ""),
            Layer(name="environment", text=_environment(here)),
            Layer(name="platform", text=PLATFORMS.get(here.platform, "")),
            Layer(name="caller", text=extra.strip()),
            Layer(name="project files", text=project),
            Layer(name="facts", text=_facts(here)),
        )
        if layer.text
    )


def join(parts: Sequence[Layer]) -> str:
    return "\n\n".join(layer.text for layer in parts)


def _environment(here: Surroundings) -> str:
    text = f"You work on {here.system}, in the folder {here.cwd}."
    return f"{text} {here.hint}".strip()


def _facts(here: Surroundings) -> str:
    # The date alone, so that the text stays the same all day and caches hold.
    day = time.strftime("%A, %B %d, %Y", time.localtime(here.now))
    return f"Conversation started: {day}\nModel: {here.model}\nProvider: {here.provider}"
