"""A fake of the Telegram Bot API, with polling, webhooks, files and the errors of the original."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from hermes.testing.connection import RawRequest
from hermes.testing.platforms.faults import Fault
from hermes.testing.platforms.http_server import FakeHttpServer, Reply, UploadedFile
from hermes.testing.platforms.telegram_chats import (
    BOT,
    MAX_DOWNLOAD_BYTES,
    ApiError,
    TelegramChats,
)
from hermes.testing.platforms.telegram_markup import MarkupError, parse_html, utf16_length

TOKEN = "4000:fake-token-of-a-bot"
MAX_TEXT, MAX_CAPTION, MAX_CALLBACK_BYTES, MAX_MENU = 4096, 1024, 64, 100
MAX_UPLOAD_BYTES, MAX_PHOTO_BYTES = 50 * 1024 * 1024, 10 * 1024 * 1024
REACTIONS = frozenset(
    "👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌🕊🤡🥱🥴😍🐳🌚🌭💯🤣⚡🍌🏆💔🤨😐🍓🍾💋🖕😈😴😭🤓👻👀🎃🙈😇"
)
_MEDIA = ("photo", "document", "voice", "audio", "video", "animation")


class FakeTelegram(FakeHttpServer):
    """The Bot API for one bot. `chats` is what people and the bot see and do."""

    def __init__(self, token: str = TOKEN) -> None:
        super().__init__()
        self.chats = TelegramChats()
        self.webhook: dict[str, Any] = {}
        # The next polls get their updates twice or in reverse.
        self.repeats_updates = False
        self.reverses_updates = False
        self._token = token
        self._poll = 0

    def revoke_token(self, successor: str) -> None:
        """From now on only another token is accepted, also for a poll that waits."""
        self._token = successor
        self.chats.changed.set()

    def call_name(self, request: RawRequest) -> str:
        parts = urlsplit(request.path).path.split("/")
        return "file" if parts[1] == "file" else parts[-1]

    def fault_reply(self, fault: Fault) -> Reply:
        match fault.kind:
            case "rate_limit":
                seconds = int(fault.retry_after)
                text = f"Too Many Requests: retry after {seconds}"
                return _refusal(ApiError(429, text, retry_after=seconds))
            case "conflict":
                return _refusal(_conflict())
            case "login":
                return _refusal(ApiError(401, "Unauthorized"))
            case _:
                return Reply(fault.status, b"<html>Bad Gateway</html>", "text/html")

    async def handle(self, name: str, fields: dict[str, Any], request: RawRequest) -> Reply:
        path = unquote(urlsplit(request.path).path)
        if not path.startswith((f"/bot{self._token}/", f"/file/bot{self._token}/")):
            return _refusal(ApiError(401, "Unauthorized"))
        if name == "file":
            data = self.chats.files.get(path.rpartition("/")[2])
            return Reply(404) if data is None else Reply(200, data, "application/octet-stream")
        if len(request.raw) > MAX_UPLOAD_BYTES + 64 * 1024:
            return _refusal(ApiError(413, "Request Entity Too Large"))
        method = getattr(self, f"_on_{name.lower()}", None)
        try:
            if method is None:
                raise ApiError(404, "Not Found")
            result = method(_Fields(fields))
            result = await result if asyncio.iscoroutine(result) else result
        except ApiError as error:
            return _refusal(error)
        return Reply(200, json.dumps({"ok": True, "result": result}).encode())

    # connection

    def _on_getme(self, _: _Fields) -> dict[str, Any]:
        return {**BOT, "can_join_groups": True, "can_read_all_group_messages": True,
                "supports_inline_queries": False}  # fmt: skip

    async def _on_getupdates(self, fields: _Fields) -> list[dict[str, Any]]:
        if self.webhook:
            raise ApiError(
                409, "Conflict: can't use getUpdates method while webhook is active; use "
                "deleteWebhook to delete the webhook first",
            )  # fmt: skip
        self._poll += 1
        poll, offset = self._poll, fields.number("offset")
        token = self._token
        loop = asyncio.get_running_loop()
        end = loop.time() + fields.number("timeout")
        self.chats.changed.set()
        while True:
            if token != self._token:
                raise ApiError(401, "Unauthorized")
            if poll != self._poll:
                raise _conflict()
            found = self.chats.take_updates(offset, fields.number("limit") or 100)
            if found or loop.time() >= end:
                return self._disturb(found)
            self.chats.changed.clear()
            try:
                async with asyncio.timeout(max(0.0, end - loop.time())):
                    await self.chats.changed.wait()
            except TimeoutError:
                continue

    def _disturb(self, updates: list[dict[str, Any]]) -> list[dict[str, Any]]:
        updates = list(reversed(updates)) if self.reverses_updates else updates
        return [each for each in updates for _ in range(2 if self.repeats_updates else 1)]

    def _on_deletewebhook(self, fields: _Fields) -> bool:
        self.webhook = {}
        if fields.flag("drop_pending_updates"):
            self.chats.updates.clear()
        return True

    def _on_setwebhook(self, fields: _Fields) -> bool:
        self._on_deletewebhook(fields)
        url = str(fields["url"])
        if not url.startswith(("https://", "http://127.0.0.1")):
            raise ApiError(400, "Bad Request: bad webhook: An HTTPS URL must be provided")
        self.webhook = {"url": url, "secret": fields["secret_token"]}
        self.run_in_background(self._push_updates(dict(self.webhook)))
        return True

    async def _push_updates(self, webhook: dict[str, Any]) -> None:
        """Post updates in order; one that is not accepted is posted again."""
        while self.webhook == webhook:
            if not self.chats.updates:
                self.chats.changed.clear()
                await self.chats.changed.wait()
                continue
            update = self.chats.updates[0]
            if await asyncio.to_thread(_push, webhook, update):
                self.chats.updates.remove(update)
            else:
                await asyncio.sleep(0.05)

    def _on_setmycommands(self, fields: _Fields) -> bool:
        commands = fields.json("commands")
        if len(commands) > MAX_MENU:
            raise ApiError(400, "Bad Request: too many commands specified")
        for each in commands:
            name = each["command"]
            if not (0 < len(name) <= 32 and name.replace("_", "a").isalnum() and name.islower()):
                raise ApiError(400, "Bad Request: BOT_COMMAND_INVALID")
            if not 0 < len(each["description"]) <= 256:
                raise ApiError(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        scope = fields.json("scope") or {"type": "default"}
        self.chats.commands[scope["type"]] = commands
        return True

    # messages

    def _on_sendmessage(self, fields: _Fields) -> dict[str, Any]:
        content = self._text(fields, "text", MAX_TEXT, "message is too long")
        if not content["text"]:
            raise ApiError(400, "Bad Request: message text is empty")
        return self._post(fields, content)

    def _send_file(self, kind: str, fields: _Fields) -> dict[str, Any]:
        upload = fields[kind]
        if isinstance(upload, str) and upload.startswith("attach://"):
            upload = fields[upload.removeprefix("attach://")]
        if not isinstance(upload, UploadedFile):
            raise ApiError(400, f"Bad Request: there is no {kind} in the request")
        if kind == "photo" and len(upload.data) > MAX_PHOTO_BYTES:
            raise ApiError(400, "Bad Request: file is too big for a photo")
        if kind == "photo" and upload.data[:4] not in (b"\x89PNG", b"\xff\xd8\xff\xe0", b"RIFF"):
            raise ApiError(400, "Bad Request: IMAGE_PROCESS_FAILED")
        file = {**self.chats.add_file(upload.data), "file_name": upload.name}
        content = self._text(fields, "caption", MAX_CAPTION, "message caption is too long")
        return self._post(
            fields,
            {kind: [{**file, "width": 1, "height": 1}] if kind == "photo" else file} | content,
        )

    def __getattr__(self, name: str) -> Any:
        kind = name.removeprefix("_on_send")
        if kind in _MEDIA and kind != name:
            return lambda fields: self._send_file(kind, fields)
        raise AttributeError(name)

    def _post(self, fields: _Fields, content: dict[str, Any]) -> dict[str, Any]:
        chat = self.chats.chat(fields["chat_id"])
        topic = fields.number("message_thread_id") or None
        self.chats.check_topic(chat["id"], topic)
        if topic is not None:
            content |= {"message_thread_id": topic, "is_topic_message": True}
        reply = fields.json("reply_parameters")
        if reply:
            quoted = self.chats.messages.get((chat["id"], reply["message_id"]))
            if quoted is None and not reply.get("allow_sending_without_reply"):
                raise ApiError(400, "Bad Request: message to be replied not found")
            content |= {"reply_to_message": quoted} if quoted else {}
        return self.chats.post(chat["id"], **content, **self._keyboard(fields))

    def _text(self, fields: _Fields, name: str, limit: int, too_long: str) -> dict[str, Any]:
        source, entities = str(fields[name] or ""), list[dict[str, Any]]()
        text = source
        mode = str(fields["parse_mode"] or "")
        if mode.lower() == "html":
            try:
                text, entities = parse_html(source)
            except MarkupError as error:
                raise ApiError(400, f"Bad Request: can't parse entities: {error}") from error
        elif mode:
            raise ApiError(400, "Bad Request: unsupported parse_mode")
        text = text.strip()
        if utf16_length(text) > limit:
            raise ApiError(400, f"Bad Request: {too_long}")
        return {name: text, "entities": entities}

    def _keyboard(self, fields: _Fields) -> dict[str, Any]:
        markup = fields.json("reply_markup")
        for row in (markup or {}).get("inline_keyboard", ()):
            for button in row:
                if not 0 < len(button["callback_data"].encode()) <= MAX_CALLBACK_BYTES:
                    raise ApiError(400, "Bad Request: BUTTON_DATA_INVALID")
                if not button["text"]:
                    raise ApiError(400, "Bad Request: text buttons are unallowed")
        return {"reply_markup": markup} if markup else {}

    def _on_editmessagetext(self, fields: _Fields) -> dict[str, Any]:
        message = self.chats.own_message(fields["chat_id"], fields["message_id"], "edit")
        content = self._text(fields, "text", MAX_TEXT, "message is too long")
        if not content["text"]:
            raise ApiError(400, "Bad Request: message text is empty")
        content |= self._keyboard(fields)
        old = {name: message.get(name) for name in ("text", "entities", "reply_markup")}
        if old == {"reply_markup": None, **content}:
            raise ApiError(
                400, "Bad Request: message is not modified: specified new message content and "
                "reply markup are exactly the same as a current content and reply markup of the "
                "message",
            )  # fmt: skip
        message.pop("reply_markup", None)
        message |= content
        return message

    def _on_deletemessage(self, fields: _Fields) -> bool:
        message = self.chats.own_message(fields["chat_id"], fields["message_id"], "delete")
        del self.chats.messages[message["chat"]["id"], message["message_id"]]
        return True

    def _on_sendchataction(self, fields: _Fields) -> bool:
        self.chats.chat(fields["chat_id"])
        return True

    def _on_setmessagereaction(self, fields: _Fields) -> bool:
        chat = self.chats.chat(fields["chat_id"])
        emojis = [each["emoji"] for each in fields.json("reaction") or ()]
        if not all(each in REACTIONS for each in emojis):
            raise ApiError(400, "Bad Request: REACTION_INVALID")
        self.chats.reactions[chat["id"], fields.number("message_id")] = emojis
        return True

    def _on_answercallbackquery(self, fields: _Fields) -> bool:
        text = str(fields["text"] or "")
        if len(text) > 200:
            raise ApiError(400, "Bad Request: MESSAGE_TOO_LONG")
        self.chats.callback_answers[str(fields["callback_query_id"])] = text
        return True

    def _on_getfile(self, fields: _Fields) -> dict[str, Any]:
        data = self.chats.files.get(str(fields["file_id"]))
        if data is None:
            raise ApiError(400, "Bad Request: invalid file_id")
        if len(data) > MAX_DOWNLOAD_BYTES:
            raise ApiError(400, "Bad Request: file is too big")
        return {"file_id": fields["file_id"], "file_unique_id": "u", "file_size": len(data),
                "file_path": f"documents/{fields['file_id']}"}  # fmt: skip


class _Fields:
    """The parameters of a call, which arrive as JSON or as strings."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw

    def __getitem__(self, name: str) -> Any:
        return self._raw.get(name)

    def number(self, name: str) -> int:
        return int(self._raw.get(name) or 0)

    def flag(self, name: str) -> bool:
        return str(self._raw.get(name, "")).lower() == "true"

    def json(self, name: str) -> Any:
        value = self._raw.get(name)
        return json.loads(value) if isinstance(value, str) else value


def _conflict() -> ApiError:
    return ApiError(
        409, "Conflict: terminated by other getUpdates request; make sure that only one bot "
        "instance is running",
    )  # fmt: skip


def _refusal(error: ApiError) -> Reply:
    body: dict[str, Any] = {
        "ok": False,
        "error_code": error.code,
        "description": error.description,
    }
    if error.parameters:
        body["parameters"] = error.parameters
    return Reply(error.code, json.dumps(body).encode())


def _push(webhook: dict[str, Any], update: dict[str, Any]) -> bool:
    request = Request(webhook["url"], json.dumps(update).encode(), method="POST")
    request.add_header("Content-Type", "application/json")
    if webhook["secret"]:
        request.add_header("X-Telegram-Bot-Api-Secret-Token", str(webhook["secret"]))
    try:
        with urlopen(request, timeout=10) as response:
            return bool(200 <= response.status < 300)
    except (URLError, OSError):
        return False
