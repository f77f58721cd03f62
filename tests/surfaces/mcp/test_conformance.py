"""The protocol project's own judges: its conformance suite and its inspector."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.mcp.conftest import free_port, until_open
from tests.mcp.others import needs, other, with_others
from tests.surfaces.mcp.conftest import HERMES, environment

TOKEN = "a-token-for-this-test-only"
# The suite's other scenarios call tools, resources and prompts of its own reference server.
APPLICABLE = (
    "completion-complete",
    "dns-rebinding-protection",
    "ping",
    "prompts-list",
    "resources-list",
    "server-initialize",
    "server-sse-multiple-streams",
    "tools-call-error",
    "tools-list",
)


CLIENT = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/basic-cimd",
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/offline-access-not-supported",
    "auth/offline-access-scope",
    "auth/pre-registration",
    "auth/resource-mismatch",
    "auth/scope-from-scopes-supported",
    "auth/scope-from-www-authenticate",
    "auth/scope-omitted-when-undefined",
    "auth/scope-retry-limit",
    "auth/scope-step-up",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-none",
    "auth/token-endpoint-auth-post",
)
ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src"
OUR_CLIENT = ROOT / "tests" / "mcp" / "conformance_client.py"


@asynccontextmanager
async def with_token(target: int) -> AsyncIterator[int]:
    """A door that shows the token for whoever comes through: the suite cannot."""

    async def back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", target)
        answering = asyncio.ensure_future(back(inner, writer))
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                found = re.search(rb"(?i)content-length: *(\d+)", head)
                body = await reader.readexactly(int(found[1]) if found else 0)
                outer.write(head[:-2] + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode() + body)
                await outer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            outer.close()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _output(*command: str, env: dict[str, str], seconds: float = 120) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(seconds):
        return (await process.communicate())[0].decode()


@needs("conformance")
async def test_every_scenario_that_applies_is_passed(tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    home.mkdir()
    serving = await asyncio.create_subprocess_exec(
        *(HERMES, "mcp", "serve", "--http", "--port", str(port), "--token", TOKEN),
        env=environment(home),
    )
    try:
        await until_open(port)
        async with with_token(port) as door:
            url = f"http://127.0.0.1:{door}/mcp"
            shown = await _output(
                other("conformance"), "server", "--url", url, env=with_others(dict(os.environ))
            )
    finally:
        serving.terminate()
        await serving.wait()
    passed = set(re.findall(r"✓ ([\w-]+): \d+ passed, 0 failed", shown))
    assert set(APPLICABLE) - passed == set(), shown[-2_000:]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", CLIENT)
@needs("conformance")
async def test_our_client_passes_the_scenarios_for_clients(scenario: str) -> None:
    client = f"{sys.executable} {OUR_CLIENT}"
    command = (other("conformance"), "client", "--command", client, "--scenario", scenario)
    shown = await _output(*command, env=with_others({**os.environ, "PYTHONPATH": str(SOURCE)}))
    assert re.search(r"Passed: (\d+)/\1, 0 failed", shown), shown[-2_000:]


@needs("mcp-inspector")
async def test_the_inspector_lists_and_calls_our_tools(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    inspector = (other("mcp-inspector"), "--cli", HERMES, "mcp", "serve", "--method")
    env = with_others(environment(home))
    listed = json.loads(await _output(*inspector, "tools/list", env=env))
    assert "conversations_list" in {tool["name"] for tool in listed["tools"]}
    call = ("tools/call", "--tool-name", "conversations_list", "--tool-arg", "limit=2")
    called = json.loads(await _output(*inspector, *call, env=env))
    assert called["structuredContent"] == {"count": 0, "conversations": []}
