"""Our client as the protocol's conformance suite drives it: `conformance_client.py URL`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

import httpx2

from hermes.config.extension_settings import McpOauthSettings
from hermes.core.world import SystemClock, World
from hermes.mcp.calls import CallServices, ToolCaller
from hermes.mcp.link import ServerLink
from hermes.mcp.oauth.login import log_in
from hermes.mcp.oauth.store import OAuthStore
from hermes.mcp.pool import ServerEnvironment, ServerPool
from hermes.mcp.server import McpServer, NeedsLogin
from hermes.mcp.server_requests import DECLINE
from hermes.testing.context import ScriptedContext
from hermes.workspaces.local import LocalWorkspace

LOGINS = 3
DOCUMENT = "https://conformance-test.local/client-metadata.json"
ARGUMENTS = {"add_numbers": {"a": 5, "b": 3}}


class Agreeable(ScriptedContext):
    """A person who takes what is offered first."""

    async def ask(self, question: str, choices: tuple[str, ...]) -> str | None:
        return choices[0] if choices else "something"


class Browser:
    """Follows the page to where it leads."""

    def __init__(self) -> None:
        self._work: asyncio.Task[None] | None = None

    def show_page(self, url: str, *, paste: bool) -> None:
        self._work = asyncio.ensure_future(self._visit(url))

    async def read_pasted(self) -> str:
        await asyncio.Event().wait()
        return DECLINE

    def reject_pasted(self, why: str) -> None:
        raise AssertionError("nothing is pasted")

    async def _visit(self, url: str) -> None:
        async with httpx2.AsyncClient(timeout=60) as client:
            back = await client.get(url)
            await client.get(back.headers["location"])


async def main(url: str) -> None:
    folder = Path(tempfile.mkdtemp())
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    key = folder / "key.pem"
    key.write_text(context.get("private_key_pem", ""))
    own = McpOauthSettings(
        grant="client_credentials" if "client-credentials" in scenario else "authorization_code",
        client_id=context.get("client_id", ""),
        client_secret=context.get("client_secret", ""),
        private_key_file=str(key) if "private_key_pem" in context else "",
        signing_algorithm=context.get("signing_algorithm", "RS256"),
        client_metadata_url=DOCUMENT if scenario == "auth/basic-cimd" else "",
    )
    locked = "oauth" if scenario.startswith("auth/") else ""
    server = McpServer(name="judge", url=url, auth=locked, oauth=own, timeout=60)  # type: ignore[arg-type]
    around = ServerEnvironment(
        cache=folder / "cache",
        logs=folder / "logs",
        tokens=folder / "tokens",
        variables={},
        person=str(folder),
        folder=str(folder),
    )
    servers = ServerPool([server], around, World())
    link = servers.link("judge")
    workspace = LocalWorkspace(str(folder), state=folder / "state", world=World(), env={})
    ctx = Agreeable(workspace=workspace)
    store = OAuthStore(around.tokens, "judge")
    if locked and not server.uses_client_credentials:
        await log_in(server, store, Browser(), SystemClock())
    try:
        for attempt in range(LOGINS):
            try:
                await use_all(link, ctx)
            except NeedsLogin:
                if attempt + 1 == LOGINS:
                    raise
                # A person reads what is missing and logs in once more.
                await log_in(server, store, Browser(), SystemClock())
            else:
                return
    finally:
        await servers.close()
        await workspace.close()


async def use_all(link: ServerLink, ctx: ScriptedContext) -> None:
    listing = await link.listing()
    for tool in listing.tools:
        given = ARGUMENTS.get(tool.name, {})
        caller = ToolCaller(ctx, CallServices())
        await link.call(lambda c, t=tool, g=given, w=caller: c.call(t.name, g, w), caller)  # type: ignore[misc]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
