"""The bytes on standard output: nothing but the protocol, however many sessions are at work."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.version import __version__

HERMES = str(Path(sys.executable).with_name("hermes"))


def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HERMES_HOME": str(tmp_path / "home"),
        "HERMES_INFERENCE_PROVIDER": "offline",
    }


class RawEditor:
    """Speaks the protocol by hand and says no to every question."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.updates: list[tuple[str, dict[str, Any]]] = []
        self.lines = 0
        self._numbers = itertools.count(1)
        self._news = asyncio.Event()

    async def read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.lines += 1
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("method") == "session/update":
                params = message["params"]
                self.updates.append((params["sessionId"], params["update"]))
                self._news.set()
            elif "method" in message:
                outcome = {"outcome": {"outcome": "cancelled"}}
                self._send({"id": message["id"], "result": outcome})
            else:
                self._waiting.pop(message["id"]).set_result(message)

    async def ask(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._send({"id": number, "method": method, "params": params})
        async with asyncio.timeout(60):
            return await answer

    def text_of(self, session: str) -> str:
        chunks = (update for id, update in self.updates if id == session)
        return json.dumps([each for each in chunks if "command" not in each["sessionUpdate"]])

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for updates until it is so."""
        async with asyncio.timeout(60):
            while not holds():
                self._news.clear()
                await self._news.wait()

    @property
    def commands(self) -> list[str]:
        return [
            command["name"]
            for _, update in self.updates
            if update["sessionUpdate"] == "available_commands_update"
            for command in update["availableCommands"]
        ]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


@asynccontextmanager
async def raw_editor(tmp_path: Path) -> AsyncIterator[RawEditor]:
    process = await asyncio.create_subprocess_exec(
        *(HERMES, "acp"),
        env=environment(tmp_path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=10_000_000,
    )
    editor = RawEditor(process)
    reading = asyncio.ensure_future(editor.read())
    try:
        yield editor
    finally:
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(60):
            assert await process.wait() == 0
            await reading


async def test_three_sessions_at_once_say_nothing_but_the_protocol(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir()
        (folder / f"only-in-{folder.name}").touch()
    async with raw_editor(tmp_path) as editor:
        hello = await editor.ask("initialize", protocolVersion=1, clientCapabilities={})
        assert hello["result"]["protocolVersion"] == 1

        async def visit(folder: Path) -> str:
            new = await editor.ask("session/new", cwd=str(folder), mcpServers=[])
            session = str(new["result"]["sessionId"])
            block = {"type": "text", "text": "list the files here"}
            done = await editor.ask("session/prompt", sessionId=session, prompt=[block])
            assert done["result"]["stopReason"] == "end_turn"
            return session

        sessions = [await visit(folders[0])]
        sessions += await asyncio.gather(*(visit(folder) for folder in folders[1:]))
        for folder, session in zip(folders, sessions, strict=True):
            text = editor.text_of(session)
            assert [each for each in folders if f"only-in-{each.name}" in text] == [folder]
        wrong = await editor.ask("session/fly", sessionId=sessions[0], modelId="x")
        assert wrong["error"]["code"] == -32601
    assert editor.lines > 10


def test_the_program_says_its_version_and_whether_it_is_ready(tmp_path: Path) -> None:
    def shown(*options: str) -> str:
        done = subprocess.run(
            [HERMES, "acp", *options],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    assert __version__ in shown("--version")
    assert shown("--check").startswith("Ready: ")


def test_without_an_editor_at_the_other_end_it_says_so_and_leaves(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        for target in (out, subprocess.DEVNULL):
            ended = subprocess.run(
                [HERMES, "acp"],
                env=environment(tmp_path),
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
            )
            assert ended.returncode == 2
            assert "configure `hermes acp` as an agent in the editor" in ended.stderr


async def test_the_model_is_switched_by_its_older_method(tmp_path: Path) -> None:
    async with raw_editor(tmp_path) as editor:
        await editor.ask("initialize", protocolVersion=1, clientCapabilities={})
        new = (await editor.ask("session/new", cwd=str(tmp_path), mcpServers=[]))["result"]
        assert new["models"]["currentModelId"] == "offline:offline-assistant"
        names = [each["modelId"] for each in new["models"]["availableModels"]]
        assert "offline:offline-assistant" in names
        session = new["sessionId"]
        chosen = await editor.ask(
            "session/set_model", sessionId=session, modelId="offline:offline-assistant"
        )
        assert chosen["result"] == {}
        missing = await editor.ask("session/set_model", sessionId=session, modelId="")
        assert missing["error"]["code"] == -32602
        unknown = await editor.ask("session/set_model", sessionId="none", modelId="x")
        assert "error" in unknown


async def test_commands_of_plugins_are_advertised_and_run(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "plugins" / "greet"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: greet\nprovides_commands: [greet]\n")
    (folder / "__init__.py").write_text(
        "def register(ctx):\n"
        "    ctx.register_command('greet', lambda who: f'Hello, {who}!', 'Say hello.', 'NAME')\n"
    )
    enable = [HERMES, "plugins", "enable", "greet", "--yes"]
    await asyncio.to_thread(
        subprocess.run, enable, env=environment(tmp_path), check=True, capture_output=True
    )
    async with raw_editor(tmp_path) as editor:
        await editor.ask("initialize", protocolVersion=1, clientCapabilities={})
        new = (await editor.ask("session/new", cwd=str(tmp_path), mcpServers=[]))["result"]
        block = {"type": "text", "text": "/greet Ada"}
        await editor.ask("session/prompt", sessionId=new["sessionId"], prompt=[block])
        assert "Hello, Ada!" in editor.text_of(new["sessionId"])
        await editor.until(lambda: "greet" in editor.commands)
