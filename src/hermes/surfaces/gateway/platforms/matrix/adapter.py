"""The Matrix adapter: sync, rooms, threads, edits, files and encryption, by matrix-nio."""

from __future__ import annotations

import asyncio
import hashlib
import io
import logging
from collections.abc import AsyncIterator
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from nio import (
    AsyncClient,
    Event,
    MegolmEvent,
    ReactionEvent,
    RelationshipType,
    RoomSendResponse,
    SyncResponse,
    UploadResponse,
)
from nio.crypto.attachments import decrypt_attachment
from nio.exceptions import LocalProtocolError, OlmUnverifiedDeviceError, SendRetryError

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import (
    LoginRejected,
    PlatformUnreachable,
    PostRejected,
    TargetGone,
)
from hermes.surfaces.gateway.markup.matrix_html import to_matrix_html
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
from hermes.surfaces.gateway.platforms.matrix.inbound import EventReader
from hermes.surfaces.gateway.platforms.matrix.session import MatrixSession, store_path
from hermes.surfaces.gateway.platforms.settings import read_flag, read_names

log = logging.getLogger(__name__)

SYNC_SECONDS = 25
TYPING_SECONDS = 30
FILTER = {"room": {"timeline": {"limit": 100}}}
_MEDIA = {"image": "m.image", "audio": "m.audio", "voice": "m.audio", "video": "m.video"}


class Position(Value):
    """How far the events of the account are stored."""

    next_batch: str


class Matrix:
    """One account."""

    def __init__(self, context: PlatformContext) -> None:
        self._context = context
        self._session = MatrixSession(context)
        self._allowed = {
            name.lower() for name in read_names(context.settings, "MATRIX_ALLOWED_USERS")
        }
        self._allows_all = read_flag(context.settings, "MATRIX_ALLOW_ALL_USERS")
        self._knows_rooms = False

    @property
    def _client(self) -> AsyncClient:
        return self._session.client

    async def check(self) -> str:
        try:
            return await self._session.open()
        finally:
            await self._session.close()

    # events

    async def run(self, deliver: Deliver, status: PlatformStatus) -> None:
        try:
            user_id = await self._session.open()
            reader = EventReader(user_id, self._context.settings)
            since = await asyncio.to_thread(self._position)
            first = await self._sync(since, full_state=True, seconds=0)
            status.connected(user_id)
            # Messages from before the first start are not meant for this gateway.
            await self._take(first, reader, deliver, is_new=bool(since))
            while True:
                response = await self._sync(first.next_batch, seconds=SYNC_SECONDS)
                await self._take(response, reader, deliver, is_new=True)
                first = response
        finally:
            await self._session.close()

    async def _sync(self, since: str, *, seconds: int, full_state: bool = False) -> SyncResponse:
        client = self._client
        response = await self._session.request(
            client.sync(
                timeout=seconds * 1000,
                since=since or None,
                full_state=full_state,
                sync_filter=FILTER,
            )
        )
        assert isinstance(response, SyncResponse)
        self._knows_rooms = True
        if client.olm:
            await self._exchange_keys()
        return response

    async def _exchange_keys(self) -> None:
        client, request = self._client, self._session.request
        for answer in await client.send_to_device_messages():
            log.debug("sent keys", extra={"answer": str(answer)})
        if client.should_upload_keys:
            await request(client.keys_upload())
        if client.should_query_keys:
            await request(client.keys_query())
        if client.should_claim_keys:
            await request(client.keys_claim(client.get_users_for_key_claiming()))

    async def _take(
        self, response: SyncResponse, reader: EventReader, deliver: Deliver, *, is_new: bool
    ) -> None:
        """Deliver the events of a sync, then store that they are done."""
        for room_id in response.rooms.invite:
            await self._accept_invitation(room_id)
        for room_id, joined in response.rooms.join.items():
            for event in joined.timeline.events if is_new else ():
                if isinstance(event, MegolmEvent):
                    await self._request_key(event)
                found = reader.read(self._client.rooms[room_id], event)
                if found is not None:
                    await deliver(found)
        position = Position(next_batch=response.next_batch)
        await asyncio.to_thread(replace_file, store_path(self._context), encode(position))

    def _position(self) -> str:
        try:
            return decode(Position, store_path(self._context).read_bytes()).next_batch
        except (OSError, DecodeError):
            return ""

    async def _accept_invitation(self, room_id: str) -> None:
        room = self._client.invited_rooms.get(room_id)
        inviter = (room.inviter or "").lower() if room else ""
        if inviter in self._allowed or "*" in self._allowed or self._allows_all:
            try:
                await self._session.request(self._client.join(room_id), sends=True)
            except (TargetGone, PostRejected) as error:
                log.warning("an invitation failed", extra={"why": str(error)})

    async def _request_key(self, event: MegolmEvent) -> None:
        log.warning("a message cannot be decrypted", extra={"room": event.room_id})
        if event.session_id not in self._client.outgoing_key_requests:
            await self._session.request(self._client.request_room_key(event))

    # posts

    async def post(self, to: Address, post: Post, key: str) -> str:
        # The server ignores a transaction that it has seen.
        transaction = hashlib.sha256(key.encode()).hexdigest()[:40]
        await self._prepare(to)
        content = await self._content(to, post)
        message_id = await self._send(to, "m.room.message", content, transaction)
        for choice in post.choices:
            await self._add_reaction(to, message_id, choice.emoji)
        return message_id

    async def edit(self, to: Address, message_id: str, post: Post) -> None:
        await self._prepare(to)
        new = _text_content(post)
        content = {
            **new,
            "body": f"* {new['body']}",
            "m.new_content": new,
            "m.relates_to": {"rel_type": "m.replace", "event_id": message_id},
        }
        await self._send(to, "m.room.message", content, self._context.world.new_id("edit", 16))

    async def delete(self, to: Address, message_id: str) -> None:
        await self._session.open()
        await self._session.request(self._client.room_redact(to.chat_id, message_id), sends=True)

    async def find_post(self, to: Address, post: Post, key: str, since: float) -> str:
        # The transaction id resolves posts.
        return ""

    async def show_typing(self, to: Address) -> None:
        await self._session.open()
        await self._session.request(
            self._client.room_typing(to.chat_id, True, TYPING_SECONDS * 1000), sends=True
        )

    async def react(self, to: Address, message_id: str, emoji: str) -> None:
        await self._prepare(to)
        before = await self._own_reactions(to, message_id)
        for event_id, shown in before.items():
            if shown != emoji:
                await self.delete(to, event_id)
        if emoji and emoji not in before.values():
            await self._add_reaction(to, message_id, emoji)

    async def _own_reactions(self, to: Address, message_id: str) -> dict[str, str]:
        """The emoji of our reactions to a message, by event."""
        kind = RelationshipType.annotation
        found = self._client.room_get_event_relations(to.chat_id, message_id, kind)
        events = await self._session.request(_collect(found))
        return {
            event.event_id: event.key
            for event in events
            if isinstance(event, ReactionEvent) and event.sender == self._client.user_id
        }

    async def _add_reaction(self, to: Address, message_id: str, emoji: str) -> None:
        relation = {"rel_type": "m.annotation", "event_id": message_id, "key": emoji}
        transaction = hashlib.sha256(f"{message_id} {emoji}".encode()).hexdigest()[:40]
        try:
            await self._send(to, "m.reaction", {"m.relates_to": relation}, transaction)
        except PostRejected as error:
            if "M_DUPLICATE_ANNOTATION" not in str(error):
                raise

    async def answer_choice(self, event: Inbound, text: str) -> None:
        return

    async def _prepare(self, to: Address) -> None:
        """Log in, and learn whether the room is encrypted."""
        await self._session.open()
        if not self._knows_rooms:
            await self._sync("", full_state=True, seconds=0)
        room = self._client.rooms.get(to.chat_id)
        if room is None:
            raise TargetGone(f"The bot is not in the room {to.chat_id}; invite it.")
        if self._session.e2ee == "required" and not room.encrypted:
            raise PostRejected(f"The room {to.chat_id} is not encrypted, and MATRIX_E2EE_MODE is.")

    async def _send(self, to: Address, kind: str, content: JsonObject, transaction: str) -> str:
        try:
            response = await self._session.request(
                self._client.room_send(
                    to.chat_id, kind, content, tx_id=transaction, ignore_unverified_devices=True
                ),
                sends=True,
            )
        except (SendRetryError, OlmUnverifiedDeviceError) as error:
            raise PlatformUnreachable(f"Keys could not be shared: {error}") from error
        except LocalProtocolError as error:
            raise LoginRejected(f"Matrix: {error}") from error
        assert isinstance(response, RoomSendResponse)
        return str(response.event_id)

    async def _content(self, to: Address, post: Post) -> JsonObject:
        content = await self._file_content(to, post.file) if post.file else _text_content(post)
        relation: JsonObject = {}
        if post.reply_to:
            relation["m.in_reply_to"] = {"event_id": post.reply_to}
        if to.thread_id:
            # Clients without threads show a reply.
            relation |= {"rel_type": "m.thread", "event_id": to.thread_id}
            relation |= {} if post.reply_to else {"is_falling_back": True}
            relation.setdefault("m.in_reply_to", {"event_id": to.thread_id})
        return {**content, "m.relates_to": relation} if relation else content

    async def _file_content(self, to: Address, file: OutboundFile) -> JsonObject:
        path = Path(file.path)
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            raise PostRejected(f"{path.name} cannot be read ({error.strerror}).") from error
        mime = guess_type(path.name)[0] or "application/octet-stream"
        is_encrypted = self._client.rooms[to.chat_id].encrypted
        response, keys = await self._session.request(
            self._client.upload(
                io.BytesIO(data),
                content_type=mime,
                filename=file.name or path.name,
                encrypt=is_encrypted,
                filesize=len(data),
            )
        )
        if not isinstance(response, UploadResponse):
            raise PlatformUnreachable(f"Matrix: {response}")
        content: JsonObject = {
            "msgtype": _MEDIA.get(file.kind, "m.file"),
            "body": file.caption or file.name or path.name,
            "filename": file.name or path.name,
            "info": {"mimetype": mime, "size": len(data)},
        }
        if keys:
            return {**content, "file": {**keys, "url": response.content_uri}}
        return {**content, "url": response.content_uri}

    # files

    async def download(self, file: InboundFile) -> InboundFile:
        limit = self._context.max_media_bytes
        if file.size > limit:
            return replace(file, problem=f"larger than {limit // 1_000_000} MB")
        await self._session.open()
        found: Any = await self._session.request(self._client.download(mxc=file.reference["url"]))
        data: bytes = found.body
        if keys := file.reference.get("encryption"):
            data = decrypt_attachment(data, keys["key"]["k"], keys["hashes"]["sha256"], keys["iv"])
        if len(data) > limit:
            return replace(file, problem=f"larger than {limit // 1_000_000} MB")
        name = f"{self._context.world.new_id('mx', 16)}{Path(file.name).suffix[:16]}"
        target = self._context.media / name
        await asyncio.to_thread(target.write_bytes, data)
        return replace(file, path=str(target))


async def _collect(events: AsyncIterator[Event]) -> list[Event]:
    try:
        return [event async for event in events]
    except AttributeError as error:
        # The library does not expect a refusal here.
        raise PlatformUnreachable("The homeserver does not list reactions now.") from error


def _text_content(post: Post) -> JsonObject:
    content: JsonObject = {"msgtype": "m.text", "body": post.text, "m.mentions": {}}
    if not post.is_plain:
        content |= {
            "format": "org.matrix.custom.html",
            "formatted_body": to_matrix_html(post.text),
        }
    return content
