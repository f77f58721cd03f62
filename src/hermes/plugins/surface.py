"""Registrations of a plugin, checked against its manifest, and its tools."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

from hermes.codec.json import DecodeError, convert, encode
from hermes.codec.signature import GivenParameters
from hermes.codec.values import JsonObject, Value, replace
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


class Offer(Value):
    """Something that a plugin registers under a name."""

    name: str


class ToolOffer(Offer):
    """A tool that a plugin registers."""

    toolset: str = ""
    schema: JsonObject = {}
    requires_env: tuple[str, ...] = ()
    emoji: str = ""
    override: bool = False
    available: bool = True
    finding: str = ""  # what is suspicious in its description

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


class CommandOffer(Offer):
    description: str = ""
    args_hint: str = ""


class CliOffer(Offer):
    help: str = ""


class SkillOffer(Offer):
    path: str
    description: str = ""


class ImageOffer(Offer):
    display_name: str = ""
    available: bool = True
    models: list[JsonObject] = []
    default_model: str | None = None
    setup: JsonObject = {}
    capabilities: JsonObject = {}


class ServiceOffer(Offer):
    """A provider of a `kind` with its methods and facts."""

    kind: ServiceKind
    available: bool = True
    methods: tuple[str, ...] = ()
    facts: JsonObject = {}


class PlatformOffer(Offer):
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


def surface_of(raw: Any, plugin: FoundPlugin, scan: ScanText, clean: CleanSchema) -> Surface:
    """Decode and check registrations; raise ConfigError when undeclared. Descriptions are scanned,
    schemas cleaned."""
    try:
        surface = convert(Surface, raw)
    except DecodeError as error:
        raise ConfigError(f"Its registrations are not valid: {error}.") from error
    if not plugin.trusted:
        _check_declared(surface, plugin)
    _check_shapes(surface)
    return replace(surface, tools=tuple(_scan_tool(each, scan, clean) for each in surface.tools))


def _check_declared(surface: Surface, plugin: FoundPlugin) -> None:
    manifest = plugin.manifest
    assert manifest is not None
    registered = (
        *(("tool", each.name) for each in surface.tools),
        *(("hook", each.hook) for each in surface.hooks),
        *(("command", each.name) for each in surface.commands),
        *(("command", each.name) for each in surface.cli),
        *(("skill", each.name) for each in surface.skills),
    )
    for kind, name in registered:
        if name not in getattr(manifest, f"provides_{kind}s"):
            raise ConfigError(
                f"It registers the {kind} {name!r}, which `provides_{kind}s` does not list."
            )
    # The category that each provider requires.
    required = (
        *(("image_gen", "an image provider") for _ in surface.images),
        *((each.kind, f"the {each.kind} provider {each.name!r}") for each in surface.services),
        *(("platforms", f"the platform {each.name!r}") for each in surface.platforms),
    )
    for category, what in required:
        if plugin.category != category:
            raise ConfigError(f"It registers {what} without `category: {category}`.")


def _check_shapes(surface: Surface) -> None:
    if len(surface.tools) > MOST_TOOLS:
        raise ConfigError(f"It registers more than {MOST_TOOLS} tools.")
    named: tuple[tuple[str, str, Iterable[Offer]], ...] = (
        ("tool", TOOL_NAME, surface.tools),
        ("provider", PROVIDER_NAME, (*surface.services, *surface.platforms)),
        ("command", COMMAND_NAME, (*surface.commands, *surface.cli)),
    )
    for kind, pattern, offers in named:
        for each in offers:
            if not re.fullmatch(pattern, each.name):
                raise ConfigError(f"{each.name[:80]!r} is not a valid {kind} name.")
    for tool in surface.tools:
        if len(encode(tool.schema)) > MOST_SCHEMA_BYTES:
            raise ConfigError(f"The schema of {tool.name} is longer than {MOST_SCHEMA_BYTES}.")
        if not isinstance(tool.parameters.get("properties"), dict):
            raise ConfigError(f"The schema of {tool.name} has no properties.")


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
    """A tool of a plugin. Its output is untrusted unless the plugin is bundled. A `sealed` plugin
    cannot send its input anywhere."""

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
        description = self._offer.description[:MOST_CHARS]
        if self._offer.finding:
            description = f"[unverified: {self._offer.finding}] {description}"
        return ToolSpec(name=self.name, description=description, parameters=self._offer.parameters)

    def _effects(self, _place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
        yield CallServer(server=self._server, tool=self.name, arguments=encode(arguments).decode())

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        caller = PluginCaller(ctx.service(SessionId).id, ctx)
        failed = False
        try:
            running = await self._running()
            result = await running.call(
                "tool", self.name, arguments, seconds=self._seconds, caller=caller
            )
        except PluginFault as fault:
            result, failed = {"error": str(fault)}, True
        text = result if isinstance(result, str) else encode(result).decode()
        return ToolOutput(parts=(Text(text=text),), failed=failed, origin=self._origin)
