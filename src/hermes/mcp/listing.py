"""The tools of a server, cached on disk so that sessions start without a connection."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.mcp.server import McpServer

LIST_RESOURCES, READ_RESOURCE = "list_resources", "read_resource"
LIST_PROMPTS, GET_PROMPT = "list_prompts", "get_prompt"
_VERSION = 1


class ListedTool(Value):
    """A server's tool, cleaned for models. `utility` tools are our own for resources and
    prompts. `finding` says what is suspicious in its description."""

    name: str
    description: str = ""
    schema: JsonObject = {}
    read_only: bool = False
    structured: bool = False
    utility: bool = False
    finding: str = ""


class ToolListing(Value):
    """Everything a server offers, and its identity."""

    tools: tuple[ListedTool, ...] = ()
    resources: bool = False
    prompts: bool = False
    title: str = ""
    protocol: str = ""


class CachedListing(Value):
    version: int
    fingerprint: str
    listing: ToolListing


class ListingCache:
    """The listings of all servers, one file each. An unreadable file counts as unknown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, server: McpServer) -> ToolListing | None:
        try:
            kept = decode(CachedListing, self._file(server.name).read_bytes())
        except (OSError, DecodeError):
            return None
        if kept.version != _VERSION or kept.fingerprint != server.fingerprint():
            return None
        return kept.listing

    def put(self, server: McpServer, listing: ToolListing) -> None:
        """Stores a listing; failures are ignored, since it is a cache."""
        kept = CachedListing(version=_VERSION, fingerprint=server.fingerprint(), listing=listing)
        file = self._file(server.name)
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial.write_bytes(encode(kept))
            partial.replace(file)

    def drop(self, name: str) -> None:
        self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._folder / f"{file_name(name)}.json"


def file_name(server: str) -> str:
    """Converts a server name to a safe file name."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", server).strip(".")
    return plain or "_"


def select_tools(server: McpServer, listing: ToolListing) -> tuple[ListedTool, ...]:
    """Returns the tools selected by the settings, then those for resources and prompts."""
    wanted = server.tools
    tools = [
        tool for tool in listing.tools if _is_wanted(tool.name, wanted.include, wanted.exclude)
    ]
    if listing.resources and wanted.resources:
        tools += RESOURCE_TOOLS
    if listing.prompts and wanted.prompts:
        tools += PROMPT_TOOLS
    return tuple(tools)


def _is_wanted(name: str, include: Iterable[str], exclude: Iterable[str]) -> bool:
    patterns = tuple(include)
    if patterns:
        return any(fnmatchcase(name, pattern) for pattern in patterns)
    return not any(fnmatchcase(name, pattern) for pattern in exclude)


def _utility(name: str, words: str, properties: JsonObject, required: list[str]) -> ListedTool:
    schema = {"type": "object", "properties": properties, "required": required}
    return ListedTool(name=name, description=words, schema=schema, read_only=True, utility=True)


RESOURCE_TOOLS = (
    _utility(LIST_RESOURCES, "List the resources of this server.", {}, []),
    _utility(
        READ_RESOURCE,
        "Read a resource of this server.",
        {"uri": {"type": "string", "description": "Its URI, as listed"}},
        ["uri"],
    ),
)
PROMPT_TOOLS = (
    _utility(LIST_PROMPTS, "List the prompts of this server.", {}, []),
    _utility(
        GET_PROMPT,
        "Get a prompt of this server, filled in.",
        {"name": {"type": "string"}, "arguments": {"type": "object"}},
        ["name"],
    ),
)
