"""Reads mails: who wrote, whether that is proven, what they say, and in which thread."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default as policy
from email.utils import parseaddr
from html.parser import HTMLParser

_MESSAGE_ID = re.compile(r"<[^<>\s]+>")
_RESULT = re.compile(r"\b(dmarc|dkim|spf)\s*=\s*(\w+)([^;]*)", re.IGNORECASE)
_DOMAIN = re.compile(r"(?:header\.d|header\.i|smtp\.mailfrom)\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_ROBOTS = re.compile(r"^(no-?reply|do-?not-?reply|mailer-daemon|postmaster|bounces?)\b", re.I)
_QUOTE_HEAD = re.compile(
    r"^(On\b.{0,200}\bwrote:|Am\b.{0,200}\bschrieb.{0,100}:|Le\b.{0,200}\ba écrit\s?:"
    r"|-{2,}\s*(Original Message|Ursprüngliche Nachricht|Forwarded message)\s*-{2,})\s*$",
    re.IGNORECASE,
)


def parse_mail(raw: bytes) -> EmailMessage:
    message = BytesParser(policy=policy).parsebytes(raw)
    assert isinstance(message, EmailMessage)
    return message


def header(mail: EmailMessage, name: str) -> str:
    """The first header with this name on one line; "" when it is missing or damaged."""
    try:
        return " ".join(str(mail.get(name, "")).split())
    except (ValueError, IndexError, AttributeError):
        # The parser of addresses fails for some damaged headers.
        return ""


def sender_of(mail: EmailMessage) -> tuple[str, str]:
    """Address in lower case, and name."""
    name, address = parseaddr(header(mail, "From"))
    return address.lower(), name


def message_id_of(mail: EmailMessage) -> str:
    found = _MESSAGE_ID.search(header(mail, "Message-ID"))
    return found[0] if found else ""


def references_of(mail: EmailMessage) -> list[str]:
    """The mails that this one answers, oldest first."""
    named = _MESSAGE_ID.findall(header(mail, "References"))
    return named or _MESSAGE_ID.findall(header(mail, "In-Reply-To"))[:1]


def thread_of(mail: EmailMessage) -> str:
    """An id of the conversation: of its first mail, shortened to what session keys allow."""
    root = (*references_of(mail), message_id_of(mail))[0]
    return hashlib.sha256(root.encode()).hexdigest()[:24]


def is_automatic(mail: EmailMessage) -> bool:
    """Whether nobody expects an answer: lists, bounces, answering machines."""
    if header(mail, "Auto-Submitted").lower() not in ("", "no"):
        return True
    if header(mail, "Precedence").lower() in ("bulk", "list", "junk"):
        return True
    if header(mail, "Return-Path") == "<>" or header(mail, "X-Autoreply"):
        return True
    if any(name.lower().startswith("list-") for name in mail):
        return True
    return bool(_ROBOTS.match(sender_of(mail)[0]))


def is_authenticated(mail: EmailMessage, server_id: str) -> bool:
    """Whether the mail server has verified the domain of the sender. Only the first result counts:
    those below may come from the sender. `server_id` names the server to believe."""
    results = mail.get_all("Authentication-Results") or ()
    domain = sender_of(mail)[0].rpartition("@")[2]
    for result in map(str, results):
        name = result.partition(";")[0].split()
        if server_id and (not name or name[0].lower() != server_id.lower()):
            continue
        return bool(domain) and any(_proves(found, domain) for found in _RESULT.finditer(result))
    return False


def _proves(found: re.Match[str], domain: str) -> bool:
    if found[2].lower() != "pass":
        return False
    if found[1].lower() == "dmarc":
        return True
    signed = _DOMAIN.search(found[3])
    other = signed[1].rpartition("@")[2].lower() if signed else ""
    return bool(other) and "." in other and (domain == other or domain.endswith(f".{other}"))


def text_of(mail: EmailMessage) -> str:
    """What the sender wrote, without the quoted conversation."""
    part = mail.get_body(("plain", "html"))
    if part is None:
        return ""
    try:
        text = str(part.get_content())
    except (LookupError, ValueError, KeyError):
        payload = part.get_payload(decode=True)
        text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    if part.get_content_subtype() == "html":
        text = _strip_html(text)
    return _without_quotes(text.replace("\r\n", "\n"))


def _without_quotes(text: str) -> str:
    kept: list[str] = []
    for line in text.split("\n"):
        if line.rstrip("\r") == "-- " or _QUOTE_HEAD.match(line.strip()):
            break
        kept.append(line)
    while kept and (not kept[-1].strip() or kept[-1].startswith(">")):
        kept.pop()
    # A mail that consists of a quotation alone is better than nothing.
    return "\n".join(kept).strip() or text.strip()


def attachments_of(mail: EmailMessage) -> Iterator[tuple[int, str, str, bytes]]:
    """Number, name, media type and content of each attachment."""
    for n, part in enumerate(mail.iter_attachments()):
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            yield n, part.get_filename() or f"attachment-{n + 1}", part.get_content_type(), payload


class _TextOfHtml(HTMLParser):
    """Collects the visible text."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style", "head"):
            self._hidden += 1
        elif tag in ("br", "p", "div", "tr", "li", "h1", "h2", "h3"):
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "head"):
            self._hidden = max(0, self._hidden - 1)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(re.sub(r"\s+", " ", data))


def _strip_html(html: str) -> str:
    parser = _TextOfHtml()
    parser.feed(html)
    parser.close()
    lines = (line.strip() for line in "".join(parser.pieces).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
