"""A real gateway process that answers in Telegram, also after it was killed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hermes.testing.platforms.telegram import TOKEN, FakeTelegram
from tests.surfaces.gateway.machine import Machine, until

ADA, STRANGER = 11, 12


@pytest.fixture
async def telegram(machine: Machine) -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram.start() as server:
        urls = f'base_url: "{server.url}/bot", base_file_url: "{server.url}/file/bot"'
        machine.add(f"platforms: {{telegram: {{extra: {{{urls}}}}}, wire: {{enabled: false}}}}")
        machine.env |= {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_ALLOWED_USERS": str(ADA)}
        yield server


async def is_asked(machine: Machine, turns: int) -> bool:
    return len(machine.turns()) >= turns


async def shows(server: FakeTelegram, chat: int, *texts: str) -> None:
    """Wait until a chat shows exactly these texts of the bot."""

    async def is_shown() -> bool:
        return server.chats.texts(chat) == list(texts)

    await until(is_shown)


async def test_a_message_is_answered_once_also_after_a_kill(
    machine: Machine, telegram: FakeTelegram
) -> None:
    ada = telegram.chats.add_person(ADA)
    process = await machine.gateway()
    telegram.chats.say(ada, "**hello**")
    await shows(telegram, ADA, "You said: hello")
    machine.answers.clear()
    telegram.chats.say(ada, "second")
    await until(lambda: is_asked(machine, 2))
    process.kill()
    await process.wait()
    telegram.chats.say(ada, "third")
    machine.answers.set()
    await machine.gateway()
    await shows(telegram, ADA, "You said: hello", "You said: second", "You said: third")


async def test_a_stranger_in_a_group_causes_no_call(
    machine: Machine, telegram: FakeTelegram
) -> None:
    ada, stranger = telegram.chats.add_person(ADA), telegram.chats.add_person(STRANGER, "Eve")
    telegram.chats.add_group(-500)
    await machine.gateway()
    before = len([call for call in telegram.calls if call.name != "getUpdates"])
    telegram.chats.say(stranger, "@hermes_bot hello", chat=-500)
    telegram.chats.say(ada, "mine")
    await shows(telegram, ADA, "You said: mine")
    later = [call for call in telegram.calls if call.name != "getUpdates"][before:]
    assert {str(call.fields["chat_id"]) for call in later} == {str(ADA)}
