"""Tool lists of servers: cleaned, named and cached."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.mcp.server import McpServer

MOST_BYTES = 32 * 1024
MOST_CHARS = 2_000
_DEEPEST = 24
# Keywords that models and providers accept.
_KEPT = frozenset(
    """type properties required items enum const anyOf oneOf allOf description default format
    minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems
    pattern additionalProperties title nullable""".split()
)
# Invisible characters: tags, bidirectional marks, zero-width and format characters.
_INVISIBLE = re.compile(
    "[\U000e0000-\U000e007f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad\x00-\x08\x0b-\x1f]"
)
OPEN: JsonObject = {"type": "object", "properties": {}}


def clean_description(text: str) -> str:
    """Remove invisible characters and truncate."""
    visible = _INVISIBLE.sub("", text).strip()
    return visible if len(visible) <= MOST_CHARS else visible[: MOST_CHARS - 1] + "…"


def clean_schema(schema: JsonObject) -> JsonObject:
    """Return an object schema without references and unknown keywords. An oversized schema becomes
    an open one; the server validates the arguments."""
    whole = _clean_node(schema, schema, 0, ())
    if not isinstance(whole, dict) or len(encode(whole)) > MOST_BYTES:
        return OPEN
    properties = whole.get("properties")
    whole = {**whole, "type": "object"}
    whole["properties"] = properties if isinstance(properties, dict) else {}
    for key in ("title", "anyOf", "oneOf", "allOf"):
        # Providers require plain properties at the top level.
        whole.pop(key, None)
    required = whole.get("required")
    if isinstance(required, list):
        whole["required"] = [name for name in required if name in whole["properties"]]
    return whole


def _clean_node(node: JsonValue, root: JsonObject, depth: int, trail: tuple[str, ...]) -> Any:
    if not isinstance(node, dict):
        return node
    if depth > _DEEPEST:
        return {}
    if isinstance(ref := node.get("$ref"), str):
        # A recursive schema is left open at the recursion.
        target = None if ref in trail else _resolve_ref(ref, root)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        merged = {**target, **rest} if isinstance(target, dict) else rest
        return _clean_node(merged, root, depth + 1, (*trail, ref))
    cleaned: JsonObject = {}
    for key, value in node.items():
        if key in _KEPT:
            cleaned[key] = _keyword(key, value, root, depth, trail)
    return cleaned


def _keyword(
    key: str, value: JsonValue, root: JsonObject, depth: int, trail: tuple[str, ...]
) -> JsonValue:
    match key, value:
        case "properties", dict():
            return {
                str(name): _clean_node(inner, root, depth + 1, trail)
                for name, inner in value.items()
            }
        case (("anyOf" | "oneOf" | "allOf"), list()):
            return [_clean_node(inner, root, depth + 1, trail) for inner in value]
        case (("items" | "additionalProperties"), dict()):
            return _clean_node(value, root, depth + 1, trail)
        case (("description" | "title"), str()):
            return clean_description(value)
        case "items", list():
            return _clean_node(value[0], root, depth + 1, trail) if value else {}
        case _:
            return value


def _resolve_ref(ref: str, root: JsonObject) -> JsonValue:
    """Resolve a local reference; None for others."""
    if not ref.startswith("#"):
        return None
    node: JsonValue = root
    for step in ref.lstrip("#").strip("/").split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if not key:
            continue
        if not isinstance(node, dict) or key not in node:
            return None
        node = node[key]
    return node


def texts_of(schema: JsonValue) -> list[str]:
    """Return all texts in a schema."""
    texts: list[str] = []
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("description", "title") and isinstance(value, str):
                texts.append(value)
            else:
                texts += texts_of(value)
    elif isinstance(schema, list):
        for value in schema:
            texts += [value] if isinstance(value, str) else texts_of(value)
    return texts


def without_texts(schema: JsonValue) -> Any:
    """Remove all texts from a schema."""
    if isinstance(schema, list):
        return [without_texts(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_texts(value)
        for key, value in schema.items()
        if not (key in ("description", "title", "default") and not isinstance(value, dict))
    }


def scan_description(text: str) -> tuple[str, bool]:
    """Return the reason why a text is suspicious, or "", and whether the text must be withheld."""
    from hermes.policy.scan.scanner import TextScanner  # loaded when a new server or plugin appears

    scanned = TextScanner().scan(text, "tool_description")
    if scanned.verdict == "safe":
        return "", False
    return scanned.findings[0].id, scanned.verdict == "dangerous"


LONGEST = 64
_DIGITS = 6


def tool_name(server: str, tool: str) -> str:
    """Return `mcp_<server>_<tool>` in characters that all providers accept."""
    whole = f"mcp_{server}_{tool}"
    plain = re.sub(r"[^A-Za-z0-9_]", "_", whole)
    return plain if len(plain) <= LONGEST else _with_suffix(plain, server, tool)


def tool_names(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a unique name for each tool. The first of equal names stays plain; others get a stable
    suffix."""
    named: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for server, tool in tools:
        name = tool_name(server, tool)
        if name in taken:
            name = _with_suffix(name, server, tool)
        taken.add(name)
        named[server, tool] = name
    return named


def _with_suffix(name: str, server: str, tool: str) -> str:
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_DIGITS]
    return f"{name[: LONGEST - _DIGITS - 1]}_{digest}"


LIST_RESOURCES, READ_RESOURCE = "list_resources", "read_resource"
LIST_PROMPTS, GET_PROMPT = "list_prompts", "get_prompt"
_VERSION = 1


class ListedTool(Value):
    """A server's tool, cleaned for models."""

    name: str
    description: str = ""
    schema: JsonObject = {}
    read_only: bool = False
    structured: bool = False
    utility: bool = False  # our own tool, for resources and prompts
    finding: str = ""  # what is suspicious in its description


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
            cached = decode(CachedListing, self._file(server.name).read_bytes())
        except (OSError, DecodeError):
            return None
        if cached.version != _VERSION or cached.fingerprint != server.fingerprint():
            return None
        return cached.listing

    def put(self, server: McpServer, listing: ToolListing) -> None:
        """Store a listing; failures are ignored, since it is a cache."""
        cached = CachedListing(version=_VERSION, fingerprint=server.fingerprint(), listing=listing)
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._file(server.name), encode(cached), durable=False)

    def drop(self, name: str) -> None:
        self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._folder / f"{file_name(name)}.json"


def file_name(server: str) -> str:
    """Convert a server name to a safe file name."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", server).strip(".")
    return plain or "_"


def select_tools(server: McpServer, listing: ToolListing) -> tuple[ListedTool, ...]:
    """Return the tools selected by the settings, then those for resources and prompts."""
    wanted = server.tools
    patterns = wanted.include or wanted.exclude
    tools = [
        tool
        for tool in listing.tools
        if any(fnmatchcase(tool.name, pattern) for pattern in patterns) == bool(wanted.include)
    ]
    if listing.resources and wanted.resources:
        tools += RESOURCE_TOOLS
    if listing.prompts and wanted.prompts:
        tools += PROMPT_TOOLS
    return tuple(tools)


def _utility(name: str, text: str, properties: JsonObject, required: list[str]) -> ListedTool:
    schema = {"type": "object", "properties": properties, "required": required}
    return ListedTool(name=name, description=text, schema=schema, read_only=True, utility=True)


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
