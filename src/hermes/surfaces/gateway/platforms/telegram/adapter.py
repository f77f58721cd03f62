"""The Telegram adapter: polling or a webhook, posts, files, buttons and the command menu."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from collections.abc import Mapping
from typing import Any

from hermes.codec.json import DecodeError, convert, decode
from hermes.codec.values import JsonObject
from hermes.core.errors import (
    ConfigError,
    LoginRejected,
    PlatformUnreachable,
    PostRejected,
    TargetGone,
)
from hermes.net.http import HttpClient
from hermes.surfaces.gateway.markup.telegram_html import to_telegram_html, visible_text
from hermes.surfaces.gateway.platform import (
    Address,
    Deliver,
    Inbound,
    InboundFile,
    OutboundFile,
    PlatformContext,
    PlatformStatus,
    Post,
)
from hermes.surfaces.gateway.platforms.settings import read_number
from hermes.surfaces.gateway.platforms.telegram.api import (
    UPLOAD_SECONDS,
    BotApi,
    ChatMoved,
    MarkupRejected,
    NotModified,
    PollConflict,
)
from hermes.surfaces.gateway.platforms.telegram.inbound import EventReader
from hermes.surfaces.gateway.platforms.telegram.media import TelegramMedia
from hermes.surfaces.gateway.platforms.telegram.wire import Message, Update, User

log = logging.getLogger(__name__)

POLL_SECONDS = 25
CONFLICT_SECONDS = (10.0, 20.0, 40.0)
MAX_TEXT, MAX_CAPTION, MAX_CHOICE_BYTES = 4096, 1024, 64
MAX_WEBHOOK_BYTES = 1024 * 1024
UPDATES = ["message", "channel_post", "callback_query", "message_reaction"]
# The id under which Telegram shows the General topic; posts to it have none.
GENERAL_TOPIC = "1"
# Bots may only use some emoji.
REACTIONS = {"✅": "👍", "❌": "👎"}


class Telegram:
    """One bot."""

    def __init__(self, context: PlatformContext) -> None:
        self._context, self._extra = context, context.extra
        self._settings = settings = context.settings
        self._webhook_url = settings.get("TELEGRAM_WEBHOOK_URL", "")
        self._webhook_secret = settings.get("TELEGRAM_WEBHOOK_SECRET", "")
        if self._webhook_url and not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", self._webhook_secret):
            raise ConfigError(
                "TELEGRAM_WEBHOOK_URL needs TELEGRAM_WEBHOOK_SECRET: 1-256 letters, digits, _ or -."
            )
        self._api = BotApi(
            _http_client(context),
            settings.get("TELEGRAM_BOT_TOKEN", ""),
            str(self._extra.get("base_url", "")),
            str(self._extra.get("base_file_url", "")),
        )
        self._media = TelegramMedia(self._api, context)

    async def check(self) -> str:
        return f"@{(await self._api.call('getMe', kind=User)).username}"

    # events

    async def run(self, deliver: Deliver, status: PlatformStatus) -> None:
        me = await self._api.call("getMe", kind=User)
        reader = EventReader(me, self._settings, self._extra)
        await self._set_menu()
        # Messages from before the first start are not meant for this gateway.
        drops = self._is_first_start(me) and self._extra.get("drop_pending_on_cold_boot", True)
        if self._webhook_url:
            await self._serve_webhook(reader, deliver, status, drops=bool(drops))
        await self._poll(reader, deliver, status, drops=bool(drops))

    def _is_first_start(self, me: User) -> bool:
        return not (self._context.folder / f"{me.id}.started").exists()

    def _report_connected(self, reader: EventReader, status: PlatformStatus) -> None:
        (self._context.folder / f"{reader.me.id}.started").touch()
        status.connected(f"@{reader.me.username}")

    async def _poll(
        self, reader: EventReader, deliver: Deliver, status: PlatformStatus, *, drops: bool
    ) -> None:
        await self._api.call("deleteWebhook", {"drop_pending_updates": drops})
        self._report_connected(reader, status)
        offset = conflicts = 0
        while True:
            fields = {"offset": offset, "timeout": POLL_SECONDS, "allowed_updates": UPDATES}
            try:
                updates = await self._api.call(
                    "getUpdates", fields, kind=list[JsonObject], seconds=POLL_SECONDS + 10.0
                )
            except PollConflict as error:
                if conflicts == len(CONFLICT_SECONDS):
                    raise LoginRejected(
                        "Another instance uses this bot token; stop it or use another bot."
                    ) from error
                await self._context.world.clock.sleep(CONFLICT_SECONDS[conflicts])
                conflicts += 1
                continue
            conflicts = 0
            for update in sorted(updates, key=lambda each: int(each["update_id"])):
                await _deliver(reader, update, deliver)
                # The next poll acknowledges what is stored.
                offset = max(offset, int(update["update_id"]) + 1)

    async def _serve_webhook(
        self, reader: EventReader, deliver: Deliver, status: PlatformStatus, *, drops: bool
    ) -> None:
        # Loads a server that polling does not need.
        from hermes.surfaces.gateway.http_listener import HttpAnswer, Incoming, listen

        async def handle(request: Incoming) -> HttpAnswer:
            secret = request.headers.get("x-telegram-bot-api-secret-token", "")
            if not hmac.compare_digest(secret.encode(), self._webhook_secret.encode()):
                return HttpAnswer(401)
            if request.method != "POST" or request.body is None:
                return HttpAnswer(400)
            try:
                update = decode(dict[str, Any], request.body)
            except DecodeError:
                return HttpAnswer(400)
            await _deliver(reader, update, deliver)
            return HttpAnswer(200)

        host = self._settings.get("TELEGRAM_WEBHOOK_HOST") or "127.0.0.1"
        port = read_number(self._settings, "TELEGRAM_WEBHOOK_PORT", 8443)
        async with listen(host, port, handle, max_body_bytes=MAX_WEBHOOK_BYTES):
            fields = {"url": self._webhook_url, "secret_token": self._webhook_secret,
                      "allowed_updates": UPDATES, "drop_pending_updates": drops,
                      # One at a time keeps the order of messages.
                      "max_connections": 1}  # fmt: skip
            await self._api.call("setWebhook", fields)
            self._report_connected(reader, status)
            await asyncio.Event().wait()

    async def _set_menu(self) -> None:
        commands = _menu(self._context.commands, self._extra.get("command_menu") or {})
        try:
            for scope in ("default", "all_group_chats"):
                fields = {"commands": commands, "scope": {"type": scope}}
                await self._api.call("setMyCommands", fields)
        except (PostRejected, PlatformUnreachable) as error:
            log.warning("the command menu was not set", extra={"why": str(error)})

    # posts

    async def post(self, to: Address, post: Post, key: str) -> str:
        if post.file is not None:
            return await self._post_file(to, post, post.file)
        fields = self._target(to, post)
        text, html = _render(post.text, MAX_TEXT, is_plain=post.is_plain)
        return await self._send_text("sendMessage", "text", fields, text, html)

    async def edit(self, to: Address, message_id: str, post: Post) -> None:
        text, html = _render(post.text, MAX_TEXT, is_plain=post.is_plain)
        fields = {"chat_id": to.chat_id, "message_id": int(message_id), **_keyboard(post)}
        fields |= self._link_previews()
        try:
            await self._send_text("editMessageText", "text", fields, text, html)
        except NotModified:
            return

    async def delete(self, to: Address, message_id: str) -> None:
        fields = {"chat_id": to.chat_id, "message_id": int(message_id)}
        try:
            await self._api.call("deleteMessage", fields)
        except TargetGone:
            return

    async def find_post(self, to: Address, post: Post, key: str, since: float) -> str:
        # Bots cannot read the history of a chat.
        return ""

    async def show_typing(self, to: Address) -> None:
        await self._api.call("sendChatAction", {**_place(to), "action": "typing"})

    async def react(self, to: Address, message_id: str, emoji: str) -> None:
        shown = [{"type": "emoji", "emoji": REACTIONS.get(emoji, emoji)}] if emoji else []
        fields = {"chat_id": to.chat_id, "message_id": int(message_id), "reaction": shown}
        await self._api.call("setMessageReaction", fields)

    async def answer_choice(self, event: Inbound, text: str) -> None:
        fields = {"callback_query_id": event.choice_reference, "text": text[:200]}
        try:
            await self._api.call("answerCallbackQuery", fields)
        except PostRejected:
            # The press is too old for an answer.
            return

    async def _send_text(
        self, method: str, name: str, fields: JsonObject, text: str, html: str, **options: Any
    ) -> str:
        """Send with markup, and without it if Telegram refuses the markup."""
        shown = {name: html, "parse_mode": "HTML"} if html else {name: text}
        try:
            message = await self._api.call(method, fields | shown, kind=Message, **options)
        except MarkupRejected:
            log.warning("telegram refused our markup", extra={"method": method})
            message = await self._api.call(method, fields | {name: text}, kind=Message, **options)
        except ChatMoved as error:
            moved = fields | {"chat_id": error.chat_id} | shown
            message = await self._api.call(method, moved, kind=Message, **options)
        return str(message.message_id)

    async def _post_file(self, to: Address, post: Post, file: OutboundFile) -> str:
        upload = await self._media.read(file)
        text, html = _render(file.caption, MAX_CAPTION, is_plain=post.is_plain, is_caption=True)
        return await self._send_text(
            f"send{upload.kind.title()}",
            "caption",
            self._target(to, post),
            text,
            html,
            files={upload.kind: (upload.name, upload.data)},
            seconds=UPLOAD_SECONDS,
        )

    def _target(self, to: Address, post: Post) -> JsonObject:
        fields = {**_place(to), **_keyboard(post), **self._link_previews()}
        if post.reply_to.isdecimal():
            fields["reply_parameters"] = {
                "message_id": int(post.reply_to),
                "allow_sending_without_reply": True,
            }
        if post.is_silent:
            fields["disable_notification"] = True
        return fields

    def _link_previews(self) -> JsonObject:
        disabled = self._extra.get("disable_link_previews")
        return {"link_preview_options": {"is_disabled": True}} if disabled else {}

    async def download(self, file: InboundFile) -> InboundFile:
        return await self._media.download(file)


async def _deliver(reader: EventReader, raw: JsonObject, deliver: Deliver) -> None:
    try:
        event = reader.read(convert(Update, raw))
    except DecodeError as error:
        # It would come again for ever.
        log.warning("an update of telegram is not understood", extra={"why": str(error)})
        return
    if event is not None:
        await deliver(event)


def _http_client(context: PlatformContext) -> HttpClient:
    proxy = context.settings.get("TELEGRAM_PROXY", "")
    if not proxy:
        return context.http
    if not proxy.startswith(("http://", "https://")):
        raise ConfigError(
            "TELEGRAM_PROXY must be the http:// URL of a proxy; SOCKS is not supported."
        )
    return HttpClient(proxy=proxy)


def _render(text: str, limit: int, *, is_plain: bool, is_caption: bool = False) -> tuple[str, str]:
    """The text, and its HTML unless that is empty or too long."""
    if not text.strip() and not is_caption:
        raise PostRejected("The message is empty.")
    if is_caption and _units(text) > limit:
        text = text.encode("utf-16-le")[: 2 * (limit - 1)].decode("utf-16-le", "ignore") + "…"
    html = "" if is_plain else to_telegram_html(text)
    shown = visible_text(html)
    # A table with aligned columns can be longer than its source.
    return text, html if shown.strip() and _units(shown) <= limit else ""


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _place(to: Address) -> JsonObject:
    topic = to.thread_id if to.thread_id.isdecimal() and to.thread_id != GENERAL_TOPIC else ""
    return {"chat_id": to.chat_id} | ({"message_thread_id": int(topic)} if topic else {})


def _keyboard(post: Post) -> JsonObject:
    if not post.choices:
        return {}
    if any(len(each.id.encode()) > MAX_CHOICE_BYTES for each in post.choices):
        raise PostRejected(f"The id of a button is longer than {MAX_CHOICE_BYTES} bytes.")
    rows = [[{"text": each.label or each.id, "callback_data": each.id}] for each in post.choices]
    return {"reply_markup": {"inline_keyboard": rows}}


def _menu(commands: tuple[tuple[str, str], ...], options: Mapping[str, Any]) -> list[JsonObject]:
    """The commands of the menu, those in `priority` first, last or alone."""
    named = {re.sub(r"[^a-z0-9_]", "_", name.lower())[:32]: text for name, text in commands}
    wanted = [str(name).replace("-", "_") for name in options.get("priority") or ()]
    first = [name for name in wanted if name in named]
    rest = [name for name in named if name not in first]
    order = {"append": rest + first, "replace": first}.get(
        str(options.get("priority_mode")), first + rest
    )
    most = min(int(options.get("max_commands", 60)), 100)
    return [{"command": name, "description": named[name][:256] or name} for name in order[:most]]
