"""One IMAP connection, for use in threads: new mail, IDLE, search and flags."""

from __future__ import annotations

import imaplib
import re
import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from hermes.core.errors import LoginRejected, PlatformUnreachable, PostRejected

SECONDS = 30.0
TLS_PORT = 993
_SENT_NAMES = ("Sent", "Sent Items", "Sent Messages", "INBOX.Sent")
_LIST = re.compile(rb'\((?P<flags>[^)]*)\) (?:"[^"]*"|NIL) (?P<name>.+)')


class MailAccount(NamedTuple):
    """Where the mailbox is."""

    address: str
    password: str
    imap_host: str
    imap_port: int
    smtp_host: str
    smtp_port: int
    folder: str
    ca_file: str

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca_file or None)


@contextmanager
def translate_errors(host: str) -> Iterator[None]:
    """Network errors as the contract of platforms names them."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise PlatformUnreachable(
            f"The certificate of {host} cannot be verified ({error.verify_message}); set "
            "`platforms.email.extra.ca_file` if it is your own."
        ) from error
    except (OSError, EOFError, imaplib.IMAP4.abort) as error:
        raise PlatformUnreachable(f"{host} cannot be reached: {error}") from error
    except imaplib.IMAP4.error as error:
        raise PostRejected(f"{host} refused a command: {error}") from error


class Mailbox:
    """A connection to the folder with new mail. Its methods block."""

    def __init__(self, account: MailAccount) -> None:
        self._account = account
        self._imap: imaplib.IMAP4 | None = None
        self._capabilities = ""
        self.uid_validity = 0

    @property
    def imap(self) -> imaplib.IMAP4:
        if self._imap is None:
            raise PlatformUnreachable("The connection to the mailbox is closed.")
        return self._imap

    def open(self) -> None:
        account = self._account
        with translate_errors(account.imap_host):
            if account.imap_port == TLS_PORT:
                self._imap = imaplib.IMAP4_SSL(
                    account.imap_host, account.imap_port, ssl_context=account.tls(), timeout=SECONDS
                )
            else:
                self._imap = imaplib.IMAP4(account.imap_host, account.imap_port, timeout=SECONDS)
                self._imap.starttls(account.tls())
            self._login()
            # A server can do more after the login.
            words = self._do("CAPABILITY", self.imap.capability())
            self._capabilities = b" ".join(filter(None, words)).decode("ascii", "replace").upper()
            self._select(account.folder)

    def _login(self) -> None:
        account = self._account
        try:
            self.imap.login(account.address, account.password)
        except imaplib.IMAP4.abort:
            raise
        except imaplib.IMAP4.error as error:
            if "UNAVAILABLE" in str(error):
                raise PlatformUnreachable(f"{account.imap_host}: {error}") from error
            raise LoginRejected(
                f"{account.imap_host} does not accept the password of {account.address}; run "
                "`hermes gateway setup email`."
            ) from error

    def _select(self, folder: str) -> None:
        self._do("SELECT", self.imap.select(_quote(folder)))
        _, data = self.imap.response("UIDVALIDITY")
        first = data[0] if data else None
        self.uid_validity = int(first) if isinstance(first, bytes) else 0

    def interrupt(self) -> None:
        """End what another thread waits for. The descriptor stays open for that thread: a new
        connection could get the same one."""
        if self._imap is not None:
            with suppress(OSError):
                # Unlike the method of a TLS socket, this leaves its state alone.
                socket.socket.shutdown(self._imap.sock, socket.SHUT_RDWR)

    def close(self) -> None:
        imap, self._imap = self._imap, None
        if imap is not None:
            with suppress(OSError):
                imap.shutdown()

    def newest_uid(self) -> int:
        return max(self._search("UID", "*"), default=0)

    def uids_after(self, uid: int) -> list[int]:
        # The range "n:*" contains the last mail also when its number is smaller.
        with translate_errors(self._account.imap_host):
            self._do("NOOP", self.imap.noop())
            self._has_news()
        return sorted(each for each in self._search("UID", f"{uid + 1}:*") if each > uid)

    def size(self, uid: int) -> int:
        parts = self._fetch(uid, "(RFC822.SIZE)")
        found = re.search(rb"RFC822\.SIZE (\d+)", b" ".join(_flat(parts)))
        return int(found[1]) if found else 0

    def read(self, uid: int, *, only_headers: bool = False) -> bytes:
        """A mail, or b"" when it is gone."""
        parts = self._fetch(uid, "(BODY.PEEK[HEADER])" if only_headers else "(BODY.PEEK[])")
        return next((part[1] for part in parts if isinstance(part, tuple)), b"")

    def find(self, message_id: str) -> bool:
        """Whether a mail with this id is in the folder of sent mail or of new mail."""
        with translate_errors(self._account.imap_host):
            for folder in filter(None, (self._sent_folder(), self._account.folder)):
                self._do("EXAMINE", self.imap.select(_quote(folder), readonly=True))
                if self._search("HEADER", "Message-ID", _quote(message_id)):
                    return True
        return False

    def file_as_sent(self, uid: int) -> None:
        """Move our copy of a mail that we sent out of the new mail."""
        with translate_errors(self._account.imap_host):
            sent = self._sent_folder()
            if sent and "MOVE" in self._capabilities.split():
                self._do("MOVE", self.imap.uid("MOVE", str(uid), _quote(sent)))
            else:
                self._do("STORE", self.imap.uid("STORE", str(uid), "+FLAGS", r"(\Seen)"))

    def wait(self, seconds: float) -> None:
        """Wait until something happens, at most so long. IDLE where the server has it."""
        with translate_errors(self._account.imap_host):
            if self._has_news():
                return
            if not self.can_idle:
                # Only a server that ends the connection says something now.
                select.select([self.imap.sock], [], [], seconds)
                return
            idle = _Idle(self.imap)
            idle.start()
            idle.wait(seconds)
            idle.stop()

    def _has_news(self) -> bool:
        """Whether the server mentioned new mail while it answered something else."""
        _, data = self.imap.response("EXISTS")
        return data != [None]

    @property
    def can_idle(self) -> bool:
        return "IDLE" in self._capabilities.split()

    def _sent_folder(self) -> str:
        names = []
        for row in self._do("LIST", self.imap.list()):
            found = _LIST.match(row) if isinstance(row, bytes) else None
            if found:
                name = found["name"].decode("utf-8", "replace").strip('"')
                if rb"\sent" in found["flags"].lower():
                    return name
                names.append(name)
        return next((name for name in _SENT_NAMES if name in names), "")

    def _search(self, *criteria: str) -> list[int]:
        with translate_errors(self._account.imap_host):
            data = self._do("SEARCH", self.imap.uid("SEARCH", *criteria))
        return [int(word) for part in data if part for word in part.split()]

    def _fetch(self, uid: int, parts: str) -> list[Any]:
        with translate_errors(self._account.imap_host):
            return self._do("FETCH", self.imap.uid("FETCH", str(uid), parts))

    @staticmethod
    def _do(name: str, result: tuple[str, list[Any]]) -> list[Any]:
        status, data = result
        if status != "OK":
            raise imaplib.IMAP4.error(f"{name}: {data}")
        return data


class _Idle:
    """The command IDLE. It reads from the socket itself, because a line that imaplib has buffered
    cannot be waited for."""

    def __init__(self, imap: imaplib.IMAP4) -> None:
        self._imap = imap
        self._buffer = b""
        self._has_news = False

    def start(self) -> None:
        self._imap.send(b"HERMES IDLE\r\n")
        while not (line := self._line()).startswith(b"+"):
            if line.startswith(b"HERMES "):
                raise EOFError("the server refused IDLE")
            # Mail that came since the last search is announced before IDLE begins.
            self._has_news = True

    def wait(self, seconds: float) -> None:
        sock = self._imap.sock
        pending = sock.pending() if isinstance(sock, ssl.SSLSocket) else 0
        if not self._has_news and not self._buffer and not pending:
            select.select([sock], [], [], seconds)

    def stop(self) -> None:
        self._imap.send(b"DONE\r\n")
        while not self._line().startswith(b"HERMES "):
            pass

    def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            data = self._imap.sock.recv(4096)
            if not data:
                raise EOFError("the server closed the connection")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line


def _flat(parts: list[Any]) -> Iterator[bytes]:
    for part in parts:
        yield from part if isinstance(part, tuple) else (part or b"",)


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
