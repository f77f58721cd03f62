"""The Matrix adapter against the contract of platforms, with a real Synapse."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

pytest.importorskip("nio", reason="matrix-nio is not installed")

from nio import AsyncClient, AsyncClientConfig, RoomMessageText

from hermes.surfaces.gateway.platform import Address, Post
from hermes.surfaces.gateway.platforms.contract_checks import (
    PlatformContract,
    PlatformHarness,
    connect,
)
from hermes.surfaces.gateway.platforms.matrix.manifest import MANIFEST

# A Python with `matrix-synapse`; large, so not among the development dependencies.
PYTHON = os.environ.get("HERMES_TEST_SYNAPSE", sys.executable)
BOT, ADA = "@bot:localhost", "@ada:localhost"


@cache
def has_synapse() -> bool:
    command = [PYTHON, "-c", "import synapse"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_synapse(), reason="no matrix-synapse; see HERMES_TEST_SYNAPSE"),
    pytest.mark.filterwarnings("default"),
]
SETTINGS = """
enable_registration: true
enable_registration_without_verification: true
suppress_key_server_warning: true
trusted_key_servers: []
rc_message: {per_second: 1000, burst_count: 1000}
rc_registration: {per_second: 1000, burst_count: 1000}
rc_login:
  address: {per_second: 1000, burst_count: 1000}
  account: {per_second: 1000, burst_count: 1000}
  failed_attempts: {per_second: 1000, burst_count: 1000}
rc_room_creation: {per_second: 1000, burst_count: 1000}
rc_joins: {local: {per_second: 1000, burst_count: 1000}}
rc_invites:
  per_room: {per_second: 1000, burst_count: 1000}
  per_user: {per_second: 1000, burst_count: 1000}
"""


@pytest.fixture(scope="module")
def homeserver() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config, module = folder / "homeserver.yaml", [PYTHON, "-m", "synapse.app.homeserver"]
        subprocess.run(
            [*module, "--server-name", "localhost", "--config-path", str(config),
             "--generate-config", "--report-stats=no"],
            check=True, capture_output=True, cwd=folder,
        )  # fmt: skip
        with socket.socket() as channel:
            channel.bind(("127.0.0.1", 0))
            port = channel.getsockname()[1]
        text = config.read_text().replace("port: 8008", f"port: {port}")
        config.write_text(text + SETTINGS)
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
    import time

    for _ in range(300):
        assert server.poll() is None, (folder / "out.log").read_text()[-2000:]
        try:
            urlopen(f"{url}/_matrix/client/versions", timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("synapse does not answer")


class MatrixHarness(PlatformHarness):
    manifest = MANIFEST

    def __init__(self, url: str, ada: AsyncClient, room: str) -> None:
        self.ada, self._url, self._room = ada, url, room
        self.address = Address(platform="matrix", chat_id=room)

    def settings(self) -> dict[str, str]:
        return {
            "MATRIX_HOMESERVER": self._url,
            "MATRIX_USER_ID": BOT,
            "MATRIX_PASSWORD": "bot-pw",
            "MATRIX_ALLOWED_USERS": ADA,
        }

    def wrong_settings(self) -> dict[str, str]:
        return {**self.settings(), "MATRIX_PASSWORD": "wrong"}

    def gone_address(self) -> Address:
        return Address(platform="matrix", chat_id="!nowhere:localhost")

    def away(self) -> bool:
        self._url = "http://127.0.0.1:9"
        return True

    async def say(self, text: str) -> None:
        content = {"msgtype": "m.text", "body": text}
        await self.ada.room_send(
            self._room, "m.room.message", content, ignore_unverified_devices=True
        )

    async def shown(self) -> list[str]:
        """Texts by event, with the newest edit of each."""
        texts: dict[str, str] = {}
        found: Any = await self.ada.room_messages(self._room, limit=500)
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
async def matrix(homeserver: str, folder: Path, *, encrypted: bool) -> AsyncIterator[MatrixHarness]:
    config = AsyncClientConfig(encryption_enabled=encrypted, store_sync_tokens=False)
    ada = AsyncClient(homeserver, ADA, store_path=str(folder), config=config)
    bot = AsyncClient(homeserver, BOT)
    try:
        await ada.login("ada-pw")
        await bot.login("bot-pw")
        state = [{"type": "m.room.encryption", "state_key": "",
                  "content": {"algorithm": "m.megolm.v1.aes-sha2"}}]  # fmt: skip
        made: Any = await ada.room_create(
            invite=[BOT], is_direct=True, initial_state=state if encrypted else []
        )
        await bot.join(made.room_id)
        await ada.sync(timeout=0, full_state=True)
        if encrypted:
            await ada.keys_upload()
        yield MatrixHarness(homeserver, ada, made.room_id)
    finally:
        await ada.close()
        await bot.close()


@pytest.mark.usefixtures("homeserver")
class TestMatrix(PlatformContract):
    @pytest.fixture(autouse=True)
    def _server(self, homeserver: str) -> None:
        self._homeserver = homeserver

    @asynccontextmanager
    async def harness(self, folder: Path) -> AsyncIterator[PlatformHarness]:
        (folder / "ada").mkdir()
        async with matrix(self._homeserver, folder / "ada", encrypted=False) as harness:
            yield harness

    async def test_a_post_with_a_known_key_is_not_sent_again(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            adapter = self.adapter(harness, tmp_path)
            async with connect(adapter) as connection:
                await connection.wait_for()
                ids = [await adapter.post(harness.address, Post(text="x"), "k") for _ in range(2)]
            assert ids[0] == ids[1]
            assert await harness.shown() == ["x"]

    async def test_encrypted_messages_go_both_ways_also_after_a_restart(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "ada").mkdir()
        async with matrix(self._homeserver, tmp_path / "ada", encrypted=True) as harness:
            for n in range(2):
                adapter = self.adapter(harness, tmp_path)
                async with connect(adapter) as connection:
                    await connection.wait_for()
                    await harness.ada.sync(timeout=0, full_state=True)
                    if harness.ada.should_query_keys:
                        await harness.ada.keys_query()
                    await harness.say(f"secret {n}")
                    events = await connection.wait_for(events=1)
                    assert events[-1].text == f"secret {n}"
                    await adapter.post(harness.address, Post(text=f"answer {n}"), f"e{n}")
                    await self._reads(harness.ada, f"answer {n}")

    async def _reads(self, ada: AsyncClient, text: str) -> None:
        async with asyncio.timeout(30):
            while True:
                response: Any = await ada.sync(timeout=2000)
                for room in response.rooms.join.values():
                    if any(getattr(event, "body", "") == text for event in room.timeline.events):
                        return
