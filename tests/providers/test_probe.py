from __future__ import annotations

import asyncio
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from hermes.core.errors import ConfigError
from hermes.net.http import HttpClient
from hermes.providers import local_discovery as probe
from hermes.providers.local_discovery import LocalPort, choose_model, find_local, first_model
from hermes.providers.model_catalogue import shipped_catalogue
from hermes.testing.server import ScriptedServer
from tests.providers.asking import endpoint


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of a test may be slower than those that are worth to be found."""
    monkeypatch.setattr(probe, "_CONNECT_SECONDS", 30)
    monkeypatch.setattr(probe, "_ANSWER_SECONDS", 30)


def port_of(server: ScriptedServer) -> int:
    port = urlsplit(server.url).port
    assert port is not None
    return port


async def closed_port() -> int:
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


@pytest.mark.parametrize(
    ("models", "chosen"),
    [
        (["nomic-embed-text", "llama3.1:8b"], "llama3.1:8b"),
        (["tinystories", "qwen3:8b", "llama3.1:8b"], "qwen3:8b"),
        (["gpt-oss:120b-cloud", "phi4"], "phi4"),
        (["whisper-large", "bge-m3"], ""),
        ([], ""),
    ],
)
def test_the_likeliest_model_is_chosen(models: list[str], chosen: str) -> None:
    assert choose_model(models) == chosen


async def test_an_open_server_is_found_and_told_honestly(http: HttpClient) -> None:
    tags = {"models": [{"name": "mxbai-embed-large"}, {"name": "qwen3:8b", "size": 5}]}
    async with ScriptedServer(pages={"/api/tags": tags}) as server:
        port = port_of(server)
        places = (
            LocalPort("vLLM", await closed_port(), "/v1/models"),
            LocalPort("Ollama", port, "/api/tags"),
        )
        found = await find_local(http, shipped_catalogue(), ports=places)
    assert found is not None
    at = found.endpoint
    assert (at.model, at.wire, at.url) == ("qwen3:8b", "chat", f"http://127.0.0.1:{port}/v1")
    assert at.key == "" and at.is_local
    assert found.line == (
        f"Using qwen3:8b on the Ollama server at 127.0.0.1:{port}; nothing leaves this machine."
    )


async def test_a_doubtful_model_is_called_so(http: HttpClient) -> None:
    async with ScriptedServer(models=["mystery-1b"]) as server:
        places = (LocalPort("llama.cpp", port_of(server), "/v1/models"),)
        found = await find_local(http, shipped_catalogue(), ports=places)
    assert found is not None and found.line.endswith("It may not support tools.")


async def test_a_port_where_something_else_listens_is_passed_over(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    places = (LocalPort("vLLM", port, "/v1/models"),)
    async with asyncio.timeout(60):
        assert await find_local(http, shipped_catalogue(), ports=places) is None
    server.close()


async def test_the_first_model_of_an_endpoint_is_found_in_every_wire(http: HttpClient) -> None:
    async with ScriptedServer(models=["text-embedding-3", "some-model"]) as server:
        for wire in ("chat", "responses", "messages"):
            at = endpoint("messages" if wire == "messages" else "chat", server.url)
            assert await first_model(http, at) == "some-model"
        assert [probe.path for probe in server.probes] == ["/v1/models"] * 3


async def test_an_endpoint_without_models_is_a_matter_of_settings(http: HttpClient) -> None:
    async with ScriptedServer(models=[]) as server:
        with pytest.raises(ConfigError, match="lists no model"):
            await first_model(http, endpoint("chat", server.url))


def test_a_machine_without_servers_is_asked_without_any_http_library() -> None:
    code = (
        "import asyncio, sys\n"
        "from hermes.net.http import HttpClient\n"
        "from hermes.providers.local_discovery import LocalPort, find_local\n"
        "from hermes.providers.model_catalogue import shipped_catalogue\n"
        "places = (LocalPort('vLLM', 9, '/v1/models'),)\n"
        "print(asyncio.run(find_local(HttpClient(), shipped_catalogue(), ports=places)))\n"
        "print([m for m in ('httpx2', 'httpcore2', 'anyio') if m in sys.modules])\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.split("\n")[:2] == ["None", "[]"]
