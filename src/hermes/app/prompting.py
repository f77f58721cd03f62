"""What a session's requests begin with: the system text and the tools, fixed when it opens."""

from __future__ import annotations

import platform
from pathlib import Path

from hermes.app.models.choice import Choice
from hermes.app.opening import Opening
from hermes.app.skill_index import skill_index
from hermes.config.home import Home
from hermes.config.settings import Settings
from hermes.context.files import limit_for, project_context
from hermes.context.system import Layer, Surroundings, layers
from hermes.core.messages import Message
from hermes.core.prompt import Prompt, ToolSpec
from hermes.core.turn import View

REDUCED = "You are a helpful AI assistant named Hermes."


class SystemText:
    """The layers of a session's system prompt, and warnings about what was cut."""

    def __init__(self, parts: tuple[Layer, ...], warnings: tuple[str, ...]) -> None:
        self.layers = parts
        self.warnings = warnings


def system_text(
    opening: Opening,
    choice: Choice,
    settings: Settings,
    home: Home,
    *,
    cwd: str,
    tools: tuple[str, ...],
    now: float,
    only_look: bool = False,
) -> SystemText:
    if choice.reduced:
        # A very small model loses the question in a long introduction.
        return SystemText((Layer(name="identity", text=REDUCED),), ())
    limit = settings.context_file_max_chars
    project = project_context(Path(cwd), window=choice.window, max_chars=limit)
    soul = _soul(home, limit or limit_for(choice.window)) if opening.rules else ""
    here = Surroundings(
        platform=opening.platform,
        cwd=cwd,
        system=f"{platform.system()} ({platform.machine()})",
        model=choice.model,
        provider=choice.provider,
        now=now,
        hint=settings.agent.environment_hint,
    )
    parts = layers(
        here,
        soul=soul,
        tools=tools,
        completion=settings.agent.task_completion_guidance,
        parallel=settings.agent.parallel_tool_call_guidance,
        extra="\n\n".join(text for text in (opening.extra, settings.agent.system_prompt) if text),
        project=project.text if opening.rules else "",
    )
    index = skill_index(
        settings, home, platform=opening.platform, cwd=cwd, tools=tools, only_look=only_look
    )
    return SystemText(_with_skills(parts, index), project.warnings if opening.rules else ())


def _with_skills(parts: tuple[Layer, ...], index: str) -> tuple[Layer, ...]:
    """Before what tells of the place, as it stays the same from place to place."""
    if not index:
        return parts
    at = next((n for n, layer in enumerate(parts) if layer.name == "environment"), len(parts))
    return (*parts[:at], Layer(name="skills", text=index), *parts[at:])


def view_of(system: str, tools: tuple[ToolSpec, ...], settings: Settings) -> View:
    """The one place that decides what the model sees of a transcript."""

    def view(messages: tuple[Message, ...]) -> Prompt:
        return Prompt(
            system=system,
            messages=messages,
            tools=tools,
            max_tokens=settings.model.max_tokens,
            effort=settings.agent.reasoning_effort,
        )

    return view


def _soul(home: Home, limit: int) -> str:
    try:
        return home.soul.read_text("utf-8", "replace")[:limit]
    except OSError:
        return ""
