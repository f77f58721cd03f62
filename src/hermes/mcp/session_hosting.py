"""Services that a session offers to MCP servers: sampling, images, taint tracking."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import JsonObject, JsonValue, replace
from hermes.config.provider_settings import AuxiliaryTaskSettings
from hermes.core.ports import Workspace
from hermes.core.prompt import Prompt
from hermes.mcp.calls import CallServices, FileWatch, Sample, SampleRequest
from hermes.mcp.server import McpServer
from hermes.mcp.server_requests import content_of
from hermes.models.side_model import MAIN, SideModel
from hermes.policy.taint.tracker import LocalTaintTracker

if TYPE_CHECKING:
    from hermes.config.home import Home
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.mcp.calls import FileWatch
    from hermes.models.models import Models
    from hermes.policy.rules import Rules
    from hermes.policy.suspects.suspects import Suspects

MAX_PATHS = 20
MAX_PATH_CHARS = 400


def file_watch(
    rules: Rules, suspects: Callable[[], Suspects], redact: Callable[[str], str]
) -> FileWatch:
    """Returns a watch that marks files written during a call as tainted. For calls declared as
    read-only the folder is not scanned; written files are still detected by their time."""

    def watch(
        workspace: Workspace, arguments: JsonObject, read_only: bool
    ) -> AbstractAsyncContextManager[None]:
        tracker = LocalTaintTracker(rules, suspects(), redact)
        names = list(paths_in(arguments))[:MAX_PATHS]
        # A remote session has no project folder on this machine.
        root = next(iter(names), "") if workspace.is_remote else workspace.root
        if not root or not tracker.has_untrusted_text:
            return nullcontext()
        return tracker.track_command(root, names, look=not read_only and not workspace.is_remote)

    return watch


def paths_in(value: JsonValue) -> Iterator[str]:
    """Yields absolute paths in the arguments."""
    if isinstance(value, str):
        if value.startswith(("/", "~/")) and len(value) < MAX_PATH_CHARS and "\n" not in value:
            yield str(Path(value).expanduser())
    elif isinstance(value, dict):
        for each in value.values():
            yield from paths_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from paths_in(each)


log = logging.getLogger(__name__)

TASK = "mcp"
STOPS = {"done": "endTurn", "length": "maxTokens", "calls": "toolUse"}
SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


def call_services(
    run: RunContext, models: Models, find_session: Callable[[], Session], watch: FileWatch
) -> CallServices:
    """Returns the services of one session, which pays for sampling within its caps."""

    async def sample(server: McpServer, request: SampleRequest) -> Sample:
        session = find_session()
        transcript = session.transcript
        settings = run.settings
        task_settings = settings.auxiliary.mcp
        if model := _model(server, request):
            task_settings = AuxiliaryTaskSettings(model=model)
        elif task_settings == AuxiliaryTaskSettings():
            task_settings = AuxiliaryTaskSettings(provider=MAIN)
        auxiliary = SideModel(
            models,
            replace(settings, auxiliary=replace(settings.auxiliary, mcp=task_settings)),
            main=lambda: (transcript.model, transcript.provider),
            tell=session.tell,
        )
        prompt = Prompt(
            system=request.system,
            messages=request.messages,
            tools=request.tools,
            max_tokens=request.max_tokens,
        )
        reply = await auxiliary.ask(TASK, prompt, session.meter)
        log.info(
            "MCP server sampled the model",
            extra={
                "server": server.name,
                "prompt_tokens": reply.usage.prompt,
                "answer_tokens": reply.usage.output,
            },
        )
        return Sample(
            content=content_of(reply.message),
            model=reply.model,
            stop=STOPS.get(reply.message.stop, "endTurn"),
        )

    return CallServices(
        sampler=sample,
        keep_image=lambda data, kind: _save_image(run.home, data, kind),
        watch=watch,
    )


def _model(server: McpServer, request: SampleRequest) -> str:
    """Returns the configured model, else the first allowed model hint of the server."""
    if server.sampling.model:
        return server.sampling.model
    allowed = server.sampling.allowed_models
    return next((hint for hint in request.hints if hint in allowed), "")


def _save_image(home: Home, data: bytes, kind: str) -> str:
    folder = home.ensure_folder(home.cache / "images")
    file = folder / f"{hashlib.sha256(data).hexdigest()}{SUFFIXES.get(kind, '.png')}"
    if not file.exists():
        partial = folder / f".{file.name}.{os.getpid()}"
        partial.write_bytes(data)
        partial.replace(file)
    return str(file)
