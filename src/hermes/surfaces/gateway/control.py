"""What an admin may ask of the gateway process in a chat: platforms, restart, home channel."""

from __future__ import annotations

import asyncio

from hermes.codec.values import replace
from hermes.config.edit import write_settings
from hermes.config.gateway_settings import variable_name
from hermes.config.load import Config
from hermes.config.migrations import Changes
from hermes.core.errors import HermesError
from hermes.surfaces.gateway.platform import Address
from hermes.surfaces.gateway.runner import Gateway
from hermes.surfaces.gateway.status import describe_platform

# The chat gets its answer before the process stops.
RESTART_DELAY_SECONDS = 0.5


class ChatControl:
    """Carries out slash commands that concern the process. Each answer is for the chat."""

    def __init__(self, gateway: Gateway, config: Config) -> None:
        self._gateway = gateway
        self._config = config

    def platforms(self) -> tuple[tuple[str, str], ...]:
        """The name and state of each platform."""
        return tuple(
            (name, describe_platform(connection.state))
            for name, connection in self._gateway.connections.items()
        )

    async def pause(self, platform: str) -> str:
        try:
            self._gateway.platform(platform).pause()
        except HermesError as error:
            return str(error)
        return f"{platform} is disconnected until `/platform resume {platform}`."

    async def resume(self, platform: str) -> str:
        try:
            self._gateway.platform(platform).resume()
        except HermesError as error:
            return str(error)
        return f"{platform} connects again."

    async def restart(self, requester: Address) -> str:
        loop = asyncio.get_running_loop()
        loop.call_later(RESTART_DELAY_SECONDS, self._gateway.restart, requester)
        return "The gateway restarts; I tell you when I am back."

    async def set_home(self, address: Address, name: str) -> str:
        """Make a chat the home channel of its platform, at once and for later starts."""
        platform = address.platform
        variable = variable_name(platform, "home_channel")
        if self._config.secrets.get(variable):
            return f"The variable {variable} sets the home channel; change or remove it first."
        values = {"chat_id": address.chat_id, "name": name, "thread_id": address.thread_id}
        changes: Changes = {
            ("platforms", platform, "home_channel", key): value for key, value in values.items()
        }
        try:
            await asyncio.to_thread(write_settings, self._config.home, changes)
            connection = self._gateway.platform(platform)
        except HermesError as error:
            return str(error)
        options = replace(
            connection.platform.options,
            home_chat_id=address.chat_id,
            home_name=name,
            home_thread_id=address.thread_id,
        )
        self._gateway.set_options(platform, options)
        return f"This chat is the home channel of {platform} now."
