"""The email adapter: new mails become messages, and answers go to their threads."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value, replace
from hermes.core.errors import PostRejected
from hermes.surfaces.gateway.platform import (
    Address,
    AttachmentKind,
    Deliver,
    Inbound,
    InboundFile,
    PlatformContext,
    PlatformStatus,
    Post,
    Sender,
)
from hermes.surfaces.gateway.platforms.email.mail import (
    attachments_of,
    header,
    is_authenticated,
    is_automatic,
    message_id_of,
    parse_mail,
    references_of,
    sender_of,
    text_of,
    thread_of,
)
from hermes.surfaces.gateway.platforms.email.mailbox import MailAccount, Mailbox
from hermes.surfaces.gateway.platforms.email.sending import (
    Conversation,
    compose,
    is_own,
    log_in,
    message_id_for,
    send,
)
from hermes.surfaces.gateway.platforms.settings import read_flag, read_number

log = logging.getLogger(__name__)

T = TypeVar("T")

# A push that was lost is made up for after so long.
IDLE_SECONDS = 120.0
MAX_MAIL_BYTES = 40_000_000
# How long the copy of a sent mail may take to our own mailbox.
READ_BACK_SECONDS = (0.0, 1.0, 2.0, 3.0)


class Cursor(Value):
    """The last mail that is done. The server gives new numbers when `uidvalidity` changes."""

    uidvalidity: int
    uid: int


class Email:
    """One mailbox."""

    def __init__(self, context: PlatformContext) -> None:
        settings, extra = context.settings, context.extra
        self._context = context
        self._address = settings.get("EMAIL_ADDRESS", "").strip().lower()
        self._account = MailAccount(
            address=self._address,
            password=settings.get("EMAIL_PASSWORD", ""),
            imap_host=settings.get("EMAIL_IMAP_HOST", ""),
            imap_port=read_number(settings, "EMAIL_IMAP_PORT", 993),
            smtp_host=settings.get("EMAIL_SMTP_HOST", ""),
            smtp_port=read_number(settings, "EMAIL_SMTP_PORT", 587),
            folder=str(extra.get("folder") or "INBOX"),
            ca_file=str(extra.get("ca_file") or ""),
        )
        self._poll_seconds = float(read_number(settings, "EMAIL_POLL_INTERVAL", 15))
        self._trusts_from = read_flag(settings, "EMAIL_TRUST_FROM_HEADER")
        self._server_id = settings.get("EMAIL_AUTHSERV_ID", "")
        self._cursor_path = context.folder / f"email_cursor_{_digest(self._address)}.json"

    async def check(self) -> str:
        await asyncio.to_thread(self._log_in)
        return self._address

    def _log_in(self) -> None:
        box = Mailbox(self._account)
        try:
            box.open()
            log_in(self._account).close()
        finally:
            box.close()

    # events

    async def run(self, deliver: Deliver, status: PlatformStatus) -> None:
        box = Mailbox(self._account)
        try:
            await _call(box, box.open)
            cursor = await _call(box, self._start_cursor, box)
            status.connected(self._address)
            while True:
                for uid in await _call(box, box.uids_after, cursor.uid):
                    event = await _call(box, self._read, box, uid)
                    if event is not None:
                        await deliver(event)
                    cursor = Cursor(uidvalidity=cursor.uidvalidity, uid=uid)
                    self._store_cursor(cursor)
                await _call(box, box.wait, IDLE_SECONDS if box.can_idle else self._poll_seconds)
        finally:
            box.close()

    def _start_cursor(self, box: Mailbox) -> Cursor:
        """Where to go on. Mail from before the first start gets no answer."""
        try:
            cursor = decode(Cursor, self._cursor_path.read_bytes())
            resumes = bool(self._context.extra.get("resume_after_downtime", True))
            if cursor.uidvalidity == box.uid_validity and resumes:
                return cursor
        except (OSError, DecodeError):
            pass
        cursor = Cursor(uidvalidity=box.uid_validity, uid=box.newest_uid())
        self._store_cursor(cursor)
        return cursor

    def _store_cursor(self, cursor: Cursor) -> None:
        replace_file(self._cursor_path, encode(cursor))

    def _read(self, box: Mailbox, uid: int) -> Inbound | None:
        """The event of a mail, if a person wrote it."""
        is_large = box.size(uid) > MAX_MAIL_BYTES
        mail = parse_mail(box.read(uid, only_headers=is_large))
        address, name = sender_of(mail)
        if is_own(message_id_of(mail), self._address) and address == self._address:
            box.file_as_sent(uid)
            return None
        if not address or address == self._address or is_automatic(mail):
            return None
        if not self._trusts_from and not is_authenticated(mail, self._server_id):
            log.warning("a mail without proof of its sender was dropped", extra={"from": address})
            return None
        thread = thread_of(mail)
        conversation = Conversation(
            subject=header(mail, "Subject")[:500],
            message_id=message_id_of(mail),
            references=tuple(references_of(mail)),
        )
        replace_file(self._thread_path(address, thread), encode(conversation))
        return Inbound(
            # A server that did not hear the answer of the next one sends a mail again.
            key=_digest(f"{address} {conversation.message_id}")
            if conversation.message_id
            else f"{box.uid_validity}:{uid}",
            address=Address(platform="email", chat_id=address, thread_id=thread),
            chat_type="dm",
            sender=Sender(id=address, name=name),
            at=_date(mail) or self._context.world.clock.now(),
            message_id=conversation.message_id,
            text=self._text(mail, conversation, is_large=is_large),
            files=() if is_large else tuple(self._files(mail, box.uid_validity, uid)),
        )

    @staticmethod
    def _text(mail: EmailMessage, conversation: Conversation, *, is_large: bool) -> str:
        text = "[The mail is too large to be read.]" if is_large else text_of(mail)
        if conversation.references or not conversation.subject:
            return text
        return f"[Subject: {conversation.subject}]\n{text}"

    def _files(self, mail: EmailMessage, uid_validity: int, uid: int) -> list[InboundFile]:
        if self._context.extra.get("skip_attachments"):
            return []
        return [
            InboundFile(
                kind=_kind(mime),
                name=name,
                mime=mime,
                size=len(data),
                reference={"uidvalidity": uid_validity, "uid": uid, "part": n},
            )
            for n, name, mime, data in attachments_of(mail)
        ]

    def _thread_path(self, address: str, thread: str) -> Path:
        return self._context.folder / "threads" / _digest(f"{address} {thread}")

    async def download(self, file: InboundFile) -> InboundFile:
        limit = self._context.max_media_bytes
        if file.size > limit:
            return replace(file, problem=f"larger than {limit // 1_000_000} MB")
        return await asyncio.to_thread(self._download, file)

    def _download(self, file: InboundFile) -> InboundFile:
        box = Mailbox(self._account)
        try:
            box.open()
            is_there = box.uid_validity == file.reference["uidvalidity"]
            mail = parse_mail(box.read(int(file.reference["uid"])) if is_there else b"")
        finally:
            box.close()
        for n, name, _, data in attachments_of(mail):
            if n == file.reference["part"]:
                suffix = Path(name).suffix[:16]
                target = self._context.media / f"{self._context.world.new_id('mail', 16)}{suffix}"
                target.write_bytes(data)
                return replace(file, path=str(target))
        return replace(file, problem="no longer in the mailbox")

    # posts

    async def post(self, to: Address, post: Post, key: str) -> str:
        return await asyncio.to_thread(self._post, to, post, key)

    def _post(self, to: Address, post: Post, key: str) -> str:
        try:
            path = self._thread_path(to.chat_id, to.thread_id)
            conversation = decode(Conversation, path.read_bytes())
        except (OSError, DecodeError):
            conversation = Conversation()
        now = self._context.world.clock.now()
        mail = compose(self._account, to.chat_id, conversation, post, key, now)
        send(self._account, to.chat_id, mail)
        return str(mail["Message-ID"])

    async def find_post(self, to: Address, post: Post, key: str, since: float) -> str:
        """Looks for our copy, which comes by mail like the original."""
        message_id = message_id_for(key, self._address)
        for pause in READ_BACK_SECONDS:
            await self._context.world.clock.sleep(pause)
            if await asyncio.to_thread(self._find, message_id):
                return message_id
        return ""

    def _find(self, message_id: str) -> bool:
        box = Mailbox(self._account)
        try:
            box.open()
            return box.find(message_id)
        finally:
            box.close()

    async def edit(self, to: Address, message_id: str, post: Post) -> None:
        raise PostRejected("A mail cannot be edited.")

    async def delete(self, to: Address, message_id: str) -> None:
        raise PostRejected("A mail cannot be deleted.")

    async def show_typing(self, to: Address) -> None:
        return

    async def react(self, to: Address, message_id: str, emoji: str) -> None:
        return

    async def answer_choice(self, event: Inbound, text: str) -> None:
        return


async def _call(box: Mailbox, work: Callable[..., T], *arguments: Any) -> T:
    """Run something with the mailbox in a thread, which has ended when this returns or raises."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        box.interrupt()
        await asyncio.wait((task,))
        if not task.cancelled():
            # Nobody wants to know how it ended.
            task.exception()
        raise


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _date(mail: EmailMessage) -> float:
    try:
        return parsedate_to_datetime(header(mail, "Date")).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0


def _kind(mime: str) -> AttachmentKind:
    match mime.partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return "file"
