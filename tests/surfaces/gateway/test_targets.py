"""Targets of messages, and the names in the channel directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.gateway_settings import PlatformOptions
from hermes.config.home import Home
from hermes.core.errors import NotFound, UsageError
from hermes.surfaces.gateway.directory import ChannelDirectory
from hermes.surfaces.gateway.platform import Address, ChatType, Inbound, Sender
from hermes.surfaces.gateway.targets import parse_target

PLATFORMS = {
    "telegram": PlatformOptions(name="telegram", home_chat_id="1", home_thread_id="2"),
    "matrix": PlatformOptions(name="matrix"),
    "slack": PlatformOptions(name="slack"),
}


def event(
    chat: str, name: str, chat_type: ChatType = "group", user: str = "", thread: str = ""
) -> Inbound:
    return Inbound(
        key="1",
        address=Address(platform="slack", chat_id=chat, thread_id=thread),
        chat_type=chat_type,
        sender=Sender(id="u", name=user),
        at=0.0,
        chat_name=name,
    )


@pytest.fixture
def directory(tmp_path: Path) -> ChannelDirectory:
    found = ChannelDirectory(Home(tmp_path / "home"))
    found.note(event("C1", "#Team"))
    found.note(event("C2", "twice"))
    found.note(event("C3", "twice"))
    found.note(event("D1", "", "dm", user="Ann\nLee"))
    found.note(event("C4", ""))
    return found


@pytest.mark.parametrize(
    ("text", "chat", "thread"),
    [
        ("telegram", "1", "2"),
        ("Telegram:-100123", "-100123", ""),
        ("telegram:-100123:7", "-100123", "7"),
        ("slack:#team", "C1", ""),
        ("slack:#TEAM", "C1", ""),
        ("slack:@ann lee", "D1", ""),
        ("matrix:!room:server.org", "!room:server.org", ""),
        ("matrix:!room:server.org:$thread", "!room:server.org", "$thread"),
        ("matrix:#alias:server.org", "#alias:server.org", ""),
    ],
)
def test_a_target_names_a_chat(
    text: str, chat: str, thread: str, directory: ChannelDirectory
) -> None:
    found = parse_target(text, PLATFORMS, directory)
    assert (found.chat_id, found.thread_id) == (chat, thread)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("signal", UsageError, "not configured"),
        ("slack", UsageError, "sethome"),
        ("slack:#nobody", NotFound, "hermes send --list"),
        ("slack:@team", NotFound, "@team"),
        ("slack:#twice", UsageError, "C2, C3"),
    ],
)
def test_a_target_that_names_none_is_refused(
    text: str, error: type[Exception], words: str, directory: ChannelDirectory
) -> None:
    with pytest.raises(error, match=words):
        parse_target(text, PLATFORMS, directory)


async def test_names_survive_a_restart_and_follow_a_rename(
    directory: ChannelDirectory, tmp_path: Path
) -> None:
    directory.note(event("C1", "crew"))
    await directory.save()
    read = ChannelDirectory(Home(tmp_path / "home"))
    assert parse_target("slack:#crew", PLATFORMS, read).chat_id == "C1"
    with pytest.raises(NotFound):
        parse_target("slack:#team", PLATFORMS, read)


def test_a_damaged_file_is_rebuilt(tmp_path: Path) -> None:
    (tmp_path / "channel_directory.json").write_text("{")
    assert ChannelDirectory(Home(tmp_path)).entries == {}
