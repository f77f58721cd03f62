"""The fake Bot API, judged by a client library that others wrote."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.testing.platforms.telegram import TOKEN, FakeTelegram

telegram: Any = pytest.importorskip("telegram", reason="python-telegram-bot is not installed")


async def test_the_library_polls_sends_edits_and_reads_errors() -> None:
    async with FakeTelegram.start() as server:
        ada = server.chats.add_person(11)
        urls = {"base_url": f"{server.url}/bot", "base_file_url": f"{server.url}/file/bot"}
        async with telegram.Bot(TOKEN, **urls) as bot:
            assert bot.username == "hermes_bot"
            document = server.chats.add_file(b"data")
            server.chats.say(ada, "/start now", document=document)
            (update,) = await bot.get_updates(timeout=1)
            assert update.message.parse_entities() == {update.message.entities[0]: "/start"}
            file = await update.message.document.get_file()
            assert bytes(await file.download_as_bytearray()) == b"data"
            assert await bot.get_updates(offset=update.update_id + 1) == ()
            keyboard = telegram.InlineKeyboardMarkup.from_button(
                telegram.InlineKeyboardButton("Yes", callback_data="1")
            )
            sent = await bot.send_message(11, "<b>hi</b>", parse_mode="HTML", reply_markup=keyboard)
            assert sent.text_html == "<b>hi</b>"
            server.chats.press(ada, sent.message_id, "1")
            (pressed,) = await bot.get_updates()
            assert pressed.callback_query.data == "1"
            assert await pressed.callback_query.answer("ok")
            edited = await bot.edit_message_text("there", 11, sent.message_id)
            assert edited.text == "there"
            with pytest.raises(telegram.error.BadRequest, match="not modified"):
                await bot.edit_message_text("there", 11, sent.message_id)
            with pytest.raises(telegram.error.BadRequest, match="parse entities"):
                await bot.send_message(11, "<b>open", parse_mode="HTML")
            with pytest.raises(telegram.error.BadRequest, match=r"[Cc]hat not found"):
                await bot.send_message(404, "x")
            photo = await bot.send_document(11, b"content", filename="a.txt", caption="c")
            assert (photo.document.file_name, photo.caption) == ("a.txt", "c")
            await bot.set_my_commands([("new", "Start again")])
        assert server.chats.texts(11) == ["there", "c"]
