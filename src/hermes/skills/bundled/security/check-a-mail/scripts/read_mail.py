"""Reads a saved message (.eml) without opening anything in it, and lists what speaks against it.

python3 read_mail.py FILE.eml
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parseaddr
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

RISKY = re.compile(
    r"(?i)\.(exe|scr|js|jse|vbs|wsf|hta|bat|cmd|ps1|lnk|iso|img|jar|docm|xlsm|html?|svg|zip|rar|7z)$"
)
ADDRESS = re.compile(r"https?://[^\s<>\"')\]]+")
HOST = re.compile(r"(?i)\b(?:[a-z0-9-]+\.)+[a-z]{2,}\b")


class Links(HTMLParser):
    """Collects the links of a page: their text and their target."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self._target = ""
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "a":
            self._target, self._text = attributes.get("href") or "", []
        elif tag == "form":
            self.links.append(("(a form)", attributes.get("action") or ""))

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._target:
            self.links.append((" ".join("".join(self._text).split()), self._target))
            self._target = ""


def domain(text: str) -> str:
    """Return the last two labels of a host, which somebody had to register (three for co.uk)."""
    labels = text.lower().rstrip(".").split(".")
    deep = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3
    return ".".join(labels[-3:] if deep else labels[-2:])


def sender(message: EmailMessage, field: str) -> tuple[str, str]:
    name, address = parseaddr(str(message.get(field, "")))
    return name, address


def of_the_sender(message: EmailMessage) -> Iterator[str]:
    name, address = sender(message, "From")
    own = domain(address.rpartition("@")[2])
    for field in ("Reply-To", "Return-Path"):
        other = sender(message, field)[1]
        if "@" in other and domain(other.rpartition("@")[2]) != own:
            yield f"{field} leads to {other}, not to {own}"
    for claimed in HOST.findall(name):
        if domain(claimed) != own:
            yield f"the name says {claimed}, the address is {address}"
    if not message.get_all("Authentication-Results"):
        yield "no Authentication-Results: the receiving server checked nothing, or it was removed"
    for result in message.get_all("Authentication-Results", []):
        for check, verdict in re.findall(r"\b(spf|dkim|dmarc)=(\w+)", str(result)):
            if verdict != "pass":
                yield f"{check} is {verdict}"


def of_a_link(text: str, target: str) -> Iterator[str]:
    parts = urlsplit(target)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https"):
        return
    shown = HOST.search(text)
    if shown and domain(shown[0]) != domain(host):
        yield f"a link says {shown[0]} and leads to {host}"
    if "xn--" in host or not host.isascii():
        yield f"letters of other alphabets in {host}"
    if re.fullmatch(r"[\d.]+|\[?[0-9a-f:]+\]?", host):
        yield f"a link to a bare number: {host}"
    if "@" in parts.netloc:
        yield f"a name before the real host: {parts.netloc}"


def links(message: EmailMessage) -> list[tuple[str, str]]:
    reader = Links()
    pairs: list[tuple[str, str]] = []
    for part in message.walk():
        if part.get_content_type() == "text/html":
            reader.feed(str(part.get_content()))
        elif part.get_content_type() == "text/plain":
            pairs += [("", address) for address in ADDRESS.findall(str(part.get_content()))]
    return pairs + reader.links


def main(path: Path) -> int:
    message = BytesParser(policy=policy.default).parsebytes(path.read_bytes())
    assert isinstance(message, EmailMessage)
    for field in ("From", "Reply-To", "Return-Path", "To", "Subject", "Date"):
        if message.get(field):
            sys.stdout.write(f"{field}: {message[field]}\n")
    signs = list(of_the_sender(message))
    hosts = []
    for text, target in links(message):
        signs += of_a_link(text, target)
        hosts.append(urlsplit(target).hostname or target)
    names = [str(part.get_filename()) for part in message.iter_attachments()]
    signs += [f"attachment that can run or hide something: {n}" for n in names if RISKY.search(n)]
    sys.stdout.write(f"Hosts: {', '.join(dict.fromkeys(hosts)) or 'none'}\n")
    sys.stdout.write(f"Attachments: {', '.join(names) or 'none'}\n")
    for sign in dict.fromkeys(signs):
        sys.stdout.write(f"! {sign}\n")
    sys.stdout.write(f"{len(set(signs))} signs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
