"""Registrations of a plugin, checked against its manifest, and its tools."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from typing import Any, Literal

from hermes.codec.json import DecodeError, convert, encode
from hermes.codec.signature import GivenParameters
from hermes.codec.values import JsonObject, JsonValue, Value, replace
from hermes.core.effects import CallServer, Effect
from hermes.core.errors import ConfigError
from hermes.core.messages import Text
from hermes.core.prompt import ToolSpec
from hermes.core.tools import PathContext, Tool, ToolContext, ToolOutput
from hermes.plugins.discovery import FoundPlugin
from hermes.plugins.protocol import PluginCaller, PluginFault, RunningPlugin

TOOL_NAME = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
PROVIDER_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
COMMAND_NAME = r"[a-z][a-z0-9-]{0,31}"
MOST_SCHEMA_BYTES = 16_000
MOST_TOOLS = 64
MOST_CHARS = 2_000
ServiceKind = Literal["browser", "memory", "web", "tts", "stt"]
ScanText = Callable[[str], tuple[str, bool]]
CleanSchema = Callable[[JsonObject], JsonObject]


class ToolOffer(Value):
    """`finding` says what is suspicious in its description."""

    name: str
    toolset: str = ""
    schema: JsonObject = {}
    requires_env: tuple[str, ...] = ()
    emoji: str = ""
    override: bool = False
    available: bool = True
    finding: str = ""

    @property
    def description(self) -> str:
        return str(self.schema.get("description", ""))

    @property
    def parameters(self) -> JsonObject:
        """Accepts bare parameters or a full tool schema."""
        inner = self.schema.get("parameters")
        own = inner if isinstance(inner, dict) else self.schema
        left = {key: value for key, value in own.items() if key not in ("name", "description")}
        return {"properties": {}, **left, "type": "object"}


class HookOffer(Value):
    hook: str
    priority: int = 100
    timeout: float | None = None
    fail_closed: bool = False


class CommandOffer(Value):
    name: str
    description: str = ""
    args_hint: str = ""


class CliOffer(Value):
    name: str
    help: str = ""


class SkillOffer(Value):
    name: str
    path: str
    description: str = ""


class ImageOffer(Value):
    name: str
    display_name: str = ""
    available: bool = True
    models: list[JsonObject] = []
    default_model: str | None = None
    setup: JsonObject = {}
    capabilities: JsonObject = {}


class ServiceOffer(Value):
    """A provider of a `kind` with its methods and facts."""

    kind: ServiceKind
    name: str
    available: bool = True
    methods: tuple[str, ...] = ()
    facts: JsonObject = {}


class PlatformOffer(Value):
    name: str
    label: str = ""
    available: bool = True
    required_env: tuple[str, ...] = ()
    install_hint: str = ""
    allowed_users_env: str = ""
    allow_all_env: str = ""
    max_message_length: int = 0
    emoji: str = ""
    platform_hint: str = ""


class Surface(Value):
    tools: tuple[ToolOffer, ...] = ()
    hooks: tuple[HookOffer, ...] = ()
    commands: tuple[CommandOffer, ...] = ()
    cli: tuple[CliOffer, ...] = ()
    skills: tuple[SkillOffer, ...] = ()
    images: tuple[ImageOffer, ...] = ()
    engines: tuple[str, ...] = ()
    services: tuple[ServiceOffer, ...] = ()
    platforms: tuple[PlatformOffer, ...] = ()

    def services_of(self, kind: ServiceKind) -> Iterator[ServiceOffer]:
        """Yields its providers of one kind."""
        return (each for each in self.services if each.kind == kind)


def surface_of(raw: Any, found: FoundPlugin, scan: ScanText, clean: CleanSchema) -> Surface:
    """Decodes and checks registrations; ConfigError when undeclared. Descriptions are scanned,
    schemas cleaned."""
    try:
        surface = convert(Surface, raw)
    except DecodeError as error:
        raise ConfigError(f"Its registrations are not valid: {error}.") from error
    if not found.trusted:
        _check_declared(surface, found)
    _check_shapes(surface)
    return replace(surface, tools=tuple(_scan_tool(each, scan, clean) for each in surface.tools))


def _check_declared(surface: Surface, found: FoundPlugin) -> None:
    manifest = found.manifest
    assert manifest is not None
    pairs: tuple[tuple[str, Iterable[str], Collection[str], str], ...] = (
        ("tool", (e.name for e in surface.tools), manifest.provides_tools, "provides_tools"),
        ("hook", (e.hook for e in surface.hooks), manifest.provides_hooks, "provides_hooks"),
        ("command", (e.name for e in surface.commands), manifest.provides_commands,
         "provides_commands"),
        ("command", (e.name for e in surface.cli), manifest.provides_commands,
         "provides_commands"),
        ("skill", (e.name for e in surface.skills), manifest.provides_skills, "provides_skills"),
    )  # fmt: skip
    for kind, names, declared, key in pairs:
        for name in names:
            if name not in declared:
                raise ConfigError(f"It registers the {kind} {name!r}, which `{key}` does not list.")
    for category, what in _categories(surface):
        if found.category != category:
            raise ConfigError(f"It registers {what} without `category: {category}`.")


def _categories(surface: Surface) -> Iterator[tuple[str, str]]:
    """Yields the category that each provider requires."""
    if surface.images:
        yield "image_gen", "an image provider"
    for each in surface.services:
        yield each.kind, f"the {each.kind} provider {each.name!r}"
    for platform in surface.platforms:
        yield "platforms", f"the platform {platform.name!r}"


def _check_shapes(surface: Surface) -> None:
    if len(surface.tools) > MOST_TOOLS:
        raise ConfigError(f"It registers more than {MOST_TOOLS} tools.")
    for tool in surface.tools:
        if not re.fullmatch(TOOL_NAME, tool.name):
            raise ConfigError(f"{tool.name[:80]!r} is not a valid tool name.")
        if len(encode(tool.schema)) > MOST_SCHEMA_BYTES:
            raise ConfigError(f"The schema of {tool.name} is longer than {MOST_SCHEMA_BYTES}.")
        if not isinstance(tool.parameters.get("properties"), dict):
            raise ConfigError(f"The schema of {tool.name} has no properties.")
    providers = [each.name for each in surface.services]
    for name in (*providers, *(each.name for each in surface.platforms)):
        if not re.fullmatch(PROVIDER_NAME, name):
            raise ConfigError(f"{name[:80]!r} is not a valid provider name.")
    names = [each.name for each in surface.commands] + [each.name for each in surface.cli]
    for name in names:
        if not re.fullmatch(COMMAND_NAME, name):
            raise ConfigError(f"{name[:80]!r} is not a valid command name.")


def _scan_tool(tool: ToolOffer, scan: ScanText, clean: CleanSchema) -> ToolOffer:
    finding, dangerous = scan(tool.description[:MOST_CHARS] + encode(tool.parameters).decode())
    if dangerous:
        raise ConfigError(
            f"The description of {tool.name} looks like a prompt injection ({finding})."
        )
    schema = {"description": tool.description, "parameters": clean(tool.parameters)}
    return replace(tool, finding=finding, schema=schema)


PREFIX = "plugin:"
# Marks plugins that may pass on their input.
OPEN = " (open)"


class SessionId:
    """The session that a tool runs in, set by the application."""

    def __init__(self, id: str = "") -> None:
        self.id = id


class PluginTool(Tool):
    """Output is untrusted unless the plugin is bundled. A `sealed` plugin cannot pass its input
    on."""

    def __init__(
        self,
        plugin: str,
        offer: ToolOffer,
        running: Callable[[], Awaitable[RunningPlugin]],
        *,
        seconds: float,
        trusted: bool = False,
        sealed: bool = False,
    ) -> None:
        self.name = offer.name
        self.description = offer.description
        self.parameters = GivenParameters(offer.parameters)
        self.effects = self._effects
        self.repeat = "never"
        self.interactive = False
        self._origin = "workspace" if trusted else PREFIX + plugin
        self._server = PREFIX + plugin + ("" if sealed else OPEN)
        self._offer = offer
        self._running = running
        self._seconds = seconds

    @property
    def spec(self) -> ToolSpec:
        words = self._offer.description[:MOST_CHARS]
        if self._offer.finding:
            words = f"[unverified: {self._offer.finding}] {words}"
        return ToolSpec(name=self.name, description=words, parameters=self._offer.parameters)

    def _effects(self, _place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
        yield CallServer(server=self._server, tool=self.name, arguments=encode(arguments).decode())

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        caller = PluginCaller(ctx.service(SessionId).id, ctx)
        try:
            running = await self._running()
            result = await running.call(
                "tool", self.name, arguments, seconds=self._seconds, caller=caller
            )
        except PluginFault as fault:
            text = encode({"error": str(fault)}).decode()
            return ToolOutput(parts=(Text(text=text),), failed=True, origin=self._origin)
        return ToolOutput(parts=(Text(text=_words(result)),), origin=self._origin)


def _words(result: JsonValue) -> str:
    return result if isinstance(result, str) else encode(result).decode()
