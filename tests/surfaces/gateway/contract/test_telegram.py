"""The Telegram adapter against the contract of platforms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.surfaces.gateway.platform import Address
from hermes.surfaces.gateway.platforms.contract_checks import PlatformContract, PlatformHarness
from hermes.surfaces.gateway.platforms.telegram.manifest import MANIFEST
from hermes.testing.platforms.faults import Fault
from hermes.testing.platforms.telegram import TOKEN, FakeTelegram

ADA = 11


class TelegramHarness(PlatformHarness):
    manifest = MANIFEST
    address = Address(platform="telegram", chat_id=str(ADA))

    def __init__(self, server: FakeTelegram) -> None:
        self._server = server
        self._ada = server.chats.add_person(ADA)
        self._url = server.url

    def settings(self) -> dict[str, str]:
        return {"TELEGRAM_BOT_TOKEN": TOKEN}

    def wrong_settings(self) -> dict[str, str]:
        return {"TELEGRAM_BOT_TOKEN": "1:wrong"}

    def extra(self) -> dict[str, object]:
        return {"base_url": f"{self._url}/bot", "base_file_url": f"{self._url}/file/bot"}

    def gone_address(self) -> Address:
        return Address(platform="telegram", chat_id="999")

    async def say(self, text: str) -> None:
        self._server.chats.say(self._ada, text)

    async def shown(self) -> list[str]:
        return self._server.chats.texts(ADA)

    async def repeat_events(self) -> bool:
        self._server.repeats_updates = True
        return True

    async def echo(self) -> bool:
        message = next(m for m in self._server.chats.messages.values() if m["from"]["is_bot"])
        self._server.chats.push("message", message)
        return True

    async def lose_response(self) -> bool:
        self._server.fail("sendMessage", Fault(kind="drop_after"))
        return True

    async def limit_rate(self, seconds: float) -> bool:
        self._server.fail("sendMessage", Fault(kind="rate_limit", retry_after=seconds))
        return True

    async def break_connection(self) -> bool:
        self._server.drop_connections()
        return True

    def away(self) -> bool:
        self._url = "http://127.0.0.1:9"
        return True


class TestTelegram(PlatformContract):
    @asynccontextmanager
    async def harness(self, folder: Path) -> AsyncIterator[PlatformHarness]:
        async with FakeTelegram.start() as server:
            yield TelegramHarness(server)
