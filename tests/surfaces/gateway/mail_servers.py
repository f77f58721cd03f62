"""Real mail servers on loopback: Dovecot for IMAP, aiosmtpd for SMTP, both with TLS."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default as policy
from pathlib import Path
from typing import Any

DOVECOT = shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
BOT, ADA = "bot@mail.test", "ada@home.test"
PASSWORD = "correct-horse"
_CONFIG = """
base_dir = {run}
log_path = {root}/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = required
ssl_cert = <{root}/cert.pem
ssl_key = <{root}/key.pem
default_login_user = nobody
default_internal_user = nobody
default_internal_group = nogroup
first_valid_uid = 1
auth_mechanisms = plain login
mail_location = maildir:{root}/mail/%u
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=nobody gid=nogroup home={root}/home/%u
}}
namespace inbox {{
  inbox = yes
  mailbox Sent {{
    auto = subscribe
    special_use = \\Sent
  }}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service anvil {{
  chroot =
}}
"""


def missing() -> str:
    """Why the servers cannot run here; "" when they can."""
    if DOVECOT is None:
        return "dovecot is not installed"
    if os.getuid() != 0:
        return "dovecot needs root"
    try:
        import aiosmtpd  # noqa: F401
    except ImportError:
        return "aiosmtpd is not installed"
    return "" if shutil.which("openssl") else "openssl is not installed"


class MailServers:
    """Two mailboxes. SMTP delivers into the folders of Dovecot."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.imap_port = self.smtp_port = 0
        self.loses_response = False
        self.refusal = ""
        self._count = itertools.count(1)

    def mails(self, address: str = ADA) -> list[EmailMessage]:
        """What a person has received, oldest first."""
        folder = self.root / "mail" / address
        files = [path for name in ("new", "cur") for path in (folder / name).glob("*")]
        files.sort(key=lambda path: int(path.name.split(".")[0]))
        return [parse(path.read_bytes()) for path in files]

    def put(self, address: str, mail: bytes) -> None:
        folder = self.root / "mail" / address
        name = f"{next(self._count)}.{time.time_ns()}"
        draft = folder / "tmp" / name
        draft.write_bytes(mail)
        draft.chmod(0o666)
        draft.rename(folder / "new" / name)

    def write(
        self,
        text: str,
        *,
        sender: str = ADA,
        results: str | None = "",
        headers: dict[str, str] | None = None,
        file: tuple[str, bytes] | None = None,
        html: str = "",
    ) -> EmailMessage:
        """A mail to the bot, as its mail server receives it."""
        mail = EmailMessage()
        mail["From"] = f"Ada <{sender}>"
        mail["To"] = BOT
        mail["Message-ID"] = f"<m{next(self._count)}@home.test>"
        mail["Date"] = "Wed, 18 Nov 2026 12:00:00 +0000"
        if results is not None:
            domain = sender.rpartition("@")[2]
            mail["Authentication-Results"] = (
                results or f"mx.mail.test; dmarc=pass header.from={domain}"
            )
        for name, value in (headers or {}).items():
            mail[name] = value
        mail.set_content(text)
        if html:
            mail.clear_content()
            mail.set_content(html, subtype="html")
        if file:
            mail.add_attachment(file[1], maintype="image", subtype="png", filename=file[0])
        self.put(BOT, mail.as_bytes())
        return mail

    # the handler of aiosmtpd

    async def handle_RCPT(self, _s: Any, _session: Any, envelope: Any, to: str, _o: Any) -> str:
        if to not in (BOT, ADA):
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(to)
        return "250 OK"

    async def handle_DATA(self, server: Any, _session: Any, envelope: Any) -> str:
        if self.refusal:
            refusal, self.refusal = self.refusal, ""
            return refusal
        for to in envelope.rcpt_tos:
            self.put(to, envelope.content)
        if self.loses_response:
            self.loses_response = False
            server.transport.abort()
        return "250 OK"


def parse(raw: bytes) -> EmailMessage:
    message = BytesParser(policy=policy).parsebytes(raw)
    assert isinstance(message, EmailMessage)
    return message


def _start(root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([str(DOVECOT), "-F", "-c", str(root / "dovecot.conf")])


@asynccontextmanager
async def mail_servers(root: Path) -> AsyncIterator[MailServers]:
    servers = MailServers(root)
    _prepare(servers)
    dovecot = _start(root)
    try:
        await _answers(servers.imap_port, dovecot, root)
        async with _smtp(servers):
            yield servers
    finally:
        dovecot.terminate()
        await asyncio.to_thread(dovecot.wait)


@asynccontextmanager
async def _smtp(servers: MailServers) -> AsyncIterator[None]:
    from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

    def authenticate(_s: Any, _session: Any, _e: Any, _m: str, data: Any) -> AuthResult:
        right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
        return AuthResult(success=right, handled=False)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(servers.root / "cert.pem", servers.root / "key.pem")
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(
        lambda: SMTP(
            servers,
            hostname="127.0.0.1",
            tls_context=context,
            require_starttls=True,
            auth_required=True,
            authenticator=authenticate,
            loop=loop,
        ),
        "127.0.0.1",
        0,
    )
    servers.smtp_port = listener.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        listener.close()


def _prepare(servers: MailServers) -> None:
    root = servers.root
    # Workers of Dovecot run as nobody.
    for folder in (root, *root.parents):
        if folder == Path("/tmp") or folder == Path("/"):
            break
        folder.chmod(folder.stat().st_mode | 0o055)
    for address in (BOT, ADA):
        for name in ("tmp", "new", "cur"):
            (root / "mail" / address / name).mkdir(parents=True)
    for path in (root / "mail").rglob("*"):
        path.chmod(0o777)
    (root / "mail").chmod(0o777)
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject,
         "-keyout", str(root / "key.pem"), "-out", str(root / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    with socket.socket() as channel:
        channel.bind(("127.0.0.1", 0))
        servers.imap_port = channel.getsockname()[1]
    # The path of a socket has at most 107 bytes.
    run = Path("/tmp") / f"hermes-dovecot-{os.getpid()}-{servers.imap_port}"
    values = {"root": root, "run": run, "port": servers.imap_port, "password": PASSWORD}
    (root / "dovecot.conf").write_text(_CONFIG.format(**values))


async def _answers(port: int, dovecot: subprocess.Popen[bytes], root: Path) -> None:
    async with asyncio.timeout(30):
        while True:
            assert dovecot.poll() is None, (root / "dovecot.log").read_text()
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            greeting = await reader.readline()
            writer.close()
            if greeting.startswith(b"* OK"):
                return
