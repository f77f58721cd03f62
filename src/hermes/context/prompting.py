"""Builds the prompts of a session: the system text, the environment and prefilled messages."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import Value
from hermes.config.home import Home
from hermes.config.schema import Effort
from hermes.config.settings import AgentSettings, Settings
from hermes.context.long_arguments import ArgumentShortener
from hermes.context.persona import read_soul
from hermes.context.pii import hides_people, without_people
from hermes.context.project_files import (
    ProjectContext,
    Scan,
    limit_for,
    no_scan,
    project_context,
)
from hermes.context.system import (
    Layer,
    PromptFacts,
    Slots,
    build_layers,
    platform_hint,
    with_model,
)
from hermes.core.messages import AssistantMessage, Message, Text, user_says
from hermes.core.prompt import Prompt, ToolSpec
from hermes.core.session_deps import View
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import Transcript
from hermes.models.model_ref import ModelChoice
from hermes.workspaces.shell import describe_backend, is_remote_backend

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

NO_PYTHON = "Python is not installed."
ONLY_PYTHON3 = "Python: python3."
NO_PIP = "pip is missing; use {}."
MANAGED = "pip: in virtual environments only."
WSL = "This is Windows Subsystem for Linux: Windows drives are under /mnt."
TERMUX = "This is Termux on Android: install programs with pkg; there is no root."
_KERNEL = Path("/proc/sys/kernel/osrelease")
_MARK = "EXTERNALLY-MANAGED"


def toolchain_notes(env: Mapping[str, str], kernel: Path = _KERNEL) -> str:
    """Describe peculiarities of this machine: its system and its Python. Inspects files only and
    starts no process: this runs for every new session."""
    system = TERMUX if "TERMUX_VERSION" in env else ""
    with suppress(OSError):
        if not system and "microsoft" in kernel.read_text().lower():
            system = WSL
    return " ".join(filter(None, (system, *_python(env.get("PATH", "")))))


def _python(path: str) -> tuple[str, ...]:
    three, plain = _which("python3", path), _which("python", path)
    if not three and not plain:
        return (NO_PYTHON,)
    name = "" if plain else ONLY_PYTHON3
    if _which("pip", path) or _which("pip3", path):
        return (name, MANAGED if _is_managed(three or plain) else "")
    other = next((each for each in ("uv", "conda", "pipx") if _which(each, path)), "")
    return (name, NO_PIP.format(other) if other else "pip is missing.")


def _which(name: str, path: str) -> str:
    for folder in path.split(os.pathsep):
        if folder and os.access(found := f"{folder}/{name}", os.X_OK):
            return found
    return ""


def _is_managed(python: str) -> bool:
    """Return whether the operating system manages this Python's packages (PEP 668)."""
    if (Path(python).parent.parent / "pyvenv.cfg").exists():
        return False
    real = Path(python).resolve()
    return (real.parent.parent / "lib" / real.name / _MARK).exists()


DEFAULT_PROFILE = "default"

REDUCED = "You are a helpful AI assistant named Hermes."


class SystemText(NamedTuple):
    """The layers of a session's system prompt, warnings about truncated files, and the paths of
    the project's files in it."""

    layers: tuple[Layer, ...]
    warnings: tuple[str, ...]
    files: tuple[str, ...] = ()


def system_text(
    request: SessionRequest,
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
    toolchain: str = "",
) -> SystemText:
    """Build the system prompt of a session. `slots` are the current blocks of other packages. Files
    pass `scan`; user-written files and settings pass `clean`. `toolchain` describes peculiarities
    of this machine."""
    if choice.reduced:
        # Very small models lose track of the question after a long system prompt.
        return SystemText((Layer(name="identity", text=REDUCED),), ())
    limit = settings.context_file_max_chars
    project = ProjectContext()
    files = request.context_files and not request.only_memory
    if files and not is_remote_backend(settings.terminal):
        project = project_context(Path(cwd), window=choice.window, max_chars=limit, scan=scan)
    soul = ""
    if files or request.soul:
        soul = read_soul(home, limit or limit_for(choice.window), scan)
    agent = settings.agent
    backend = describe_backend(settings.terminal)
    machine = f"Files and commands are not on this machine: {backend}." if backend else toolchain
    hints = filter(None, (machine, agent.environment_hint))
    parts = build_layers(
        PromptFacts(
            platform=request.platform,
            cwd=cwd,
            system=f"{platform.system()} ({platform.machine()})",
            model=choice.model,
            provider=choice.provider,
            now=now,
            hint=clean("\n".join(hints)),
            platform_hint=clean(platform_hint(request.platform, settings.platform_hints)),
            profile="" if home.profile == DEFAULT_PROFILE else home.profile,
            window=choice.window,
            session_id=session_id,
        ),
        soul=clean(soul),
        tools=tools,
        completion=agent.task_completion_guidance,
        parallel=agent.parallel_tool_call_guidance,
        enforcement=agent.tool_use_enforcement,
        extra=clean("\n\n".join(filter(None, (request.extra, agent.system_prompt)))),
        project=clean(project.text),
        slots=slots if request.context_files else None,
    )
    return SystemText(parts, project.warnings, project.files)


def prompt_view(
    tools: tuple[ToolSpec, ...],
    settings: Settings,
    *,
    source: str = "cli",
    first: tuple[Message, ...] = (),
) -> View:
    """Return the view that decides what the model sees of a transcript. `first` are messages sent
    before all others and never stored."""
    # Reuse one string object per text, so that it is measured and encoded once.
    texts: dict[tuple[str, str, str, str], str] = {}
    shorten = ArgumentShortener()

    def view(transcript: Transcript) -> Prompt:
        system, overlay = transcript.system, transcript.overlay.text
        key = (system, overlay, transcript.model, transcript.provider)
        if key not in texts:
            opened, now = transcript.opened, (transcript.model, transcript.provider)
            if opened and (opened.model, opened.provider) != now:
                # Switching models starts with an empty cache anyway.
                system = with_model(system, *now)
            texts[key] = f"{system}\n\n{overlay}" if overlay else system
        return Prompt(
            system=texts[key],
            messages=(*first, *shorten(transcript.seen)),
            tools=tools,
            max_tokens=settings.model.max_tokens,
            effort=effort_for(settings.agent, transcript.model),
        )

    if hides_people(source, enabled=settings.privacy.redact_pii):
        return without_people(view)
    return view


def effort_for(agent: AgentSettings, model: str) -> Effort:
    """Return the reasoning effort for a model. If several overrides match its name, the longest one
    applies."""
    parts = [part for part in agent.reasoning_overrides if part.lower() in model.lower()]
    return agent.reasoning_overrides[max(parts, key=len)] if parts else agent.reasoning_effort


class PrefillLine(Value):
    role: Literal["user", "assistant"]
    content: str


def prefill_file(settings: Settings, home: Home) -> Path | None:
    """Return the file with the prefilled messages, if one is configured."""
    if not settings.prefill_messages_file:
        return None
    return home.root / Path(settings.prefill_messages_file).expanduser()


def prefill_messages(run: RunContext) -> tuple[Message, ...]:
    """Return the prefilled messages. An unusable file is reported once and skipped."""
    if (file := prefill_file(run.settings, run.home)) is None:
        return ()
    try:
        lines = decode(tuple[PrefillLine, ...], file.read_bytes())
    except (OSError, DecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        notice = f"prefill_messages_file: {file} is skipped ({why})."
        if notice not in run.notices:
            run.notices.append(notice)
        return ()
    return tuple(
        user_says(line.content)
        if line.role == "user"
        else AssistantMessage(parts=(Text(text=line.content),))
        for line in lines
    )
