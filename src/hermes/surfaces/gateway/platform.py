"""The contract between the gateway and a messaging platform: events in, posts out, and the declared
abilities that drive everything in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from hermes.codec.values import JsonObject, Value
from hermes.core.world import World
from hermes.net.http import HttpClient

ChatType = Literal["dm", "group", "channel", "thread"]
ChoiceKind = Literal["buttons", "reactions", "none"]
AttachmentKind = Literal["image", "voice", "audio", "video", "file", "sticker"]


class Address(Value):
    """A chat, or a thread in it."""

    platform: str
    chat_id: str
    thread_id: str = ""


class Sender(Value):
    """Who wrote a message. `other_ids` are further ids of the same person, such as a number beside
    a UUID. `roles` are groups of the platform that the person belongs to."""

    id: str
    name: str = ""
    other_ids: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    is_bot: bool = False


class InboundFile(Value):
    """A file of an incoming message. `reference` is what `Platform.download` needs. `path` is set
    when it is downloaded, `problem` when it cannot be."""

    kind: AttachmentKind
    name: str = ""
    mime: str = ""
    size: int = 0
    reference: JsonObject = {}
    path: str = ""
    problem: str = ""


class Quote(Value):
    """The message that another one replies to."""

    message_id: str
    text: str = ""
    author_id: str = ""
    is_own: bool = False


class Inbound(Value):
    """A message, a command or a pressed button. `key` is the platform's own id of the event, unique
    for the account; an event that comes again has the same key."""

    key: str
    address: Address
    chat_type: ChatType
    sender: Sender
    # Seconds since 1970, by the clock of the platform.
    at: float
    message_id: str = ""
    text: str = ""
    files: tuple[InboundFile, ...] = ()
    quote: Quote | None = None
    # The message addresses the bot: a mention, a reply to it, or a direct message. Others get no
    # answer; the model sees them with the next message.
    is_addressed: bool = True
    # The id of the choice whose button was pressed; then `message_id` is the post with the buttons.
    choice: str = ""
    # An emoji that the sender put on the message `message_id`; then there is no text.
    reaction: str = ""
    # Lets the platform answer this press, such as a callback query id.
    choice_reference: str = ""
    chat_name: str = ""
    topic: str = ""
    # The server, team or workspace.
    scope_id: str = ""
    parent_chat_id: str = ""
    # Skills and text that the settings of the platform bind to this chat.
    skills: tuple[str, ...] = ()
    instructions: str = ""


class OutboundFile(Value):
    """A local file to send. `as_voice` and `as_document` ask for a presentation."""

    kind: AttachmentKind
    path: str
    name: str = ""
    caption: str = ""
    as_voice: bool = False
    as_document: bool = False


class Choice(Value):
    """A button, or an answer that can be typed. `emoji` is the button where reactions are some."""

    id: str
    label: str
    emoji: str = ""
    is_danger: bool = False


class Post(Value):
    """A message to a chat: Markdown text that fits into one message, one file, or an emoji on the
    message `reply_to`. `is_plain` sends the text without markup."""

    text: str = ""
    file: OutboundFile | None = None
    choices: tuple[Choice, ...] = ()
    reply_to: str = ""
    reaction: str = ""
    is_plain: bool = False
    # Without a sound or notification where the platform can do that.
    is_silent: bool = False


class Abilities(Value):
    """What a platform can do. The gateway splits, streams, retries and resolves posts by it."""

    max_chars: int
    counting: Literal["characters", "utf16", "bytes"] = "characters"
    # The name of a converter in `markup`.
    markup: str = "plain"
    edits: bool = False
    deletes: bool = False
    # How often the typing indicator must be renewed; 0 when there is none.
    typing_seconds: float = 0.0
    reactions: bool = False
    # Messages get reactions that show their state, unless the setting `reactions` says otherwise.
    shows_state: bool = False
    threads: bool = False
    choices: ChoiceKind = "none"
    files: bool = False
    voice_notes: bool = False
    max_upload_bytes: int = 0
    # How a post with unknown outcome is resolved: the platform ignores a key that it has seen, or
    # `find_post` reads the chat, or nobody can tell.
    resolution: Literal["key", "read_back", "none"] = "none"
    # What a slash command may begin with: Slack and Matrix also accept `!new`.
    command_prefixes: tuple[str, ...] = ("/",)
    # Messages are authorised by the transport, such as a signature, and not by their sender.
    is_trusted_transport: bool = False
    # Strangers who write directly get a pairing code by default.
    offers_pairing: bool = True
    max_menu_commands: int = 0


class SettingField(Value):
    """A value that `hermes gateway setup` asks for. `env` is its environment variable; the same
    value may stand under `platforms.<name>.extra`."""

    env: str
    label: str
    help: str = ""
    is_secret: bool = False
    is_required: bool = True
    default: str = ""


class Manifest(Value):
    """A platform before its code is loaded. `adapter` is `module:function`, a factory that takes a
    PlatformContext. `credential` names the setting that only one process may use at a time."""

    name: str
    title: str
    adapter: str
    abilities: Abilities
    fields: tuple[SettingField, ...]
    credential: str = ""
    # The optional dependencies, as `hermes extras add` knows them.
    extra: str = ""
    steps: tuple[str, ...] = ()
    docs: str = ""


class GatewayPorts(Protocol):
    """What a platform that starts work itself, such as a webhook, may ask of the gateway."""

    async def send(self, target: str, text: str, *, key: str) -> None:
        """Send Markdown to a chat of any platform, once for each key. Raises PlatformError."""
        ...

    async def run_job(self, job: str, context: str, *, key: str) -> None:
        """Run a scheduled job now, with further text, once for each key. Raises HermesError."""
        ...


class PlatformContext(NamedTuple):
    """What an adapter gets from the gateway."""

    # By environment name, wherever the value comes from.
    settings: Mapping[str, str]
    # `platforms.<name>.extra` as it is in the settings.
    extra: JsonObject
    # For state of its own: `platforms/<name>` of the home.
    folder: Path
    # Where `download` stores files.
    media: Path
    max_media_bytes: int
    http: HttpClient
    world: World
    # Slash commands for a command menu: name and description.
    commands: tuple[tuple[str, str], ...] = ()
    ports: GatewayPorts | None = None


Deliver = Callable[[Inbound], Awaitable[None]]
"""Stores an event. The event is durable when it returns, and may be acknowledged."""


class PlatformStatus(Protocol):
    """How an adapter reports its connection."""

    def connected(self, account: str) -> None:
        """The platform accepts and delivers messages. `account` is the name of the bot."""
        ...


class Platform(Protocol):
    """An adapter. Its methods raise the errors under PlatformError and nothing else."""

    async def run(self, deliver: Deliver, status: PlatformStatus) -> None:
        """Connect and deliver events until cancelled. An event is acknowledged to the platform only
        after `deliver` has returned. PlatformUnreachable ends a connection that is tried again,
        LoginRejected one that is not."""
        ...

    async def post(self, to: Address, post: Post, key: str) -> str:
        """Send one message; returns the platform's id of it. `key` identifies the post for ever.
        PlatformUnreachable only when it was certainly not sent, PostUncertain otherwise."""
        ...

    async def edit(self, to: Address, message_id: str, post: Post) -> None:
        """Replace the text and choices of a message. Editing to the same text is not an error."""
        ...

    async def delete(self, to: Address, message_id: str) -> None: ...

    async def find_post(self, to: Address, post: Post, key: str, since: float) -> str:
        """The id of a message of ours that is this post, sent since that time; "" when there is
        none. Only for `resolution="read_back"`."""
        ...

    async def download(self, file: InboundFile) -> InboundFile:
        """The file with its `path`, or with a `problem` when it is too large or gone."""
        ...

    async def show_typing(self, to: Address) -> None: ...

    async def react(self, to: Address, message_id: str, emoji: str) -> None:
        """Set our reaction to a message, also if it is set already; "" removes it."""
        ...

    async def answer_choice(self, event: Inbound, text: str) -> None:
        """Tell the person who pressed a button what happened."""
        ...

    async def check(self) -> str:
        """Log in and return the name of the account, for `hermes gateway test`."""
        ...
