"""What a session's requests begin with: the system text and the tools, fixed when it opens."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

from hermes.config.home import Home
from hermes.config.schema import Effort
from hermes.config.settings import AgentSettings, Settings
from hermes.context.pii import hides_people, without_people
from hermes.context.project_files import (
    ProjectContext,
    Scan,
    limit_for,
    no_scan,
    project_context,
)
from hermes.context.soul import read_soul
from hermes.context.system import Layer, PromptFacts, Slots, layers, platform_hint, with_model
from hermes.core.errors import NotFound
from hermes.core.events import Overlaid
from hermes.core.messages import Message
from hermes.core.prompt import Prompt, ToolSpec
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import Transcript
from hermes.core.turn import View
from hermes.models.choice import ModelChoice
from hermes.workspaces.shell import describe_backend, is_remote_backend

DEFAULT_PROFILE = "default"

REDUCED = "You are a helpful AI assistant named Hermes."


class SystemText:
    """The layers of a session's system prompt, and warnings about what was cut."""

    def __init__(self, parts: tuple[Layer, ...], warnings: tuple[str, ...]) -> None:
        self.layers = parts
        self.warnings = warnings


def system_text(
    opening: SessionRequest,
    choice: ModelChoice,
    settings: Settings,
    home: Home,
    *,
    cwd: str,
    tools: tuple[str, ...],
    now: float,
    slots: Slots | None = None,
    session_id: str = "",
    scan: Scan = no_scan,
    clean: Callable[[str], str] = str,
    unusual: str = "",
) -> SystemText:
    """`slots` are the blocks of other rooms as they are now; every file passes `scan` first. What
    people wrote into files and settings passes `clean`; our own words need not. `unusual` is what
    was found out about this machine."""
    if choice.reduced:
        # A very small model loses the question in a long introduction.
        return SystemText((Layer(name="identity", text=REDUCED),), ())
    limit = settings.context_file_max_chars
    project = ProjectContext()
    if opening.rules and not is_remote_backend(settings.terminal):
        project = project_context(Path(cwd), window=choice.window, max_chars=limit, scan=scan)
    soul = read_soul(home, limit or limit_for(choice.window), scan) if opening.rules else ""
    agent = settings.agent
    hints = filter(None, (_place(settings) or unusual, agent.environment_hint))
    parts = layers(
        PromptFacts(
            platform=opening.platform,
            cwd=cwd,
            system=f"{platform.system()} ({platform.machine()})",
            model=choice.model,
            provider=choice.provider,
            now=now,
            hint=clean("\n".join(hints)),
            platform_hint=clean(platform_hint(opening.platform, settings.platform_hints)),
            profile="" if home.profile == DEFAULT_PROFILE else home.profile,
            window=choice.window,
            session_id=session_id,
        ),
        soul=clean(soul),
        tools=tools,
        completion=agent.task_completion_guidance,
        parallel=agent.parallel_tool_call_guidance,
        enforcement=agent.tool_use_enforcement,
        extra=clean("\n\n".join(filter(None, (opening.extra, agent.system_prompt)))),
        project=clean(project.text),
        slots=slots if opening.rules else None,
    )
    return SystemText(parts, project.warnings)


def prompt_view(
    tools: tuple[ToolSpec, ...],
    settings: Settings,
    *,
    source: str = "cli",
    first: tuple[Message, ...] = (),
) -> View:
    """The one place that decides what the model sees of a transcript. `first` are messages that
    come before all others and are kept nowhere."""
    # The same text is the same object, so that nobody need measure or encode it twice.
    made: dict[tuple[str, str, str, str], str] = {}

    def view(transcript: Transcript) -> Prompt:
        system, overlay = transcript.system, transcript.overlay.text
        key = (system, overlay, transcript.model, transcript.provider)
        if key not in made:
            named = _model_line(transcript)
            made[key] = f"{named}\n\n{overlay}" if overlay else named
        return Prompt(
            system=made[key],
            messages=(*first, *transcript.seen) if first else transcript.seen,
            tools=tools,
            max_tokens=settings.model.max_tokens,
            effort=effort_for(settings.agent, transcript.model),
        )

    if hides_people(source, wanted=settings.privacy.redact_pii):
        return without_people(view)
    return view


def effort_for(agent: AgentSettings, model: str) -> Effort:
    """Of several parts of a model's name that have an effort of their own, the longest decides."""
    parts = [part for part in agent.reasoning_overrides if part.lower() in model.lower()]
    return agent.reasoning_overrides[max(parts, key=len)] if parts else agent.reasoning_effort


def _model_line(transcript: Transcript) -> str:
    """The system text, which names the model that was switched to. Whoever goes over to another
    model begins with an empty cache there in any case."""
    first, now = transcript.opened, (transcript.model, transcript.provider)
    if first is None or (first.model, first.provider) == now:
        return transcript.system
    return with_model(transcript.system, *now)


def _place(settings: Settings) -> str:
    words = describe_backend(settings.terminal)
    return f"Files and commands are not on this machine: {words}." if words else ""


def chosen_personality(settings: Settings) -> Overlaid | None:
    """What new sessions begin with, if the settings name one that there is."""
    if not settings.display.personality:
        return None
    # Few people set one.
    from hermes.context.personality_choice import overlay

    try:
        found = overlay(settings, settings.display.personality)
    except NotFound:
        return None
    return Overlaid(name=found.name, text=found.text) if found.text else None
