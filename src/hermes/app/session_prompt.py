"""The fixed beginning of a session's requests, and its size."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes.codec.json import encode
from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import Value
from hermes.context.persona import write_default_soul
from hermes.context.project_files import file_scan
from hermes.context.prompting import SystemText, system_text, toolchain_notes
from hermes.context.system import Slots
from hermes.core.session_request import SessionRequest
from hermes.memory.snapshots import external_block, session_memory
from hermes.models.model_ref import ModelChoice
from hermes.skills.session_index import skill_index
from hermes.tools.toolbox import SEARCHING, resolve_toolsets, wanted_names

if TYPE_CHECKING:
    from hermes.app.app import App


class SessionPrompt(NamedTuple):
    """The fixed beginning of a session's requests."""

    text: SystemText
    # The names of the tools in every request.
    tools: tuple[str, ...]


def session_prompt(
    app: App,
    request: SessionRequest,
    choice: ModelChoice,
    cwd: str,
    *,
    memory: str = "",
    only_look: bool = False,
) -> SessionPrompt:
    """Build the system prompt and choose the tools of a new session. With `only_look`, nothing is
    written."""
    if request.child is not None:
        from hermes.delegation.prompt import child_text  # most sessions are no children

        child, scan = request.child, file_scan(app.context, cwd)
        return SessionPrompt(child_text(app.context, child, choice, cwd, scan), child.tools)
    names = wanted_names(app.context.settings, platform=request.platform, reduced=choice.reduced)
    if request.toolsets:
        # Without tool search, which would bypass the selection.
        chosen = set(resolve_toolsets(request.toolsets)) - set(SEARCHING)
        tools = app.tools.filter_known(name for name in names if name in chosen)
    else:
        tokens = app.context.settings.context.direct_tool_tokens
        tools = app.tools.choose_direct(names, tokens, more=request.brings_tools)
    skills = skill_index(
        app.context.settings,
        app.context.home,
        platform=request.platform,
        cwd=cwd,
        tools=tools,
        only_look=only_look,
        seed=not app.shared.is_seeded,
        index_cache=app.shared.skill_index_cache,
    )
    if not only_look and not app.shared.is_seeded:
        write_default_soul(app.context.home)
        app.shared.is_seeded = True
    text = system_text(
        request,
        choice,
        app.context.settings,
        app.context.home,
        cwd=cwd,
        tools=tools,
        now=app.context.world.clock.now(),
        slots=Slots(
            memory=memory,
            skills=skills,
            external_memory=external_block(app.context, lambda: app.memory, request),
        ),
        session_id=request.session_id if request.tell_id else "",
        scan=file_scan(app.context, cwd),
        clean=app.context.redactor.text,
        toolchain=_toolchain_notes(app, tools),
    )
    return SessionPrompt(text, tools)


def _toolchain_notes(app: App, tools: tuple[str, ...]) -> str:
    enabled = app.context.settings.agent.environment_probe and "terminal" in tools
    return toolchain_notes(app.context.env) if enabled else ""


class PromptSize(Value):
    """The size of one part of the prompt."""

    part: str
    name: str
    bytes: int
    # An estimate: a quarter of the bytes, rounded up.
    tokens: int


async def prompt_sizes(app: App, request: SessionRequest) -> tuple[PromptSize, ...]:
    """Return the sizes of a new session's prompt in this folder. Nothing is sent."""
    choice = await app.models.choose()
    memory = await session_memory(app.context, lambda: app.memory, request)
    app.shared.images.offer(only_look=True)
    app.shared.offer_cron()
    app.shared.offer_moa()
    app.shared.offer_web()
    text, names = session_prompt(
        app, request, choice, app.cwd(request), memory=memory.text, only_look=True
    )
    layers = [_size("system", layer.name, layer.text.encode()) for layer in text.layers]
    tools = [_size("tool", spec.name, encode(spec)) for spec in app.tools.choose(names).specs]
    return (*layers, *tools)


def _size(part: str, name: str, data: bytes) -> PromptSize:
    return PromptSize(part=part, name=name, bytes=len(data), tokens=tokens_of_size(len(data)))
