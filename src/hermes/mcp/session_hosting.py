"""What MCP servers may use of a session: sampling, images, taint tracking."""

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
from hermes.policy.taint.sight import LocalTaintTracker

if TYPE_CHECKING:
    from hermes.config.home import Home
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.mcp.calls import FileWatch
    from hermes.models.models import Models
    from hermes.policy.rules import Rules
    from hermes.policy.suspects.suspects import Suspects

MOST_PATHS = 20
LONGEST_PATH = 400


def watch_of(
    rules: Rules, suspects: Callable[[], Suspects], redact: Callable[[str], str]
) -> FileWatch:
    """A look for what was written is left out where the server says that it only reads: a file
    that it wrote all the same is still told by its time."""

    def watch(
        workspace: Workspace, arguments: JsonObject, reads: bool
    ) -> AbstractAsyncContextManager[None]:
        witness = LocalTaintTracker(rules, suspects(), redact)
        names = list(paths_in(arguments))[:MOST_PATHS]
        # Of a session that works elsewhere no folder of this machine is the project.
        root = next(iter(names), "") if workspace.is_remote else workspace.root
        if not root or not witness.has_untrusted_text:
            return nullcontext()
        return witness.track_command(root, names, look=not reads and not workspace.is_remote)

    return watch


def paths_in(value: JsonValue) -> Iterator[str]:
    """Texts that name a place of this machine by themselves."""
    if isinstance(value, str):
        if value.startswith(("/", "~/")) and len(value) < LONGEST_PATH and "\n" not in value:
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
ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


def hosting_of(
    run: RunContext, models: Models, find_session: Callable[[], Session], watch: FileWatch
) -> CallServices:
    """For one session: what a server's requests cost is booked there, under its caps."""

    async def sample(server: McpServer, request: SampleRequest) -> Sample:
        session = find_session()
        transcript = session.transcript
        settings = run.settings
        own = settings.auxiliary.mcp
        if model := _model(server, request):
            own = AuxiliaryTaskSettings(model=model)
        elif own == AuxiliaryTaskSettings():
            own = AuxiliaryTaskSettings(provider=MAIN)
        auxiliary = SideModel(
            models,
            replace(settings, auxiliary=replace(settings.auxiliary, mcp=own)),
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
            "a server used the model",
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
    """The settings' own choice, else what the server would like if it may choose that."""
    if server.sampling.model:
        return server.sampling.model
    allowed = server.sampling.allowed_models
    return next((hint for hint in request.hints if hint in allowed), "")


def _save_image(home: Home, data: bytes, kind: str) -> str:
    folder = home.ensure_folder(home.cache / "images")
    file = folder / f"{hashlib.sha256(data).hexdigest()}{ENDINGS.get(kind, '.png')}"
    if not file.exists():
        partial = folder / f".{file.name}.{os.getpid()}"
        partial.write_bytes(data)
        partial.replace(file)
    return str(file)
