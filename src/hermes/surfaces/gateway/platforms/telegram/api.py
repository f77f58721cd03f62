"""Calls of the Telegram Bot API, and what their failures mean for a post."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, TypeVar

from hermes.codec.json import DecodeError, convert, decode, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import (
    LoginRejected,
    PlatformError,
    PlatformUnreachable,
    PostRejected,
    PostUncertain,
    ProviderError,
    TargetGone,
)
from hermes.net.http import HttpClient, ResponseContext, Timeouts
from hermes.surfaces.gateway.platforms.telegram.wire import Refusal

T = TypeVar("T")

CALL_SECONDS = 30.0
UPLOAD_SECONDS = 300.0
_GONE = (
    "chat not found",
    "thread not found",
    "topic_deleted",
    "topic_closed",
    "message to edit not found",
    "message can't be edited",
    "message to delete not found",
    "message can't be deleted",
    "message to react not found",
    "user is deactivated",
    "not enough rights",
    "have no rights",
    "need administrator rights",
    "chat_write_forbidden",
)


class PollConflict(PlatformUnreachable):
    """Another process receives the updates of this bot."""


class MarkupRejected(PostRejected):
    """Telegram cannot parse the formatting."""


class NotModified(PostRejected):
    """The message looks like that already."""


class ChatMoved(PostRejected):
    """The group became a supergroup with another id."""

    def __init__(self, chat_id: int) -> None:
        super().__init__("The group has a new id.")
        self.chat_id = str(chat_id)


class BotApi:
    """One bot. `base` and `file_base` end with its token."""

    def __init__(self, http: HttpClient, token: str, base: str = "", file_base: str = "") -> None:
        self._http = http
        self._base = f"{base or 'https://api.telegram.org/bot'}{token}"
        self._file_base = f"{file_base or 'https://api.telegram.org/file/bot'}{token}"

    async def call(
        self,
        method: str,
        fields: JsonObject | None = None,
        *,
        kind: type[T] = Any,  # type: ignore[assignment]
        files: Mapping[str, tuple[str, bytes]] | None = None,
        seconds: float = CALL_SECONDS,
    ) -> T:
        """The result of a method. Sending methods raise PostUncertain when nobody knows whether
        they had an effect."""
        sends = method.startswith("send") and method != "sendChatAction"
        content_type, body = _form(fields or {}, files) if files else _json(fields or {})
        timeouts = Timeouts(connect=10.0, read=seconds)
        headers = {"content-type": content_type}
        try:
            async with self._http.post(
                f"{self._base}/{method}", body=body, headers=headers, timeouts=timeouts
            ) as response:
                status, raw = response.status, await response.read()
        except ProviderError as error:
            uncertain = sends and not error.unsent
            raise _failure(f"Telegram cannot be reached: {error}", uncertain=uncertain) from error
        try:
            answer = decode(dict[str, Any], raw)
            if answer.get("ok") is True:
                return convert(kind, answer["result"])
            refusal = convert(Refusal, answer)
        except (DecodeError, KeyError):
            # A proxy on the way answers with a page.
            raise _failure(f"Telegram answered with status {status}.", uncertain=sends) from None
        raise _refusal_error(refusal, uncertain=sends)

    def file(self, path: str) -> ResponseContext:
        """A file of a message."""
        timeouts = Timeouts(connect=10.0, read=60.0)
        return self._http.get(f"{self._file_base}/{path}", headers={}, timeouts=timeouts)


def _failure(text: str, *, uncertain: bool) -> PlatformError:
    return PostUncertain(text) if uncertain else PlatformUnreachable(text)


def _refusal_error(refusal: Refusal, *, uncertain: bool) -> PlatformError:
    """What a refusal means."""
    text, lower = f"Telegram: {refusal.description}", refusal.description.lower()
    match refusal.error_code:
        case 401 | 404:
            return LoginRejected(
                "Telegram does not know this bot token; get it from @BotFather and run "
                "`hermes gateway setup telegram`."
            )
        case 409:
            return PollConflict(text)
        case 429:
            return PlatformUnreachable(text, retry_after=refusal.parameters.retry_after or 5.0)
        case code if code >= 500:
            return _failure(text, uncertain=uncertain)
        case 400 if refusal.parameters.migrate_to_chat_id:
            return ChatMoved(refusal.parameters.migrate_to_chat_id)
        case 400 if "can't parse entities" in lower:
            return MarkupRejected(text)
        case 400 if "message is not modified" in lower:
            return NotModified(text)
        case 403:
            return TargetGone(text)
        case _ if any(each in lower for each in _GONE):
            return TargetGone(text)
        case _:
            return PostRejected(text)


def _json(fields: JsonObject) -> tuple[str, bytes]:
    return "application/json", encode(fields)


def _form(fields: JsonObject, files: Mapping[str, tuple[str, bytes]]) -> tuple[str, bytes]:
    """The body of an upload."""
    boundary = f"hermes{secrets.token_hex(16)}"
    parts: list[bytes] = []
    for name, value in fields.items():
        text = value if isinstance(value, str) else encode(value).decode()
        parts.append(f'name="{name}"\r\n\r\n{text}'.encode())
    for name, (file_name, data) in files.items():
        safe = "".join("_" if each in '"\\\r\n' else each for each in file_name)
        head = f'name="{name}"; filename="{safe}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        parts.append(head.encode() + data)
    body = b"".join(
        b"--%s\r\nContent-Disposition: form-data; %s\r\n" % (boundary.encode(), part)
        for part in parts
    )
    return f"multipart/form-data; boundary={boundary}", body + b"--%s--\r\n" % boundary.encode()
