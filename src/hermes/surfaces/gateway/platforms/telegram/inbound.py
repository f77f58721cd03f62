"""Turns Telegram updates into events, and decides which messages of groups concern the bot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hermes.codec.values import JsonObject
from hermes.surfaces.gateway.platform import (
    Address,
    AttachmentKind,
    ChatType,
    Inbound,
    InboundFile,
    Quote,
    Sender,
)
from hermes.surfaces.gateway.platforms.settings import read_flag, read_names, read_patterns
from hermes.surfaces.gateway.platforms.telegram.wire import (
    CallbackQuery,
    Chat,
    Entity,
    File,
    Message,
    ReactionUpdate,
    Update,
    User,
)

_CHAT_TYPES: dict[str, ChatType] = {"private": "dm", "channel": "channel"}
_COMMAND = re.compile(r"/(\w+)@(\w+)")


class EventReader:
    """Reads the updates of one bot. `None` means that an update does not concern it."""

    def __init__(self, me: User, settings: Mapping[str, str], extra: JsonObject) -> None:
        self.me = me
        self.mention = re.compile(rf"@{re.escape(me.username)}\b", re.IGNORECASE)
        self._patterns = read_patterns(settings, "TELEGRAM_MENTION_PATTERNS")
        self._needs_mention = read_flag(settings, "TELEGRAM_REQUIRE_MENTION")
        self._observes = read_flag(settings, "TELEGRAM_OBSERVE_UNMENTIONED_GROUP_MESSAGES")
        self._allows_bots = settings.get("TELEGRAM_ALLOW_BOTS", "none").strip().lower()
        self._allowed_chats = read_names(settings, "TELEGRAM_ALLOWED_CHATS")
        self._allowed_topics = read_names(settings, "TELEGRAM_ALLOWED_TOPICS")
        self._ignored_topics = read_names(settings, "TELEGRAM_IGNORED_THREADS")
        self._free_chats = read_names(settings, "TELEGRAM_FREE_RESPONSE_CHATS")
        self._free_topics = read_names(settings, "TELEGRAM_FREE_RESPONSE_TOPICS")
        self._topics = dict(_topics(extra))

    def read(self, update: Update) -> Inbound | None:
        if update.callback_query is not None:
            return self._read_press(update.callback_query)
        if update.message_reaction is not None:
            return self._read_reaction(update.update_id, update.message_reaction)
        message = update.message or update.channel_post
        return None if message is None else self._read_message(message)

    def _read_press(self, query: CallbackQuery) -> Inbound | None:
        message = query.message
        if message is None or not query.data:
            return None
        return Inbound(
            key=f"press:{query.id}",
            address=_address(message),
            chat_type=_CHAT_TYPES.get(message.chat.type, "group"),
            sender=_sender(query.from_),
            at=float(message.date),
            message_id=str(message.message_id),
            choice=query.data,
            choice_reference=query.id,
            chat_name=message.chat.title,
        )

    def _read_reaction(self, update_id: int, change: ReactionUpdate) -> Inbound | None:
        new = [each.emoji for each in change.new_reaction if each not in change.old_reaction]
        if change.user is None or not any(new):
            return None
        return Inbound(
            key=f"reaction:{update_id}",
            address=Address(platform="telegram", chat_id=str(change.chat.id)),
            chat_type=_CHAT_TYPES.get(change.chat.type, "group"),
            sender=_sender(change.user),
            at=float(change.date),
            message_id=str(change.message_id),
            reaction=next(filter(None, new)),
            chat_name=change.chat.title,
        )

    def _read_message(self, message: Message) -> Inbound | None:
        text = self._own_text(message)
        files = tuple(_files(message))
        sender = _sender(message.sender_chat or message.from_)
        is_direct = message.chat.type == "private"
        if text is None or sender.id in ("", str(self.me.id)):
            return None
        if not text and not files:
            return None
        address = _address(message)
        is_addressed = is_direct or self._is_addressed(message)
        if not is_direct and not self._concerns(address, sender, is_addressed):
            return None
        topic, skill = self._topics.get((address.chat_id, address.thread_id)) or self._topics.get(
            ("", address.thread_id), ("", "")
        )
        return Inbound(
            key=f"{message.chat.id}:{message.message_id}",
            address=address,
            chat_type=_CHAT_TYPES.get(message.chat.type, "group"),
            sender=sender,
            at=float(message.date),
            message_id=str(message.message_id),
            text=text,
            files=files,
            quote=self._quote(message.reply_to_message),
            is_addressed=is_addressed or not self._requires_mention(address),
            chat_name=message.chat.title,
            topic=topic,
            skills=(skill,) if skill else (),
        )

    def _concerns(self, address: Address, sender: Sender, is_addressed: bool) -> bool:
        """Whether a message of a group passes the rules of the settings."""
        chat, topic = address.chat_id, address.thread_id
        if self._allowed_chats and chat not in self._allowed_chats:
            return False
        if self._allowed_topics and topic not in self._allowed_topics:
            return False
        if topic and topic in self._ignored_topics:
            return False
        if sender.is_bot and not (
            self._allows_bots == "all" or (self._allows_bots == "mentions" and is_addressed)
        ):
            return False
        return is_addressed or self._observes or not self._requires_mention(address)

    def _requires_mention(self, address: Address) -> bool:
        is_free = address.chat_id in self._free_chats or address.thread_id in self._free_topics
        return self._needs_mention and not is_free

    def _is_addressed(self, message: Message) -> bool:
        reply = message.reply_to_message
        if reply is not None and reply.from_ is not None and reply.from_.id == self.me.id:
            return reply.forum_topic_created is None
        text = message.text or message.caption
        for entity in message.entities or message.caption_entities:
            part = _part(text, entity)
            if entity.type == "mention" and part.lower() == f"@{self.me.username}".lower():
                return True
            if entity.type == "text_mention" and entity.user and entity.user.id == self.me.id:
                return True
            if entity.type == "bot_command" and entity.offset == 0:
                return True
        return any(pattern.search(text) for pattern in self._patterns)

    def _own_text(self, message: Message) -> str | None:
        """The text without the name of the bot; None for a command to another bot."""
        text = message.text or message.caption
        command = _COMMAND.match(text)
        if command and command[2].lower() != self.me.username.lower():
            return None
        if command:
            text = f"/{command[1]}{text[command.end() :]}"
        elif message.chat.type != "private":
            text = self.mention.sub("", text, count=1).strip()
        if message.location is not None:
            place = message.location
            text = f"{text}\n[location: {place.latitude}, {place.longitude}]".strip()
        return text or (message.sticker.emoji if message.sticker else "")

    def _quote(self, message: Message | None) -> Quote | None:
        # Each message of a topic replies to the creation of the topic.
        if message is None or message.forum_topic_created is not None:
            return None
        author = message.from_.id if message.from_ else 0
        return Quote(
            message_id=str(message.message_id),
            text=message.text or message.caption,
            author_id=str(author or ""),
            is_own=author == self.me.id,
        )


def _address(message: Message) -> Address:
    topic = str(message.message_thread_id) if message.is_topic_message else ""
    return Address(platform="telegram", chat_id=str(message.chat.id), thread_id=topic)


def _sender(author: User | Chat | None) -> Sender:
    match author:
        case User():
            name = f"{author.first_name} {author.last_name}".strip() or author.username
            return Sender(id=str(author.id), name=name, is_bot=author.is_bot)
        case Chat():
            return Sender(id=str(author.id), name=author.title)
        case None:
            return Sender(id="")


def _files(message: Message) -> Iterator[InboundFile]:
    kinds: tuple[tuple[AttachmentKind, File | None, str], ...] = (
        ("image", max(message.photo, key=lambda each: each.file_size, default=None), "image/jpeg"),
        ("voice", message.voice, "audio/ogg"),
        ("audio", message.audio, "audio/mpeg"),
        ("video", message.video or message.video_note or message.animation, "video/mp4"),
        ("sticker", message.sticker, "image/webp"),
        # An animation comes as a document too.
        ("file", None if message.animation else message.document, ""),
    )
    for kind, file, mime in kinds:
        if file is not None:
            yield InboundFile(
                kind=kind,
                name=file.file_name,
                mime=file.mime_type or mime,
                size=file.file_size,
                reference={"file_id": file.file_id, "unique_id": file.file_unique_id},
            )


def _part(text: str, entity: Entity) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    part = units[2 * entity.offset : 2 * (entity.offset + entity.length)]
    return part.decode("utf-16-le", "replace")


def _topics(extra: JsonObject) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Name and skill of the topics in `dm_topics` and `group_topics`, by chat and thread."""
    for setting in ("dm_topics", "group_topics"):
        for entry in extra.get(setting) or ():
            chat = str(entry.get("chat_id", ""))
            for topic in entry.get("topics") or (entry,):
                place = (chat, str(topic.get("thread_id", "")))
                yield place, (str(topic.get("name", "")), str(topic.get("skill") or ""))
