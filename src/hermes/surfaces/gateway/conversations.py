"""The conversations of a gateway process, built from the settings of a home."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from hermes.app.app import App
from hermes.core.commands import Interrupt
from hermes.journal.deliveries import DeliveryLedger
from hermes.surfaces.gateway.authorization import Authorization
from hermes.surfaces.gateway.chat_options import chat_options, gateway_options
from hermes.surfaces.gateway.chat_service import (
    ChatService,
    LivePlatform,
    RunningChat,
    SendReport,
)
from hermes.surfaces.gateway.manifests import ConfiguredPlatform
from hermes.surfaces.gateway.pairing import PairedRow, PairingStore
from hermes.surfaces.gateway.platform import Address, Inbound, OutboundFile, Platform


class Conversations:
    """The chat service with its ledger and its rules of access."""

    def __init__(
        self, app: App, platforms: Sequence[ConfiguredPlatform], pairing: PairingStore
    ) -> None:
        self._app = app
        self._config = app.context.config
        ledger = DeliveryLedger(app.journal)
        self._authorization = Authorization(self._config, platforms, pairing)
        options = gateway_options(self._config)
        self.service = ChatService(app, ledger, self._authorization, options)

    def attach(self, platform: ConfiguredPlatform, adapter: Platform) -> None:
        """Make a platform usable for posts, or use its new adapter."""
        options = chat_options(self._config, platform)
        self.service.attach(LivePlatform(platform.manifest, adapter, options))

    async def start(self) -> None:
        """Continue what the last process left."""
        await self.service.start()

    async def receive(self, event: Inbound) -> bool:
        """Store an event and answer it; whether its sender may write."""
        await self.service.receive(event)
        return self._authorization.decide(event).kind == "allowed"

    async def send(
        self,
        to: Address,
        text: str,
        *,
        key: str,
        files: Sequence[OutboundFile] = (),
        mirror: bool = False,
    ) -> SendReport:
        """Send Markdown of any length, once for each key; with `mirror` also to the session."""
        return await self.service.send(to, text, key=key, files=files, mirror=mirror)

    async def drain(self, seconds: float) -> None:
        await self.service.drain(seconds)

    def running(self) -> tuple[RunningChat, ...]:
        return self.service.running()

    async def interrupt(self, person: PairedRow) -> None:
        """Stop the running turns of a person who may no longer write."""
        ids = {person.user_id, person.chat_id}
        for chat in self.service.running():
            parts = {unquote(part) for part in chat.session_key.split(":")}
            session = self._app.find_session(chat.session_id)
            if chat.platform == person.platform and ids & parts and session is not None:
                await session.send(Interrupt())

    async def reset_due(self) -> None:
        """Begin new sessions where the time has come."""
        await self.service.reset_due()

    async def postpone(self) -> None:
        """Leave what the last process left for the next one, and say so in the chats."""
        await self.service.postpone()

    async def sweep(self) -> None:
        """Forget unused conversations and old rows."""
        await self.service.sweep()

    def menu(self, platform: ConfiguredPlatform) -> tuple[tuple[str, str], ...]:
        """Slash commands for the menu of a platform."""
        most = platform.manifest.abilities.max_menu_commands
        return self.service.menu(most) if most else ()
