"""Turns Matrix events into events of the gateway."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nio import (
    Event,
    MatrixRoom,
    ReactionEvent,
    RoomEncryptedMedia,
    RoomMessage,
    RoomMessageFormatted,
    RoomMessageMedia,
    RoomMessageNotice,
)

from hermes.codec.values import JsonObject
from hermes.surfaces.gateway.platform import (
    Address,
    AttachmentKind,
    Inbound,
    InboundFile,
    Quote,
    Sender,
)
from hermes.surfaces.gateway.platforms.settings import read_flag, read_names, read_patterns

_KINDS: dict[str, AttachmentKind] = {
    "m.image": "image",
    "m.audio": "audio",
    "m.video": "video",
    "m.file": "file",
}


class EventReader:
    """Reads events for one account; None for those that do not concern it."""

    def __init__(self, user_id: str, settings: Mapping[str, str]) -> None:
        self._user_id = user_id
        self._needs_mention = read_flag(settings, "MATRIX_REQUIRE_MENTION", True)
        self._needs_mention_in_threads = read_flag(settings, "MATRIX_THREAD_REQUIRE_MENTION")
        self._opens_threads = read_flag(settings, "MATRIX_AUTO_THREAD", True)
        self._opens_dm_threads = read_flag(settings, "MATRIX_DM_AUTO_THREAD")
        self._reads_notices = read_flag(settings, "MATRIX_PROCESS_NOTICES")
        self._rooms = read_names(settings, "MATRIX_ALLOWED_ROOMS")
        self._free_rooms = read_names(settings, "MATRIX_FREE_RESPONSE_ROOMS")
        self._ignored = read_patterns(settings, "MATRIX_IGNORE_USER_PATTERNS")
        name = re.escape(user_id[1:].partition(":")[0])
        self._mention = re.compile(rf"@?\b{name}\b(:\S+)?[:,]?\s*", re.IGNORECASE)

    def read(self, room: MatrixRoom, event: Any) -> Inbound | None:
        if isinstance(event, ReactionEvent):
            return self._read_reaction(room, event)
        if not isinstance(event, RoomMessage) or self._is_ignored(event):
            return None
        content: JsonObject = event.source.get("content", {})
        relation = content.get("m.relates_to") or {}
        if relation.get("rel_type") == "m.replace":
            return None
        is_direct = room.member_count <= 2
        thread = str(relation.get("event_id", "")) if relation.get("rel_type") == "m.thread" else ""
        is_addressed = is_direct or self._is_addressed(content)
        if not is_direct and not self._concerns(room.room_id, thread, is_addressed):
            return None
        if not thread and (self._opens_dm_threads if is_direct else self._opens_threads):
            thread = event.event_id
        return Inbound(
            key=event.event_id,
            address=Address(platform="matrix", chat_id=room.room_id, thread_id=thread),
            chat_type="dm" if is_direct else "group",
            sender=Sender(id=event.sender, name=room.user_name(event.sender) or ""),
            at=event.server_timestamp / 1000,
            message_id=event.event_id,
            text=self._text(event, is_direct=is_direct),
            files=_files(event, content),
            quote=_quote(relation),
            is_addressed=True,
            chat_name=room.display_name or "",
            topic=room.topic or "",
        )

    def _read_reaction(self, room: MatrixRoom, event: ReactionEvent) -> Inbound | None:
        if self._is_ignored(event) or (self._rooms and room.room_id not in self._rooms):
            return None
        return Inbound(
            key=event.event_id,
            address=Address(platform="matrix", chat_id=room.room_id),
            chat_type="dm" if room.member_count <= 2 else "group",
            sender=Sender(id=event.sender, name=room.user_name(event.sender) or ""),
            at=event.server_timestamp / 1000,
            message_id=event.reacts_to,
            reaction=event.key,
            chat_name=room.display_name or "",
        )

    def _is_ignored(self, event: Event) -> bool:
        return (
            event.sender == self._user_id
            # Users of bridges to other platforms.
            or event.sender.startswith("@_")
            or (isinstance(event, RoomMessageNotice) and not self._reads_notices)
            or any(pattern.search(event.sender) for pattern in self._ignored)
        )

    def _concerns(self, room_id: str, thread: str, is_addressed: bool) -> bool:
        if self._rooms and room_id not in self._rooms:
            return False
        if is_addressed or not self._needs_mention or room_id in self._free_rooms:
            return True
        return bool(thread) and not self._needs_mention_in_threads

    def _is_addressed(self, content: JsonObject) -> bool:
        mentions = (content.get("m.mentions") or {}).get("user_ids") or ()
        if self._user_id in mentions:
            return True
        body = str(content.get("body", ""))
        return self._user_id in body or self._mention.match(body) is not None

    def _text(self, event: RoomMessage, *, is_direct: bool) -> str:
        if not isinstance(event, RoomMessageFormatted):
            return ""
        body = event.body
        if body.startswith("> ") and "\n\n" in body:
            # Old clients repeat the message that they answer.
            body = body.partition("\n\n")[2]
        return body if is_direct else self._mention.sub("", body, count=1).strip()


def _files(event: RoomMessage, content: JsonObject) -> tuple[InboundFile, ...]:
    if not isinstance(event, RoomMessageMedia | RoomEncryptedMedia):
        return ()
    info = content.get("info") or {}
    kind = _KINDS.get(str(content.get("msgtype")), "file")
    if kind == "audio" and "org.matrix.msc3245.voice" in content:
        kind = "voice"
    file = InboundFile(
        kind=kind,
        name=str(content.get("filename") or event.body),
        mime=str(info.get("mimetype", "")),
        size=int(info.get("size") or 0),
        reference={"url": event.url, "encryption": content.get("file") or {}},
    )
    return (file,)


def _quote(relation: JsonObject) -> Quote | None:
    answered = (relation.get("m.in_reply_to") or {}).get("event_id")
    if not answered or relation.get("is_falling_back"):
        return None
    return Quote(message_id=str(answered))
