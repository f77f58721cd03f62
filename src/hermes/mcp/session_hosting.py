"""Services that a session offers to MCP servers: sampling, images, taint tracking."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.atomic_files import replace_file
from hermes.codec.values import JsonObject, JsonValue, replace
from hermes.config.provider_settings import AuxiliaryTaskSettings
from hermes.core.ports import Workspace
from hermes.core.prompt import Prompt, Reply
from hermes.mcp.calls import CallServices, FileWatch
from hermes.mcp.server import McpServer
from hermes.models.side_model import MAIN, SideModel
from hermes.policy.taint.tracker import LocalTaintTracker

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.models.models import Models
    from hermes.policy.rules import SessionPolicy
    from hermes.policy.taint.registry import TaintRegistry

MAX_PATHS = 20
MAX_PATH_CHARS = 400


def file_watch(
    rules: SessionPolicy, taint: Callable[[], TaintRegistry], redact: Callable[[str], str]
) -> FileWatch:
    """Return a watch that marks files written during a call as tainted. For calls declared as
    read-only the folder is not scanned; written files are still detected by their time."""

    def watch(
        workspace: Workspace, arguments: JsonObject, read_only: bool
    ) -> AbstractAsyncContextManager[None]:
        tracker = LocalTaintTracker(rules, taint(), redact)
        names = list(paths_in(arguments))[:MAX_PATHS]
        # A remote session has no project folder on this machine.
        root = next(iter(names), "") if workspace.is_remote else workspace.root
        if not root or not tracker.has_untrusted_text:
            return nullcontext()
        return tracker.track_command(root, names, look=not read_only and not workspace.is_remote)

    return watch


def paths_in(value: JsonValue) -> Iterator[str]:
    """Yield absolute paths in the arguments."""
    if isinstance(value, str):
        if value.startswith(("/", "~/")) and len(value) < MAX_PATH_CHARS and "\n" not in value:
            yield str(Path(value).expanduser())
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from paths_in(each)


log = logging.getLogger(__name__)

TASK = "mcp"
SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


def guest_model(run: RunContext, models: Models, session: Session, model: str = "") -> SideModel:
    """Return the model for MCP servers and plugins: `model` if it is set, else that of the
    settings, else the main model."""
    settings = run.settings
    task_settings = settings.auxiliary.mcp
    if model:
        task_settings = AuxiliaryTaskSettings(model=model)
    elif task_settings == AuxiliaryTaskSettings():
        task_settings = AuxiliaryTaskSettings(provider=MAIN)
    own = replace(settings, auxiliary=replace(settings.auxiliary, mcp=task_settings))
    return SideModel(models, own, session.transcript, session.tell)


def call_services(
    run: RunContext, models: Models, find_session: Callable[[], Session], watch: FileWatch
) -> CallServices:
    """Return the services of one session, which pays for sampling within its caps."""

    async def sample(server: McpServer, prompt: Prompt, hints: tuple[str, ...]) -> Reply:
        session = find_session()
        # The configured model, else the first allowed model hint of the server.
        allowed = (hint for hint in hints if hint in server.sampling.allowed_models)
        model = server.sampling.model or next(allowed, "")
        auxiliary = guest_model(run, models, session, model)
        reply = await auxiliary.ask(TASK, prompt, session.meter)
        log.info(
            "MCP server sampled the model",
            extra={
                "server": server.name,
                "prompt_tokens": reply.usage.prompt,
                "answer_tokens": reply.usage.output,
            },
        )
        return reply

    def save_image(data: bytes, kind: str) -> str:
        folder = run.home.ensure_folder(run.home.cache / "images")
        file = folder / f"{hashlib.sha256(data).hexdigest()}{SUFFIXES.get(kind, '.png')}"
        if not file.exists():
            replace_file(file, data, durable=False)
        return str(file)

    return CallServices(sampler=sample, keep_image=save_image, watch=watch)
