"""A real Synapse on loopback, and a person who uses it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

if TYPE_CHECKING:
    from nio import AsyncClient

# A Python with `matrix-synapse`; large, so not among the development dependencies.
PYTHON = os.environ.get("HERMES_TEST_SYNAPSE", sys.executable)
BOT, ADA = "@bot:localhost", "@ada:localhost"
REQUEST_SECONDS = 60.0
START_SECONDS = 120.0
_LIMIT = "{per_second: 1000, burst_count: 1000}"
_SETTINGS = f"""
enable_registration: true
enable_registration_without_verification: true
suppress_key_server_warning: true
trusted_key_servers: []
rc_message: {_LIMIT}
rc_registration: {_LIMIT}
rc_login: {{address: {_LIMIT}, account: {_LIMIT}, failed_attempts: {_LIMIT}}}
rc_room_creation: {_LIMIT}
rc_joins: {{local: {_LIMIT}, remote: {_LIMIT}}}
rc_joins_per_room: {_LIMIT}
rc_invites: {{per_room: {_LIMIT}, per_user: {_LIMIT}, per_issuer: {_LIMIT}}}
rc_key_requests: {_LIMIT}
"""


@cache
def missing() -> str:
    """Why the server cannot run here; "" when it can."""
    try:
        import nio  # noqa: F401
    except ImportError:
        return "matrix-nio is not installed"
    command = [PYTHON, "-c", "import synapse"]
    is_there = subprocess.run(command, capture_output=True, check=False).returncode == 0
    return "" if is_there else "no matrix-synapse; see HERMES_TEST_SYNAPSE"


@contextmanager
def matrix_server(folder: Path) -> Iterator[str]:
    """The URL of a server with the accounts of the bot and of a person."""
    config, module = folder / "homeserver.yaml", [PYTHON, "-m", "synapse.app.homeserver"]
    subprocess.run(
        [*module, "--server-name", "localhost", "--config-path", str(config),
         "--generate-config", "--report-stats=no"],
        check=True, capture_output=True, cwd=folder,
    )  # fmt: skip
    with socket.socket() as channel:
        channel.bind(("127.0.0.1", 0))
        port = channel.getsockname()[1]
    config.write_text(config.read_text().replace("port: 8008", f"port: {port}") + _SETTINGS)
    with (folder / "out.log").open("wb") as log:
        command = [*module, "--config-path", str(config)]
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, server, folder)
        register = str(Path(PYTHON).with_name("register_new_matrix_user"))
        for user in ("bot", "ada"):
            words = ["-u", user, "-p", f"{user}-pw", "--no-admin", "-c", str(config), url]
            subprocess.run([register, *words], check=True, capture_output=True)
        yield url
    finally:
        server.terminate()
        server.wait()


def _wait(url: str, server: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert server.poll() is None, (folder / "out.log").read_text()[-2000:]
        try:
            urlopen(f"{url}/_matrix/client/versions", timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("synapse does not answer")


class MatrixRoom:
    """A room of the person and the bot, as the person sees it."""

    def __init__(self, ada: AsyncClient, room: str) -> None:
        self.ada = ada
        self.id = room

    async def say(self, text: str) -> None:
        content = {"msgtype": "m.text", "body": text}
        await self.ada.room_send(self.id, "m.room.message", content, ignore_unverified_devices=True)

    async def shown(self) -> list[str]:
        """The texts of the bot, with the newest edit of each."""
        from nio import RoomMessageText

        texts: dict[str, str] = {}
        found: Any = await self.ada.room_messages(self.id, limit=500)
        for event in reversed(found.chunk):
            if event.sender != BOT or not isinstance(event, RoomMessageText):
                continue
            content = event.source["content"]
            relation = content.get("m.relates_to") or {}
            if relation.get("rel_type") == "m.replace":
                texts[relation["event_id"]] = content["m.new_content"]["body"]
            else:
                texts[event.event_id] = event.body
        return list(texts.values())


@asynccontextmanager
async def matrix_room(url: str, folder: Path, *, encrypted: bool) -> AsyncIterator[MatrixRoom]:
    """A new room that the bot has joined."""
    from nio import AsyncClient, AsyncClientConfig

    # By default the library repeats a refused request for ever, so that a test would hang.
    config = AsyncClientConfig(
        encryption_enabled=encrypted,
        store_sync_tokens=False,
        max_limit_exceeded=0,
        max_timeouts=0,
        request_timeout=REQUEST_SECONDS,
    )
    ada = AsyncClient(url, ADA, store_path=str(folder), config=config)
    bot = AsyncClient(url, BOT, config=AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0))
    try:
        async with asyncio.timeout(START_SECONDS):
            await ada.login("ada-pw")
            await bot.login("bot-pw")
            room = await _make_room(ada, bot, encrypted=encrypted)
        yield MatrixRoom(ada, room)
    finally:
        await ada.close()
        await bot.close()


async def _make_room(ada: AsyncClient, bot: AsyncClient, *, encrypted: bool) -> str:
    state = [{"type": "m.room.encryption", "state_key": "",
              "content": {"algorithm": "m.megolm.v1.aes-sha2"}}]  # fmt: skip
    made: Any = await ada.room_create(
        invite=[BOT], is_direct=True, initial_state=state if encrypted else []
    )
    await bot.join(made.room_id)
    await ada.sync(timeout=0, full_state=True)
    if encrypted:
        await ada.keys_upload()
    return str(made.room_id)
