"""The parts of Telegram updates that Hermes reads."""

from __future__ import annotations

from msgspec import field

from hermes.codec.values import Value


class User(Value):
    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""


class Chat(Value):
    id: int
    type: str
    title: str = ""


class Entity(Value):
    """A marked part of a text; lengths are in UTF-16 units."""

    type: str
    offset: int
    length: int
    user: User | None = None


class File(Value):
    file_id: str
    file_unique_id: str = ""
    file_size: int = 0
    file_name: str = ""
    mime_type: str = ""
    # Of a sticker.
    emoji: str = ""


class Location(Value):
    latitude: float
    longitude: float


class Topic(Value):
    name: str = ""


class Message(Value):
    message_id: int
    chat: Chat
    date: int
    from_: User | None = field(default=None, name="from")
    sender_chat: Chat | None = None
    text: str = ""
    caption: str = ""
    entities: tuple[Entity, ...] = ()
    caption_entities: tuple[Entity, ...] = ()
    message_thread_id: int = 0
    is_topic_message: bool = False
    reply_to_message: Message | None = None
    forum_topic_created: Topic | None = None
    photo: tuple[File, ...] = ()
    document: File | None = None
    voice: File | None = None
    audio: File | None = None
    video: File | None = None
    video_note: File | None = None
    animation: File | None = None
    sticker: File | None = None
    location: Location | None = None


class CallbackQuery(Value):
    id: str
    from_: User = field(name="from")
    message: Message | None = None
    data: str = ""


class Emoji(Value):
    emoji: str = ""


class ReactionUpdate(Value):
    """Someone changed their reactions to a message."""

    chat: Chat
    message_id: int
    date: int
    user: User | None = None
    old_reaction: tuple[Emoji, ...] = ()
    new_reaction: tuple[Emoji, ...] = ()


class Update(Value):
    update_id: int
    message: Message | None = None
    channel_post: Message | None = None
    callback_query: CallbackQuery | None = None
    message_reaction: ReactionUpdate | None = None


class RefusalParameters(Value):
    retry_after: float | None = None
    migrate_to_chat_id: int = 0


class Refusal(Value):
    """An answer with `ok: false`."""

    error_code: int
    description: str = ""
    parameters: RefusalParameters = RefusalParameters()
