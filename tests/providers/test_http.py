"""The network as a provider meets it: real sockets, real TLS, every failure a ProviderError."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import ProviderError
from hermes.net.http import HttpClient, Timeouts

KEY = "sk-very-secret-0123456789"
QUICK = Timeouts(connect=2.0, read=0.3)
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Listener:
    """A server on loopback that hands every connection to one function and counts them."""

    def __init__(self, serve: Serve) -> None:
        self.connections = 0
        self.left = asyncio.Event()
        self.url = ""
        self._serve = serve

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()
            writer.close()


@asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[Listener]:
    listener = Listener(serve)
    server = await asyncio.start_server(listener.meet, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    listener.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"
    try:
        yield listener
    finally:
        server.close()


async def request_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    return head + await reader.readexactly(size)


def answering(*answers: bytes) -> Serve:
    """Each request on a connection gets the next answer; then the connection is closed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await request_of(reader)
            writer.write(answer)
            await writer.drain()

    return serve


async def post(http: HttpClient, url: str, timeouts: Timeouts = QUICK) -> bytes:
    headers = {"authorization": f"Bearer {KEY}"}
    async with http.post(url, body=b"{}", headers=headers, timeouts=timeouts) as answer:
        assert answer.status == 200
        return await answer.read()


async def failing(http: HttpClient, url: str, timeouts: Timeouts = QUICK) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await post(http, url, timeouts)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in str(error) + repr(error)
        error = error.__cause__ or error.__context__
    return caught.value


async def test_a_connection_serves_one_request_after_the_other(http: HttpClient) -> None:
    async with listening(answering(*[OK] * 5)) as listener:
        assert [await post(http, listener.url) for _ in range(5)] == [b"ok"] * 5
        assert listener.connections == 1


async def test_requests_at_the_same_time_have_connections_of_their_own(http: HttpClient) -> None:
    together = asyncio.Barrier(8)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        await together.wait()
        writer.write(OK)

    async with listening(serve) as listener, asyncio.timeout(60):
        await asyncio.gather(*(post(http, listener.url) for _ in range(8)))


async def test_a_connection_that_was_closed_while_idle_is_replaced_at_once(
    http: HttpClient,
) -> None:
    async with listening(answering(OK)) as listener, asyncio.timeout(60):
        assert await post(http, listener.url) == b"ok"
        await listener.left.wait()
        assert await post(http, listener.url) == b"ok"
        assert listener.connections == 2


async def test_an_answer_in_chunks_is_read_as_it_comes(http: HttpClient) -> None:
    go = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
        await go.wait()
        writer.write(b"3\r\ntwo\r\n0\r\n\r\n")

    async with listening(serve) as listener:
        headers: dict[str, str] = {}
        exchange = http.post(listener.url, body=b"", headers=headers, timeouts=Timeouts())
        async with exchange as answer, asyncio.timeout(60):
            chunks = answer.chunks()
            assert await anext(chunks) == b"one"
            go.set()
            assert [chunk async for chunk in chunks] == [b"two"]


async def test_leaving_early_closes_the_connection(http: HttpClient) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        assert await reader.read() == b""

    async with listening(serve) as listener, asyncio.timeout(60):
        async with http.post(listener.url, body=b"", headers={}, timeouts=Timeouts()) as answer:
            assert await anext(answer.chunks()) == b"half"
        await listener.left.wait()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "cut"),
        (b"HTTP/1.1 200 OK\r\ncontent-len", "cut"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", "cut"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nha", "cut"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "cut"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "cut"),
    ],
)
async def test_an_answer_that_is_not_whole_is_cut(
    http: HttpClient, answer: bytes, reason: str
) -> None:
    async with listening(answering(answer)) as listener:
        error = await failing(http, listener.url)
    assert (error.reason, error.retryable) == (reason, True)


async def test_silence_ends_in_a_time_out(http: HttpClient) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(serve) as listener:
        error = await failing(http, listener.url)
    assert (error.reason, error.retryable) == ("timeout", True)


async def test_nobody_there_is_said_in_plain_words(http: HttpClient) -> None:
    async with listening(answering()) as listener:
        url = listener.url
    error = await failing(http, url)
    assert error.reason == "timeout"
    assert str(error) == "No connection to 127.0.0.1: is the server running?"


@pytest.mark.parametrize("url", ["ftp://x.test", "not a url", "http://", ""])
async def test_addresses_that_make_no_sense_are_refused(http: HttpClient, url: str) -> None:
    error = await failing(http, url)
    assert (error.reason, error.retryable) == ("format_error", False)


@pytest.mark.parametrize("key", [f"{KEY}\r\nx-evil: 1", f"{KEY}\u2603", f"{KEY}\x00"])
async def test_keys_that_cannot_be_sent_are_not_shown(http: HttpClient, key: str) -> None:
    async with listening(answering(OK)) as listener:
        headers = {"authorization": f"Bearer {key}"}
        with pytest.raises(ProviderError) as caught:
            async with http.post(listener.url, body=b"", headers=headers, timeouts=QUICK):
                pass
    assert caught.value.reason == "auth"
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


async def test_proxies_are_used_for_far_hosts_only() -> None:
    seen: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await request_of(reader))
        writer.write(OK)

    async with listening(proxy) as way, listening(answering(OK)) as near:
        http = HttpClient(proxy=way.url.removesuffix("/v1"))
        assert await post(http, near.url) == b"ok"
        assert seen == []
        assert await post(http, "http://far.example/v1") == b"ok"
        await http.aclose()
    assert seen[0].startswith(b"POST http://far.example/v1 HTTP/1.1\r\n")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True, timeout=120)
    return key, certificate


async def test_certificates_are_checked_and_a_bundle_can_be_given(
    certificate: tuple[Path, Path],
) -> None:
    key, public = certificate
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(public, key)
    async with listening(answering(OK), tls) as listener:
        strict, informed = HttpClient(), HttpClient(ca_file=str(public))
        error = await failing(strict, listener.url)
        assert (error.reason, error.retryable) == ("ssl_cert_verification", False)
        assert await post(informed, listener.url) == b"ok"
        await strict.aclose()
        await informed.aclose()


async def test_a_bundle_that_is_missing_is_named() -> None:
    http = HttpClient(ca_file="/nowhere/ca.pem")
    with pytest.raises(ProviderError, match=r"/nowhere/ca\.pem") as caught:
        await post(http, "https://127.0.0.1:1")
    assert caught.value.reason == "ssl_cert_verification"


def test_no_http_library_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, hermes.providers.pipeline, hermes.providers.model_catalogue;"
        "import hermes.providers.local_discovery;"
        "print([m for m in ('httpx2', 'httpcore2', 'anyio', 'h11') if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.strip() == "[]"


async def test_a_request_whose_answer_never_came_is_not_sent_again(http: HttpClient) -> None:
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await request_of(reader))
        writer.write(OK)
        seen.append(await request_of(reader))

    async with listening(serve) as listener:
        assert await post(http, listener.url) == b"ok"
        with pytest.raises(ProviderError) as caught:
            await post(http, listener.url)
    assert (len(seen), listener.connections) == (2, 1)
    assert (caught.value.reason, caught.value.retryable, caught.value.unsent) == (
        "cut",
        True,
        False,
    )


async def test_a_request_that_never_left_says_so(http: HttpClient) -> None:
    async with listening(answering(OK)) as listener:
        gone = listener.url
    with pytest.raises(ProviderError) as caught:
        await post(http, gone)
    assert caught.value.unsent


@pytest.mark.parametrize(
    ("only_ipv4", "family"), [(False, socket.AF_UNSPEC), (True, socket.AF_INET)]
)
async def test_a_name_leads_to_the_kind_of_address_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, only_ipv4: bool, family: int
) -> None:
    loop = asyncio.get_running_loop()
    resolve, asked = loop.getaddrinfo, list[int]()

    async def noted(host: str, port: int, *, family: int = 0, **more: Any) -> Any:
        asked.append(family)
        return await resolve(host, port, family=family, **more)

    monkeypatch.setattr(loop, "getaddrinfo", noted)
    http = HttpClient(only_ipv4=only_ipv4)
    async with listening(answering(OK)) as listener:
        assert await post(http, listener.url.replace("127.0.0.1", "localhost")) == b"ok"
        await http.aclose()
    assert asked[0] == family
