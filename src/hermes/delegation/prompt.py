"""What a child session is told: a short system prompt, and its task as the first message."""

from __future__ import annotations

import platform
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject
from hermes.config.run_context import RunContext
from hermes.context.project_files import ProjectContext, Scan, project_context
from hermes.context.prompting import SystemText
from hermes.context.system import PromptFacts, build_layers
from hermes.core.session_request import ChildOptions
from hermes.delegation.tasks import Task
from hermes.models.model_ref import ModelChoice
from hermes.workspaces.shell import describe_backend, is_remote_backend

IDENTITY = (
    "You are Hermes, working on one task for another agent, which sees only your last message. "
    "You know nothing of its conversation beyond the task. Nobody answers questions: decide "
    "yourself, and say what you assumed. End with a short report: what you did, what you found, "
    "which files you changed, and what went wrong."
)
SCHEMA = "Your last message must be only JSON that fits this schema:\n{}"
CORRECTION = (
    "Your last message does not fit the required schema: {}\n"
    "Answer again, with nothing but the corrected JSON."
)
IMAGES = "Images (files): {}"


def child_text(
    run: RunContext, child: ChildOptions, choice: ModelChoice, cwd: str, scan: Scan
) -> SystemText:
    """Build the system prompt of a child session: no persona, no memory, no skills."""
    settings, clean = run.settings, run.redactor.text
    project = ProjectContext()
    if not is_remote_backend(settings.terminal):
        limit = settings.context_file_max_chars
        project = project_context(Path(cwd), window=choice.window, max_chars=limit, scan=scan)
    backend = describe_backend(settings.terminal)
    where = f"Files and commands are not on this machine: {backend}." if backend else ""
    layers = build_layers(
        PromptFacts(
            platform="",
            cwd=cwd,
            system=f"{platform.system()} ({platform.machine()})",
            model=choice.model,
            provider=choice.provider,
            now=run.world.clock.now(),
            hint=clean(where),
            window=choice.window,
        ),
        soul=IDENTITY,
        tools=child.tools,
        completion=settings.agent.task_completion_guidance,
        parallel=settings.agent.parallel_tool_call_guidance,
        enforcement=settings.agent.tool_use_enforcement,
        project=clean(project.text),
    )
    return SystemText(layers, project.warnings, project.files)


def task_message(task: Task) -> str:
    """Return the first message of a child session."""
    parts = [task.goal.strip(), task.context.strip()]
    if task.images:
        parts.append(IMAGES.format(", ".join(task.images)))
    if task.output_schema is not None:
        parts.append(SCHEMA.format(encode(task.output_schema).decode()))
    return "\n\n".join(filter(None, parts))


def schema_in(message: str) -> JsonObject | None:
    """Return the schema that `task_message` put at the end of a message."""
    _, mark, text = message.rpartition(SCHEMA.format(""))
    if not mark:
        return None
    try:
        return decode(dict, text)
    except DecodeError:
        return None
