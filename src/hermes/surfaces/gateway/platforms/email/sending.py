"""Sends mails by SMTP, and says what is known when that fails. Its functions block."""

from __future__ import annotations

import hashlib
import smtplib
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from mimetypes import guess_type
from pathlib import Path

from hermes.codec.values import Value
from hermes.core.errors import (
    LoginRejected,
    PlatformUnreachable,
    PostRejected,
    PostUncertain,
    TargetGone,
)
from hermes.surfaces.gateway.markup.matrix_html import to_matrix_html
from hermes.surfaces.gateway.markup.plain import to_plain
from hermes.surfaces.gateway.platform import OutboundFile, Post
from hermes.surfaces.gateway.platforms.email.mailbox import MailAccount, translate_errors

SECONDS = 30.0
IMPLICIT_TLS_PORT = 465
MAX_ATTACHMENT_BYTES = 25_000_000
MAX_REFERENCES = 20


class Conversation(Value):
    """What an answer needs to know about a thread."""

    subject: str = ""
    message_id: str = ""
    references: tuple[str, ...] = ()


def message_id_for(key: str, address: str) -> str:
    """The id of the mail for a post, the same for ever."""
    digest = hashlib.sha256(key.encode()).hexdigest()[:40]
    return f"<hermes.{digest}@{address.rpartition('@')[2]}>"


def is_own(message_id: str, address: str) -> bool:
    return message_id.startswith("<hermes.") and message_id.endswith(
        f"@{address.rpartition('@')[2]}>"
    )


def compose(
    account: MailAccount, to: str, thread: Conversation, post: Post, key: str, now: float
) -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = account.address
    mail["To"] = to
    subject = " ".join(thread.subject.split()) or "Hermes"
    is_reply = bool(thread.message_id)
    mail["Subject"] = subject if not is_reply or subject[:3].lower() == "re:" else f"Re: {subject}"
    mail["Date"] = formatdate(now)
    mail["Message-ID"] = message_id_for(key, account.address)
    mail["Auto-Submitted"] = "auto-replied" if is_reply else "auto-generated"
    if is_reply:
        mail["In-Reply-To"] = thread.message_id
        known = (*thread.references, thread.message_id)
        # The first one names the thread.
        mail["References"] = " ".join((*known[:1], *known[1:][-MAX_REFERENCES:]))
    text = post.text or (post.file.caption if post.file else "")
    mail.set_content((text if post.is_plain else to_plain(text)) + "\n")
    if text and not post.is_plain:
        mail.add_alternative(to_matrix_html(text), subtype="html")
    if post.file is not None:
        _attach(mail, post.file)
    return mail


def _attach(mail: EmailMessage, file: OutboundFile) -> None:
    path = Path(file.path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PostRejected(f"{path.name} cannot be read ({error.strerror}).") from error
    if len(data) > MAX_ATTACHMENT_BYTES:
        raise PostRejected(f"{path.name} is larger than the 25 MB of a mail.")
    kind, _, subtype = (guess_type(path.name)[0] or "application/octet-stream").partition("/")
    mail.add_attachment(data, maintype=kind, subtype=subtype, filename=file.name or path.name)


def log_in(account: MailAccount) -> smtplib.SMTP:
    with translate_errors(account.smtp_host):
        try:
            smtp = _connect(account)
            smtp.login(account.address, account.password)
        except smtplib.SMTPAuthenticationError as error:
            raise LoginRejected(
                f"{account.smtp_host} does not accept the password of {account.address}; run "
                "`hermes gateway setup email`."
            ) from error
        except smtplib.SMTPException as error:
            raise PlatformUnreachable(f"{account.smtp_host}: {error}") from error
    return smtp


def _connect(account: MailAccount) -> smtplib.SMTP:
    host, port = account.smtp_host, account.smtp_port
    if port == IMPLICIT_TLS_PORT:
        return smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=account.tls())
    smtp = smtplib.SMTP(host, port, timeout=SECONDS)
    # Raises if the server has no TLS: a password is never sent in the clear.
    smtp.starttls(context=account.tls())
    return smtp


def send(account: MailAccount, to: str, mail: EmailMessage) -> None:
    """Send to the person, with a copy to our mailbox, which later proves that it was sent."""
    smtp = log_in(account)
    try:
        _address(smtp, account.address, to)
        _transmit(smtp, account, mail)
    finally:
        smtp.close()


def _address(smtp: smtplib.SMTP, own: str, to: str) -> None:
    try:
        smtp.ehlo_or_helo_if_needed()
        code, text = smtp.mail(own)
        if code == 250:
            code, text = smtp.rcpt(to)
        if code in (250, 251):
            smtp.rcpt(own)
            return
    except (OSError, smtplib.SMTPException) as error:
        raise PlatformUnreachable(f"The SMTP server closed the connection: {error}") from error
    reason = text.decode("utf-8", "replace")
    if code < 500:
        raise PlatformUnreachable(f"The SMTP server says: {code} {reason}")
    raise TargetGone(f"The SMTP server does not accept {to}: {code} {reason}")


def _transmit(smtp: smtplib.SMTP, account: MailAccount, mail: EmailMessage) -> None:
    text: bytes | str
    try:
        code, text = smtp.data(mail.as_bytes(policy=SMTP))
    except smtplib.SMTPDataError as error:
        # The server refused before it got the content.
        code, text = error.smtp_code, error.smtp_error
    except (OSError, smtplib.SMTPException) as error:
        raise PostUncertain(
            f"{account.smtp_host} closed the connection while a mail was sent: {error}"
        ) from error
    reason = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if 400 <= code < 500:
        raise PlatformUnreachable(f"The SMTP server says: {code} {reason}")
    if code >= 500:
        raise PostRejected(f"The SMTP server refuses the mail: {code} {reason}")
