"""A small foreign server for tests, over stdio or HTTP: `stage.py [--http PORT] [--sse PORT]`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve, Sample
from mcp_types import (
    CreateMessageResult,
    ImageContent,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
server: MCPServer[Any] = MCPServer("stage", version="1.0", log_level="ERROR")


def _note(file: str, line: str) -> None:
    if file:
        with Path(file).open("a") as out:
            out.write(line + "\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str) -> str:
    """Say it again."""
    return f"echo: {text}"


@server.tool(structured_output=False)
def environment() -> str:
    """All that this process sees of its surroundings."""
    return "\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()))


@server.tool(structured_output=False)
def fail() -> str:
    """Go wrong."""
    raise ToolError("this went wrong on purpose")


@server.tool(structured_output=False)
def picture() -> ImageContent:
    """One pixel."""
    return ImageContent(data=PIXEL, mime_type="image/png")


@server.tool(structured_output=False)
async def slow(ctx: Context, seconds: float, note: str = "") -> str:
    """Take some time, and tell how far it is."""
    _note(note, f"begun {os.getpid()}")
    try:
        await ctx.report_progress(1, 2, "half way")
        await anyio.sleep(seconds)
    except BaseException:
        _note(note, "cancelled")
        raise
    return "done"


@server.tool(structured_output=False)
def breed(note: str) -> str:
    """Start a process that would outlive us."""
    child = subprocess.Popen(["sleep", "600"])
    _note(note, str(child.pid))
    return str(child.pid)


@server.tool(structured_output=False)
async def grow(ctx: Context) -> str:
    """Have one more tool from now on."""

    def grown() -> str:
        """A tool that was not there before."""
        return "grown"

    server.add_tool(grown)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grew"


class Colour(BaseModel):
    colour: str


def _ask() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


def _think() -> Sample:
    words = TextContent(text="What is the capital of France?")
    return Sample([SamplingMessage(role="user", content=words)], max_tokens=100_000)


@server.tool(structured_output=False)
def paint(chosen: Annotated[Colour, Resolve(_ask)]) -> str:
    """Paint in a colour that the person chooses."""
    return f"painted {chosen.colour}"


@server.tool(structured_output=False)
def wonder(thought: Annotated[CreateMessageResult, Resolve(_think)]) -> str:
    """Let the client's model think."""
    content = thought.content
    return f"thought: {getattr(content, 'text', content)}"


@server.resource("stage://notes", name="notes", mime_type="text/plain")
def notes() -> str:
    return "the notes of the stage"


@server.prompt()
def greet(name: str) -> str:
    """A greeting."""
    return f"Greet {name} kindly."


def main() -> None:
    sys.stderr.write("the stage is set\n")
    sys.stderr.flush()
    time.sleep(float(os.environ.get("STAGE_LATE", "0")))
    match sys.argv[1:]:
        case ["--http", port]:
            server.run("streamable-http", port=int(port))
        case ["--sse", port]:
            server.run("sse", port=int(port))
        case _:
            server.run("stdio")


if __name__ == "__main__":
    main()
