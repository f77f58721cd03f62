"""The email platform: reading mails, and conversations through real mail servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import PlatformUnreachable, PostRejected
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.surfaces.gateway.platform import Address, OutboundFile, PlatformContext, Post
from hermes.surfaces.gateway.platforms.contract_checks import Connection, connect
from hermes.surfaces.gateway.platforms.email.adapter import Email
from hermes.surfaces.gateway.platforms.email.mail import (
    is_authenticated,
    is_automatic,
    parse_mail,
    text_of,
)
from tests.surfaces.gateway.mail_servers import (
    ADA,
    BOT,
    PASSWORD,
    MailServers,
    mail_servers,
    missing,
)

needs_servers = pytest.mark.skipif(bool(missing()), reason=missing() or "unused")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


def build(servers: MailServers, folder: Path, ca: bool = True, **settings: str) -> Email:
    (folder / "state").mkdir(exist_ok=True)
    named = {
        "ADDRESS": BOT,
        "PASSWORD": PASSWORD,
        "IMAP_HOST": "127.0.0.1",
        "IMAP_PORT": str(servers.imap_port),
        "SMTP_HOST": "127.0.0.1",
        "SMTP_PORT": str(servers.smtp_port),
        **settings,
    }
    return Email(
        PlatformContext(
            settings={f"EMAIL_{name}": value for name, value in named.items()},
            extra={"ca_file": str(servers.root / "cert.pem")} if ca else {},
            folder=folder / "state",
            media=folder,
            max_media_bytes=1_000_000,
            http=HttpClient(),
            world=World(),
        )
    )


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[MailServers]:
    (tmp_path / "servers").mkdir()
    async with mail_servers(tmp_path / "servers") as servers:
        yield servers


@asynccontextmanager
async def connected(adapter: Email) -> AsyncIterator[Connection]:
    async with connect(adapter) as connection:
        await connection.wait_for()
        yield connection


@needs_servers
async def test_an_answer_stays_in_its_thread(servers: MailServers, tmp_path: Path) -> None:
    adapter = build(servers, tmp_path)
    async with connected(adapter) as connection:
        first = servers.write("What is **new**?", headers={"Subject": "Weekly report"})
        (event,) = await connection.wait_for(events=1)
        assert event.text == "[Subject: Weekly report]\nWhat is **new**?"
        own_id = await adapter.post(event.address, Post(text="# All\n\n- **fine**"), "s:t:1")
        reply = servers.mails()[0]
        assert (reply["Subject"], reply["In-Reply-To"]) == (
            "Re: Weekly report",
            first["Message-ID"],
        )
        assert reply["Auto-Submitted"] == "auto-replied"
        plain, html = reply.get_body(("plain",)), reply.get_body(("html",))
        assert plain is not None and html is not None
        assert plain.get_content().replace("\r\n", "\n") == "All\n\n• fine\n"
        assert "<strong>fine</strong>" in html.get_content()
        servers.write(
            f"Thanks!\n\nOn Wed, Bot <{BOT}> wrote:\n> All fine\n",
            headers={
                "Subject": "Re: Weekly report",
                "In-Reply-To": own_id,
                "References": f"{first['Message-ID']} {own_id}",
            },
        )
        events = await connection.wait_for(events=2)
    assert (events[1].text, events[1].address) == ("Thanks!", event.address)


@needs_servers
async def test_attachments_go_both_ways(servers: MailServers, tmp_path: Path) -> None:
    adapter = build(servers, tmp_path)
    async with connected(adapter) as connection:
        servers.write("see picture", file=("a b.png", PNG))
        (event,) = await connection.wait_for(events=1)
    (file,) = event.files
    assert (file.kind, file.name, file.size) == ("image", "a b.png", len(PNG))
    stored = await build(servers, tmp_path).download(file)
    assert await asyncio.to_thread(Path(stored.path).read_bytes) == PNG
    path = tmp_path / "out.csv"
    path.write_text("a,b\n")
    upload = OutboundFile(kind="file", path=str(path), caption="the table")
    await adapter.post(event.address, Post(file=upload), "k1")
    (part,) = servers.mails()[0].iter_attachments()
    assert (part.get_filename(), part.get_payload(decode=True)) == ("out.csv", b"a,b\n")
    with pytest.raises(PostRejected):
        gone = OutboundFile(kind="file", path=str(tmp_path / "gone"))
        await adapter.post(event.address, Post(file=gone), "k2")


@needs_servers
async def test_mail_without_proof_or_from_machines_is_dropped(
    servers: MailServers, tmp_path: Path
) -> None:
    async with connected(build(servers, tmp_path, AUTHSERV_ID="mx.mail.test")) as connection:
        servers.write("spoofed", results="mx.mail.test; dmarc=fail; spf=fail")
        servers.write("spoofed", results=None)
        servers.write("spoofed", results="mx.evil.test; dmarc=pass")
        servers.write("away", headers={"Auto-Submitted": "auto-replied"})
        servers.write("news", headers={"List-Id": "<x.y>"})
        servers.write("real")
        events = await connection.wait_for(events=1)
    assert [event.text for event in events] == ["real"]


@needs_servers
async def test_mail_that_came_while_the_gateway_was_down_is_answered_once(
    servers: MailServers, tmp_path: Path
) -> None:
    servers.write("before the first start")
    async with connected(build(servers, tmp_path)):
        pass
    servers.write("meanwhile")
    for expected in (["meanwhile"], ["later"]):
        if expected == ["later"]:
            servers.write("later")
        async with connected(build(servers, tmp_path)) as connection:
            events = await connection.wait_for(events=1)
        assert [event.text for event in events] == expected


@needs_servers
async def test_our_copies_are_filed_and_a_sent_mail_is_found(
    servers: MailServers, tmp_path: Path
) -> None:
    adapter, to = build(servers, tmp_path), Address(platform="email", chat_id=ADA)
    async with connected(adapter) as connection:
        await adapter.post(to, Post(text="hello"), "k1")
        servers.write("next")
        await connection.wait_for(events=1)
        assert await adapter.find_post(to, Post(text="hello"), "k1", 0.0)
    sent = tmp_path / "servers" / "mail" / BOT / ".Sent"
    assert len([*sent.glob("new/*"), *sent.glob("cur/*")]) == 1


@needs_servers
async def test_an_unknown_certificate_and_a_full_server_are_named(
    servers: MailServers, tmp_path: Path
) -> None:
    with pytest.raises(PlatformUnreachable, match="certificate"):
        await build(servers, tmp_path, ca=False).check()
    servers.refusal = "451 4.3.0 try again later"
    with pytest.raises(PlatformUnreachable, match="451"):
        to = Address(platform="email", chat_id=ADA)
        await build(servers, tmp_path).post(to, Post(text="x"), "k1")
    assert servers.mails() == []


@pytest.mark.parametrize(
    ("results", "proven"),
    [
        ("mx; dmarc=pass header.from=home.test", True),
        ("mx; dkim=pass header.d=home.test; spf=fail", True),
        ("mx; dkim=pass header.d=evil.test", False),
        ("mx; dkim=pass header.d=test", False),
        ("mx; spf=pass smtp.mailfrom=ada@home.test", True),
        ("mx; spf=pass smtp.mailfrom=x@evil.test", False),
        ("mx; dkim=pass header.d=nothome.test", False),
        ("mx; dmarc=fail", False),
        ("mx; none", False),
    ],
)
def test_only_an_aligned_result_proves_the_sender(results: str, proven: bool) -> None:
    raw = f"Authentication-Results: {results}\r\nFrom: a <ada@home.test>\r\n\r\n"
    mail = parse_mail(raw.encode())
    assert is_authenticated(mail, "") is proven
    assert is_authenticated(mail, "other") is False


def test_only_the_first_result_counts() -> None:
    raw = (
        b"Authentication-Results: mx; dmarc=fail\r\nAuthentication-Results: mx; dmarc=pass\r\n"
        b"From: ada@home.test\r\n\r\n"
    )
    assert not is_authenticated(parse_mail(raw), "mx")


@pytest.mark.parametrize(
    "line",
    ["Auto-Submitted: auto-generated", "Precedence: bulk", "List-Unsubscribe: <x>",
     "Return-Path: <>", "From: MAILER-DAEMON@x.y", "From: no-reply@x.y"],
)  # fmt: skip
def test_mail_of_machines_is_recognised(line: str) -> None:
    assert is_automatic(parse_mail(f"{line}\r\n\r\n".encode()))
    assert not is_automatic(parse_mail(b"From: ada@x.y\r\nAuto-Submitted: no\r\n\r\n"))


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("plain", "hi\n\n> old\n", "hi"),
        ("plain", "hi\n-- \nAda\n", "hi"),
        ("plain", "hi\n\n-----Original Message-----\nold", "hi"),
        ("plain", "> only a quote", "> only a quote"),
        ("html", "<style>x</style><p>hi<br>there &amp; you</p>", "hi\nthere & you"),
    ],
)
def test_only_what_the_sender_wrote_is_read(kind: str, body: str, text: str) -> None:
    raw = f"Content-Type: text/{kind}; charset=utf-8\r\n\r\n{body}"
    assert text_of(parse_mail(raw.encode())) == text


@pytest.mark.parametrize(
    "raw",
    [b"", b"\xff\xfe", b"From: =?x?q?=\r\n\r\n", b"From: <<>>\r\nMessage-ID: <\r\n\r\n",
     b"Content-Type: text/plain; charset=nonsense\r\n\r\n\xff",
     b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n"],
)  # fmt: skip
def test_a_damaged_mail_raises_nothing(raw: bytes) -> None:
    mail: Any = parse_mail(raw)
    assert isinstance(text_of(mail), str)
    assert not is_authenticated(mail, "")
    is_automatic(mail)
