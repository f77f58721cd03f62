"""Clients that guess tokens, smuggle requests or take all connections."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from hermes.surfaces.api.tokens import FAILURE_SECONDS, MAX_FAILURES, FailedTokens
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says
from tests.surfaces.api.serving import Serving, serving

NEXT = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
# What follows the head of a request; each is read in two ways by different servers.
AMBIGUOUS = {
    "both lengths": b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX",
    "both, other order": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\nab\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "two encodings": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a space": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "another word": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a sign": b"Content-Length: +0\r\n\r\n",
    "a negative length": b"Content-Length: -1\r\n\r\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    root = tmp_path_factory.mktemp("hostile")
    with (
        ScriptedServer.in_thread(lambda _: says("Hi."), strict=False) as model,
        serving(root, model.url) as running,
    ):
        yield running


@pytest.mark.parametrize("rest", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_nothing_is_served_after_an_ambiguous_length(server: Serving, rest: bytes) -> None:
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n{_authorized(server)}"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        client.sendall(head.encode() + rest + NEXT)
        answer = b""
        while data := client.recv(65_536):
            answer += data
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1 ") == 1


def _authorized(server: Serving) -> str:
    return f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n"


def test_guesses_are_slowed_down_and_valid_tokens_are_not(server: Serving) -> None:
    with server.client() as owner, server.client(headers={}) as stranger:
        assert owner.get("/v1/models").status_code == 200

        def guess(number: int) -> httpx2.Response:
            return stranger.get("/v1/models", headers={"Authorization": f"Bearer no{number}"})

        statuses = [guess(number).status_code for number in range(MAX_FAILURES + 5)]
        assert set(statuses) == {401, 429} and statuses.count(401) == MAX_FAILURES
        refused = guess(0)
        assert 0 < int(refused.headers["retry-after"]) <= FAILURE_SECONDS
        assert owner.get("/v1/models").status_code == 200
        # A request without a token is no guess.
        assert stranger.get("/v1/models").status_code == 401


def test_a_minute_later_an_address_may_try_again() -> None:
    now = 100.0
    failures = FailedTokens(lambda: now)
    for _ in range(MAX_FAILURES):
        assert failures.wait_seconds("a", "x") == 0
        failures.note("a", "x", is_valid=False)
    assert failures.wait_seconds("a", "x") == FAILURE_SECONDS
    assert failures.wait_seconds("b", "x") == 0
    now += FAILURE_SECONDS
    assert failures.wait_seconds("a", "x") == 0


def test_more_connections_than_descriptors_do_not_keep_it_busy(tmp_path: Path) -> None:
    with (
        ScriptedServer.in_thread(lambda _: says("Hi."), strict=False) as model,
        serving(tmp_path, model.url) as server,
        server.client() as owner,
    ):
        assert owner.get("/v1/models").status_code == 200
        limit = ["prlimit", "--pid", str(server.pid), "--nofile=64:64"]
        if subprocess.run(limit, check=False).returncode:
            pytest.skip("the limit cannot be changed here")
        address = ("127.0.0.1", server.port)
        crowd = [socket.create_connection(address, timeout=20) for _ in range(120)]
        time.sleep(0.5)
        before = _cpu_seconds(server.pid)
        time.sleep(2)
        assert _cpu_seconds(server.pid) - before < 0.5
        assert crowd[-1].recv(65_536).startswith(b"HTTP/1.1 503 ")
        assert owner.get("/v1/models").status_code == 200
        for each in crowd:
            each.close()
        limit_at = time.monotonic() + 20
        while _status(server) != 200:
            assert time.monotonic() < limit_at


def _status(server: Serving) -> int:
    with server.client() as client:
        return client.get("/v1/models").status_code


def _cpu_seconds(pid: int) -> float:
    facts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")
