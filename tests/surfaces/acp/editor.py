"""An editor: the official library's own client, in front of the real program."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.helpers import SessionUpdate
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    DeniedOutcome,
    FileSystemCapabilities,
    InitializeResponse,
    KillTerminalResponse,
    PermissionOption,
    PromptResponse,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    WriteTextFileResponse,
)

from tests.durability.kills import without_skills


class Editor:
    """`answers` are the ids of options to choose, in order; then nothing is chosen any more."""

    def __init__(self) -> None:
        self.updates: list[SessionUpdate] = []
        self.asked: list[tuple[ToolCallUpdate, list[str]]] = []
        self.answers: list[str] = []
        self.buffers: dict[str, str] = {}
        self.silent = False
        self.shells: dict[str, Process] = {}
        self.words: dict[str, bytes] = {}
        self.released: list[str] = []
        self._news = asyncio.Event()
        self.agent: ClientSideConnection
        self.hello: InitializeResponse

    @property
    def text(self) -> str:
        return "".join(
            update.content.text
            for update in self.updates
            if isinstance(update, AgentMessageChunk)
            and isinstance(update.content, TextContentBlock)
        )

    @property
    def calls(self) -> list[ToolCallStart]:
        return [update for update in self.updates if isinstance(update, ToolCallStart)]

    @property
    def endings(self) -> list[str | None]:
        return [
            update.status
            for update in self.updates
            if isinstance(update, ToolCallProgress) and update.status in ("completed", "failed")
        ]

    async def say(self, session_id: str, text: str) -> PromptResponse:
        return await self.agent.prompt(session_id, [text_block(text)])

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for updates until it is so."""
        async with asyncio.timeout(60):
            while not holds():
                self._news.clear()
                await self._news.wait()

    # What the protocol asks of a client.

    def on_connect(self, conn: Any) -> None:
        return

    async def session_update(self, session_id: str, update: SessionUpdate, **_: Any) -> None:
        self.updates.append(update)
        self._news.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, [option.option_id for option in options]))
        if self.silent:
            await asyncio.sleep(3_600)
        if not self.answers:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = AllowedOutcome(outcome="selected", option_id=self.answers.pop(0))
        return RequestPermissionResponse(outcome=chosen)

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        if path not in self.buffers:
            raise RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=self.buffers[path])

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse:
        self.buffers[path] = content
        await asyncio.to_thread(Path(path).write_text, content)
        return WriteTextFileResponse()

    async def create_terminal(
        self, session_id: str, command: str, args: list[str], cwd: str, **_: Any
    ) -> CreateTerminalResponse:
        id = f"terminal-{len(self.shells)}"
        self.shells[id] = await asyncio.create_subprocess_exec(
            *(command, *args),
            cwd=cwd,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self.words[id] = b""
        return CreateTerminalResponse(terminal_id=id)

    async def terminal_output(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> TerminalOutputResponse:
        shell = self.shells[terminal_id]
        assert shell.stdout is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                while data := await shell.stdout.read(1000):
                    self.words[terminal_id] += data
                await shell.wait()
        code = shell.returncode
        status = None if code is None else TerminalExitStatus(exit_code=code if code >= 0 else None)
        text = self.words[terminal_id].decode()
        return TerminalOutputResponse(output=text, truncated=False, exit_status=status)

    async def kill_terminal(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> KillTerminalResponse:
        os.killpg(self.shells[terminal_id].pid, signal.SIGKILL)
        await self.shells[terminal_id].wait()
        return KillTerminalResponse()

    async def release_terminal(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> ReleaseTerminalResponse:
        self.released.append(terminal_id)
        return ReleaseTerminalResponse()


@asynccontextmanager
async def editor(
    home: Path,
    model_url: str,
    *,
    files: bool = False,
    terminal: bool = False,
    settings: str = "",
) -> AsyncIterator[Editor]:
    configure(home, model_url, settings)
    client = Editor()
    env = {**os.environ, "HERMES_HOME": str(home), "HOME": str(home.parent)}
    hermes = str(Path(sys.executable).with_name("hermes"))
    client_side: Any = client
    async with spawn_agent_process(
        client_side, hermes, "acp", env=env, use_unstable_protocol=True
    ) as (agent, _process):
        client.agent = agent
        client.hello = await agent.initialize(
            PROTOCOL_VERSION,
            ClientCapabilities(
                fs=FileSystemCapabilities(read_text_file=files, write_text_file=files),
                terminal=terminal,
            ),
        )
        yield client


def configure(home: Path, model_url: str, settings: str) -> None:
    if not home.exists():
        without_skills(home)
    (home / "config.yaml").write_text(
        f'model: {{default: scripted, provider: custom, base_url: "{model_url}/v1"}}\n'
        f"auxiliary: {{title_generation: {{provider: none}}}}\n{settings}"
    )
