"""Reads targets of messages: `telegram`, `telegram:123`, `telegram:123:7`, `slack:#team`,
`signal:@ann`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from hermes.config.gateway_settings import PlatformOptions
from hermes.core.errors import UsageError
from hermes.surfaces.gateway.directory import ChannelDirectory
from hermes.surfaces.gateway.platform import Address


def parse_target(
    text: str, platforms: Mapping[str, PlatformOptions], directory: ChannelDirectory
) -> Address:
    """The chat that a target names. A platform alone is its home channel. UsageError or NotFound
    with the next step."""
    name, _, chat = text.strip().partition(":")
    name = name.strip().lower()
    if name not in platforms:
        known = ", ".join(platforms) or "none; run `hermes gateway setup`"
        raise UsageError(f"The platform {name!r} is not configured; configured: {known}.")
    chat = chat.strip()
    if not chat:
        return home_address(platforms[name])
    if chat[0] in "#@":
        kind: Literal["#", "@"] = "#" if chat[0] == "#" else "@"
        # Ids of some platforms begin like this too; those of Matrix name a server.
        if ":" in chat or any(each.id == chat for each in directory.entries.get(name, ())):
            return Address(platform=name, chat_id=chat)
        return directory.resolve(name, chat[1:], kind)
    chat_id, thread_id = _split_thread(chat)
    return Address(platform=name, chat_id=chat_id, thread_id=thread_id)


def home_address(options: PlatformOptions) -> Address:
    """The home channel of a platform."""
    if not options.home_chat_id:
        raise UsageError(
            f"{options.name} has no home channel; name a chat (`{options.name}:CHAT_ID`), use "
            f"/sethome in a chat, or set platforms.{options.name}.home_channel.chat_id."
        )
    return Address(
        platform=options.name, chat_id=options.home_chat_id, thread_id=options.home_thread_id
    )


def _split_thread(chat: str) -> tuple[str, str]:
    room, *rest = chat.split(":", 2 if chat.startswith("!") else 1)
    if chat.startswith("!") and rest:
        # The id of a Matrix room contains a colon: `!room:server`.
        room, rest = f"{room}:{rest[0]}", rest[1:]
    return room, rest[0] if rest else ""
