"""The state of the fake Bot API: chats, messages, files, and updates for the bot."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

BOT = {"id": 4_000, "is_bot": True, "first_name": "Hermes", "username": "hermes_bot"}
MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024


class ApiError(Exception):
    """A refused call."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


class TelegramChats:
    """What people and the bot did. Messages by chat and id; updates wait until they are
    confirmed."""

    def __init__(self) -> None:
        self.messages: dict[tuple[int, int], dict[str, Any]] = {}
        self.updates: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.reactions: dict[tuple[int, int], list[str]] = {}
        self.callback_answers: dict[str, str] = {}
        self.commands: dict[str, list[dict[str, str]]] = {}
        # Chats that the bot may not write to, and how the Bot API says so.
        self.refusals: dict[int, ApiError] = {}
        # Added to the time of each message.
        self.clock_skew = 0.0
        self.changed = asyncio.Event()
        self._chats: dict[int, dict[str, Any]] = {}
        self._topics: dict[int, set[int]] = {}
        self._message_ids = itertools.count(1)
        self._update_ids = itertools.count(700_000_001)
        self._other_ids = itertools.count(1)

    # what people do

    def add_person(self, user_id: int, name: str = "Ada") -> dict[str, Any]:
        """A person who has started a direct chat with the bot."""
        self._chats[user_id] = {"id": user_id, "type": "private", "first_name": name}
        return {"id": user_id, "is_bot": False, "first_name": name, "username": name.lower()}

    def add_group(
        self, chat_id: int, title: str = "Team", topics: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        kind = "supergroup" if topics or chat_id < -(10**12) else "group"
        self._chats[chat_id] = {"id": chat_id, "type": kind, "title": title}
        if topics:
            self._chats[chat_id]["is_forum"] = True
            self._topics[chat_id] = set(topics)
        return self._chats[chat_id]

    def say(
        self, person: dict[str, Any], text: str = "", *, chat: int = 0, **fields: Any
    ) -> dict[str, Any]:
        """A message of a person; `fields` are further fields of the Message. Mentions and commands
        get their entities."""
        message = self._new_message(chat or person["id"], person, **fields)
        if text:
            message |= {"text": text, "entities": _find_entities(text)}
        self.push("message", message)
        return message

    def press(
        self, person: dict[str, Any], message_id: int, data: str, *, chat: int = 0
    ) -> dict[str, Any]:
        """A person presses a button of the bot."""
        message = self.messages[chat or person["id"], message_id]
        query = {
            "id": f"q{next(self._other_ids)}",
            "from": person,
            "message": message,
            "chat_instance": "1",
            "data": data,
        }
        self.push("callback_query", query)
        return query

    def push(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        """A new update for the bot."""
        update = {"update_id": next(self._update_ids), kind: content}
        self.updates.append(update)
        self.changed.set()
        return update

    def add_file(self, data: bytes, size: int | None = None) -> dict[str, Any]:
        """A file that a message can carry; `size` claims another length."""
        number = next(self._other_ids)
        self.files[f"f{number}"] = data
        size = len(data) if size is None else size
        return {"file_id": f"f{number}", "file_unique_id": f"u{number}", "file_size": size}

    # what the bot does

    def chat(self, chat_id: object) -> dict[str, Any]:
        try:
            number = int(str(chat_id))
            if number in self.refusals:
                raise self.refusals[number]
            return self._chats[number]
        except (ValueError, KeyError):
            raise ApiError(400, "Bad Request: chat not found") from None

    def check_topic(self, chat_id: int, topic: int | None) -> None:
        # The General topic has no id that can be written to.
        if topic is not None and topic not in self._topics.get(chat_id, ()):
            raise ApiError(400, "Bad Request: message thread not found")

    def post(self, chat_id: int, **fields: Any) -> dict[str, Any]:
        return self._new_message(chat_id, BOT, **fields)

    def own_message(self, chat_id: object, message_id: object, verb: str) -> dict[str, Any]:
        chat = self.chat(chat_id)
        message = self.messages.get((chat["id"], int(str(message_id))))
        if message is None:
            raise ApiError(400, f"Bad Request: message to {verb} not found")
        if message["from"]["id"] != BOT["id"]:
            raise ApiError(400, f"Bad Request: message can't be {verb}ed")
        return message

    def take_updates(self, offset: int, limit: int) -> list[dict[str, Any]]:
        """The waiting updates. A positive offset confirms all before it; a negative one forgets
        all but the last ones."""
        if offset > 0:
            self.updates = [each for each in self.updates if each["update_id"] >= offset]
        elif offset < 0:
            self.updates = self.updates[offset:]
        return self.updates[:limit]

    def texts(self, chat_id: int) -> list[str]:
        """The texts and captions of the bot that a chat shows, in order."""
        return [
            str(message.get("text", message.get("caption", "")))
            for (chat, _), message in sorted(self.messages.items())
            if chat == chat_id and message["from"]["id"] == BOT["id"]
        ]

    def _new_message(self, chat_id: int, sender: dict[str, Any], **fields: Any) -> dict[str, Any]:
        number = next(self._message_ids)
        message = {
            "message_id": number,
            "from": sender,
            "chat": self._chats[chat_id],
            "date": int(time.time() + self.clock_skew),
            **fields,
        }
        self.messages[chat_id, number] = message
        return message


def _find_entities(text: str) -> list[dict[str, Any]]:
    """Commands at the beginning and mentions, in UTF-16 units."""
    found, at = [], 0
    for word in text.split(" "):
        units = len(word.encode("utf-16-le")) // 2
        if word.startswith("@") and units > 1:
            found.append({"type": "mention", "offset": at, "length": units})
        elif word.startswith("/") and units > 1:
            found.append({"type": "bot_command", "offset": at, "length": units})
        at += units + 1
    return found
