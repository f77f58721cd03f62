"""The Matrix adapter against the contract of platforms, with a real Synapse."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes.surfaces.gateway.platform import Address, Post
from hermes.surfaces.gateway.platforms.contract_checks import (
    PlatformContract,
    PlatformHarness,
    connect,
)
from hermes.surfaces.gateway.platforms.matrix.manifest import MANIFEST
from tests.surfaces.gateway.matrix_server import (
    ADA,
    BOT,
    MatrixRoom,
    matrix_room,
    matrix_server,
    missing,
)

if TYPE_CHECKING:
    from nio import AsyncClient

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=missing() or "unused"),
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def homeserver() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name, matrix_server(Path(name)) as url:
        yield url


class MatrixHarness(PlatformHarness):
    manifest = MANIFEST

    def __init__(self, url: str, room: MatrixRoom) -> None:
        self.room, self._url = room, url
        self.address = Address(platform="matrix", chat_id=room.id)

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
        await self.room.say(text)

    async def shown(self) -> list[str]:
        return await self.room.shown()


@asynccontextmanager
async def matrix(homeserver: str, folder: Path, *, encrypted: bool) -> AsyncIterator[MatrixHarness]:
    async with matrix_room(homeserver, folder, encrypted=encrypted) as room:
        yield MatrixHarness(homeserver, room)


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
            ada = harness.room.ada
            for n in range(2):
                adapter = self.adapter(harness, tmp_path)
                async with connect(adapter) as connection:
                    await connection.wait_for()
                    await ada.sync(timeout=0, full_state=True)
                    if ada.should_query_keys:
                        await ada.keys_query()
                    await harness.say(f"secret {n}")
                    events = await connection.wait_for(events=1)
                    assert events[-1].text == f"secret {n}"
                    await adapter.post(harness.address, Post(text=f"answer {n}"), f"e{n}")
                    await self._reads(ada, f"answer {n}")

    async def _reads(self, ada: AsyncClient, text: str) -> None:
        async with asyncio.timeout(30):
            while True:
                response: Any = await ada.sync(timeout=2000)
                for room in response.rooms.join.values():
                    if any(getattr(event, "body", "") == text for event in room.timeline.events):
                        return
