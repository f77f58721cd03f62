"""The email adapter against the contract of platforms, with real mail servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.surfaces.gateway.platform import Address
from hermes.surfaces.gateway.platforms.contract_checks import PlatformContract, PlatformHarness
from hermes.surfaces.gateway.platforms.email.mail import thread_of
from hermes.surfaces.gateway.platforms.email.manifest import MANIFEST
from tests.surfaces.gateway.mail_servers import (
    ADA,
    BOT,
    PASSWORD,
    MailServers,
    mail_servers,
    missing,
    parse,
)

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "unused")

THREAD = {"References": "<root@home.test>"}


class EmailHarness(PlatformHarness):
    manifest = MANIFEST

    def __init__(self, servers: MailServers) -> None:
        self._servers = servers
        self._imap_port = servers.imap_port
        thread = thread_of(parse(b"References: <root@home.test>\r\n\r\n"))
        self.address = Address(platform="email", chat_id=ADA, thread_id=thread)

    def settings(self) -> dict[str, str]:
        return {
            "EMAIL_ADDRESS": BOT,
            "EMAIL_PASSWORD": PASSWORD,
            "EMAIL_IMAP_HOST": "127.0.0.1",
            "EMAIL_IMAP_PORT": str(self._imap_port),
            "EMAIL_SMTP_HOST": "127.0.0.1",
            "EMAIL_SMTP_PORT": str(self._servers.smtp_port),
        }

    def wrong_settings(self) -> dict[str, str]:
        return {**self.settings(), "EMAIL_PASSWORD": "wrong"}

    def extra(self) -> dict[str, object]:
        return {"ca_file": str(self._servers.root / "cert.pem")}

    def gone_address(self) -> Address:
        return Address(platform="email", chat_id="nobody@home.test")

    async def say(self, text: str) -> None:
        self._servers.write(text, headers=THREAD)

    async def shown(self) -> list[str]:
        bodies = (mail.get_body(("plain",)) for mail in self._servers.mails())
        return [body.get_content().strip() for body in bodies if body]

    async def echo(self) -> bool:
        self._servers.write("an echo", sender=BOT)
        return True

    async def lose_response(self) -> bool:
        self._servers.loses_response = True
        return True

    def away(self) -> bool:
        self._imap_port = self._servers.smtp_port = 9
        return True


class TestEmail(PlatformContract):
    @asynccontextmanager
    async def harness(self, folder: Path) -> AsyncIterator[PlatformHarness]:
        (folder / "servers").mkdir()
        async with mail_servers(folder / "servers") as servers:
            yield EmailHarness(servers)
