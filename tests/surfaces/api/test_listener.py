"""Where the server listens, with which credential, and whom it does not wait for."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import time
from pathlib import Path

import httpx2
import pytest

from hermes.config.home import Home
from hermes.core.errors import ConfigError, UsageError
from hermes.surfaces.api.listener import ListenAddress, check_address
from hermes.surfaces.api.tokens import SCOPES, TokenStore, check_key
from tests.surfaces.api.serving import HERMES, Serving, configure, serving

NOWHERE = "http://127.0.0.1:9"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_this_machine_may_always_be_served(host: str) -> None:
    check_address(ListenAddress(host=host, port=1))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_others_are_served_on_purpose_and_not_in_the_clear(host: str) -> None:
    for place in (
        ListenAddress(host=host, port=1),
        ListenAddress(host=host, port=1, public=True),
        ListenAddress(host=host, port=1, proxied=True),
        ListenAddress(host=host, port=1, certificate="c", key="k"),
        ListenAddress(host=host, port=1, public=True, certificate="c"),
    ):
        with pytest.raises(UsageError):
            check_address(place)
    check_address(ListenAddress(host=host, port=1, public=True, certificate="c", key="k"))
    check_address(ListenAddress(host=host, port=1, public=True, proxied=True))


@pytest.mark.parametrize(
    "key", ["short", "aaaaaaaaaaaaaaaaaaaa", "changeme-1234567890", "with a space in it 1"]
)
def test_keys_that_others_would_guess_are_refused(key: str) -> None:
    with pytest.raises(ConfigError):
        check_key(key)


def test_a_token_is_kept_as_a_digest(tmp_path: Path) -> None:
    tokens = TokenStore(Home(tmp_path))
    made = tokens.add("one", ("chat",), 1.0)
    found = tokens.client(made)
    assert found is not None and (found.name, found.scopes) == ("one", ("chat",))
    assert tokens.client(made + "x") is None
    assert tokens.client("") is None
    assert made not in (tmp_path / "api_tokens.json").read_text()
    with pytest.raises(UsageError):
        tokens.add("one", SCOPES, 2.0)
    with pytest.raises(UsageError):
        tokens.add("../x", SCOPES, 2.0)


def run(home: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    own = {"HERMES_HOME": str(home), "HOME": str(home.parent), "PATH": os.defpath, **env}
    return subprocess.run([HERMES, "serve", *words], env=own, capture_output=True, text=True)


def test_a_public_address_needs_words(tmp_path: Path) -> None:
    done = run(tmp_path / "home", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "--public" in done.stderr
    assert not (tmp_path / "home" / "api_token").exists()
    done = run(tmp_path / "home", "--port", "0", API_SERVER_KEY="changeme")
    assert done.returncode != 0 and "API_SERVER_KEY" in done.stderr


def test_a_key_of_the_environment_is_the_only_credential(tmp_path: Path) -> None:
    key = "0a9f8e7d6c5b4a3f2e1d"
    with serving(tmp_path, NOWHERE, env={"API_SERVER_KEY": key}) as server:
        assert not (server.home / "api_token").exists()
        header = {"Authorization": f"Bearer {key}"}
        assert httpx2.get(f"{server.url}/v1/models", headers=header, timeout=60).status_code == 200
        assert httpx2.get(f"{server.url}/v1/models", timeout=60).status_code == 401


def test_a_port_that_is_taken_is_reported(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(tmp_path / "home", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2 and "--port" in done.stderr


def test_tls_is_spoken_with_a_certificate(tmp_path: Path) -> None:
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {tmp_path}/k -out {tmp_path}/c "
        "-days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1".split(),
        check=True,
        capture_output=True,
    )
    configure(tmp_path / "home", NOWHERE)
    server = Serving(tmp_path / "home", "--cert", f"{tmp_path}/c", "--key", f"{tmp_path}/k")
    server.up()
    try:
        trust = ssl.create_default_context(cafile=f"{tmp_path}/c")
        assert server.url.startswith("https://")
        done = httpx2.get(
            f"{server.url}/v1/models", headers=server.headers, verify=trust, timeout=60
        )
        assert done.status_code == 200
    finally:
        server.down()


@pytest.mark.slow
def test_nobody_is_waited_for_in_vain(tmp_path: Path) -> None:
    with serving(tmp_path, NOWHERE) as server:
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n"
            "Content-Length: 100\r\n\r\n{"
        ).encode()
        with (
            socket.create_connection(("127.0.0.1", server.port), timeout=60) as silent,
            socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow,
        ):
            begun = time.monotonic()
            slow.sendall(head)
            silent.sendall(b"GET /health HT")
            assert silent.recv(1_000) == b""
            assert time.monotonic() - begun < 25
            assert b" 408 " in slow.recv(1_000)
            assert time.monotonic() - begun < 45
