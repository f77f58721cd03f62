"""`hermes mcp catalog` and `install`, with a registry and a runner of packages on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.mcp.conftest import LITTLE
from tests.surfaces.cli.program import Program

LITTLE_SERVER: dict[str, Any] = {
    "name": "io.example/little",
    "description": "A small server.\x1b[2J",
    "version": "1.0.0",
    "packages": [
        {
            "registryType": "npm",
            "identifier": "little-mcp",
            "version": "1.0.0",
            "transport": {"type": "stdio"},
            "environmentVariables": [{"name": "LITTLE_WORD", "isRequired": True, "isSecret": True}],
        }
    ],
}


class Registry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/v0.1/servers":
            words = parse_qs(parts.query)["search"][0]
            found = [{"server": LITTLE_SERVER}] if words in LITTLE_SERVER["name"] else []
            self._tell(200, {"servers": found, "metadata": {}})
        elif parts.path == "/v0.1/servers/io.example%2Flittle/versions/latest":
            self._tell(200, {"server": LITTLE_SERVER, "_meta": {}})
        else:
            self._tell(404, {"error": "there is none"})

    def _tell(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def registry(program: Program) -> Iterator[Program]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        running = Thread(target=server.serve_forever)
        running.start()
        program.write(f"mcp_registry: http://127.0.0.1:{server.server_port}\n")
        yield program
        server.shutdown()
        running.join(60)


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `npx` that fetches nothing and starts a small server; what it was called with is kept."""
    folder = tmp_path / "bin"
    folder.mkdir()
    npx = folder / "npx"
    called = tmp_path / "called"
    npx.write_text(f'#!/bin/sh\necho "$@" > {called}\nexec {sys.executable} -S -E {LITTLE}\n')
    npx.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return called


def test_the_catalogue_is_searched(program: Program) -> None:
    names = [row["name"] for row in program("mcp", "catalog", "--json").json]
    assert {"filesystem", "github", "playwright"} <= set(names)
    (row,) = program("mcp", "catalog", "pull", "REQUESTS", "--json").json
    assert (row["name"], row["how"], row["needs"]) == ("github", "address", ["token"])
    assert "No server matches; --online" in program("mcp", "catalog", "nothing", "of", "that").out


def test_a_server_of_the_registry_is_installed_without_its_secret_in_the_settings(
    registry: Program, runner: Path
) -> None:
    (row,) = registry("mcp", "catalog", "--online", "little", "--json").json
    assert (row["name"], row["description"], row["needs"]) == (
        "io.example/little",
        "A small server.[2J",
        ["LITTLE_WORD"],
    )
    asked = ("mcp", "install", "io.example/little", "--set", "LITTLE_WORD=sesame-sesame")
    refused = registry(*asked)
    assert refused.code == 2
    assert "npx -y little-mcp@1.0.0" in refused.err
    declined = registry.answer("n\n", *asked)
    assert (declined.code, "Nothing was changed." in declined.err) == (1, True)
    assert not runner.exists()
    assert registry("mcp", "list", "--json").json == []
    done = registry(*asked, "--yes")
    assert (done.code, done.err) == (0, "")
    assert "little: 12 tools" in done.out
    assert runner.read_text() == "-y little-mcp@1.0.0\n"
    settings = (registry.home / "config.yaml").read_text()
    assert "sesame-sesame" not in settings
    assert "${MCP_LITTLE_LITTLE_WORD}" in settings
    assert registry("mcp", "test", "little").code == 0


def test_a_described_server_is_installed_from_a_file_under_another_name(
    program: Program, runner: Path, tmp_path: Path
) -> None:
    file = tmp_path / "server.json"
    file.write_text(json.dumps(LITTLE_SERVER))
    done = program(
        *("mcp", "install", str(file), "--as", "tiny", "--set", "LITTLE_WORD=x", "--yes")
    )
    assert (done.code, done.err) == (0, "")
    assert [row["name"] for row in program("mcp", "list", "--json").json] == ["tiny"]


def test_what_cannot_be_installed_says_why(
    registry: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = registry("mcp", "install", "filesystem")
    assert (missing.code, "--set folder=VALUE" in missing.err) == (2, True)
    assert registry("mcp", "install", "no-such-one").code == 1
    assert "no server of that name" in registry("mcp", "install", "io.example/other").err
    file = tmp_path / "server.json"
    assert "cannot be read" in registry("mcp", "install", str(file)).err
    file.write_text("[]")
    assert "does not describe a server" in registry("mcp", "install", str(file)).err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install Node.js" in registry("mcp", "install", "memory", "--yes").err
