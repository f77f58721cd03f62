"""The real `hermes mcp serve`, and the official client in front of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.surfaces.cli.chat.conftest import new_pane, project

__all__ = ["new_pane", "project"]

HERMES = str(Path(sys.executable).with_name("hermes"))


class Guest:
    """Another agent that uses our tools."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def use(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        text = getattr(result.content[0], "text", "")
        assert json.loads(text) == result.structured_content
        return dict(result.structured_content or {})


def environment(home: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home.parent),
        "HERMES_HOME": str(home),
        "HERMES_INFERENCE_PROVIDER": "offline",
        **more,
    }


@asynccontextmanager
async def guest(home: Path, *options: str, **env: str) -> AsyncIterator[Guest]:
    parameters = StdioServerParameters(
        command=HERMES, args=["mcp", "serve", *options], env=environment(home, **env)
    )
    with (home.parent / "serve.log").open("w") as log:
        async with Client(stdio_client(parameters, errlog=log)) as client:
            yield Guest(client)
