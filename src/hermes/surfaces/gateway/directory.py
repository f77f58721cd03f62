"""The channel directory: names of chats and people, so that `telegram:#team` can be resolved. Only
chats of people who may write are listed, so that strangers cannot take a name."""

from __future__ import annotations

from typing import Literal

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.home import Home, replace_file
from hermes.core.errors import NotFound, UsageError
from hermes.surfaces.gateway.platform import Address, ChatType, Inbound

REFRESH_SECONDS = 300.0
MAX_ENTRIES = 1_000
NAME_CHARS = 200


class DirectoryEntry(Value):
    """A chat that has a name. `user` is a person in a direct chat."""

    id: str
    name: str
    type: ChatType
    thread_id: str = ""
    user: str = ""


class ChannelDirectory:
    """`channel_directory.json` of a home. The gateway notes chats and saves them regularly."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._path = home.root / "channel_directory.json"
        self._is_changed = False
        self.entries: dict[str, list[DirectoryEntry]] = {}
        self.load()

    def load(self) -> None:
        """Read the file. One that cannot be read is rebuilt from the next messages."""
        try:
            self.entries = decode(dict[str, list[DirectoryEntry]], self._path.read_bytes())
        except (OSError, DecodeError):
            self.entries = {}

    def note(self, event: Inbound) -> None:
        """Remember the chat of an event whose sender may write."""
        is_direct = event.chat_type == "dm"
        entry = DirectoryEntry(
            id=event.address.chat_id,
            name=_one_line(event.chat_name or (event.sender.name if is_direct else "")),
            type=event.chat_type,
            thread_id=event.address.thread_id,
            user=_one_line(event.sender.name) if is_direct else "",
        )
        listed = self.entries.setdefault(event.address.platform, [])
        place = (entry.id, entry.thread_id)
        known = next((each for each in listed if (each.id, each.thread_id) == place), None)
        if known == entry or not entry.name:
            return
        others = [each for each in listed if (each.id, each.thread_id) != place]
        self.entries[event.address.platform] = [*others[1 - MAX_ENTRIES :], entry]
        self._is_changed = True

    async def save(self) -> None:
        if self._is_changed:
            self._is_changed = False
            replace_file(self._home, self._path, encode(self.entries), durable=False)

    def resolve(self, platform: str, name: str, kind: Literal["#", "@"]) -> Address:
        """The chat with this name. NotFound without one, UsageError when several have it."""
        wanted = name.casefold()
        found = [
            each
            for each in self.entries.get(platform, ())
            if (each.type == "dm") == (kind == "@")
            and wanted in (each.name.casefold().lstrip("#@"), each.user.casefold())
        ]
        if not found:
            names = [f"{kind}{each.name}" for each in self.entries.get(platform, ())]
            raise NotFound(
                f"No chat of {platform} is known as {kind}{name}; `hermes send --list` shows the "
                "known ones.",
                near=tuple(names),
            )
        if len(found) > 1:
            ids = ", ".join(each.id for each in found)
            raise UsageError(
                f"Several chats of {platform} are named {kind}{name} ({ids}); use the id."
            )
        return Address(platform=platform, chat_id=found[0].id, thread_id=found[0].thread_id)


def _one_line(name: str) -> str:
    return " ".join(name.split())[:NAME_CHARS]
