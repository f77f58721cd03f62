"""Finds MCP servers in catalogues, and turns their `server.json` descriptions into settings."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import quote, urlencode

from hermes.codec.json import DecodeError, convert, decode
from hermes.codec.values import JsonObject, Value, replace
from hermes.config.extension_settings import McpServerSettings
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.mcp.listing import clean_description
from hermes.web.fetcher import JudgedHttp

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.net.http import HttpClient

_SHORT = r"[^A-Za-z0-9_-]+"


class InputField(Value, rename="camel"):
    """A value to fill in, or a fixed `value`."""

    name: str = ""
    description: str = ""
    value: str | None = None
    default: str | None = None
    choices: tuple[str, ...] = ()
    is_required: bool = False
    is_secret: bool = False
    # Placeholders `{name}` in the value.
    variables: dict[str, InputField] = {}


class Argument(InputField, rename="camel"):
    type: Literal["positional", "named"] = "positional"
    value_hint: str = ""
    is_repeated: bool = False


class Transport(Value):
    type: str = "stdio"
    url: str = ""


class ServerPackage(Value, rename="camel"):
    """A package to install and run."""

    registry_type: str
    identifier: str
    version: str = ""
    runtime_hint: str = ""
    transport: Transport = Transport()
    runtime_arguments: tuple[Argument, ...] = ()
    package_arguments: tuple[Argument, ...] = ()
    environment_variables: tuple[InputField, ...] = ()


class RemoteServer(Value):
    """A hosted server."""

    type: str
    url: str
    headers: tuple[InputField, ...] = ()
    variables: dict[str, InputField] = {}

    @property
    def url_field(self) -> InputField:
        return InputField(value=self.url, variables=self.variables)


class ServerDescription(Value, rename="camel"):
    name: str
    description: str = ""
    title: str = ""
    version: str = ""
    packages: tuple[ServerPackage, ...] = ()
    remotes: tuple[RemoteServer, ...] = ()

    @property
    def short_name(self) -> str:
        """Returns the default name for the settings."""
        return re.sub(_SHORT, "-", self.name.rpartition("/")[2]).strip("-_")[:32]

    def has(self, query: str) -> bool:
        """Return whether all words occur in the description."""
        text = f"{self.name} {self.title} {self.description}".lower()
        return all(word in text for word in query.lower().split())


# Must not look like an option or a path traversal.
_IDENTIFIER = r"@?[A-Za-z0-9][A-Za-z0-9._/:@-]*"
_VERSION = r"[A-Za-z0-9][A-Za-z0-9._+:-]*"
_PLACEHOLDER = r"\{(\w+)\}"
RUNNERS = {"npm": "npx", "pypi": "uvx", "oci": "docker"}
ADVICE = {
    "npx": "install Node.js",
    "uvx": "install uv",
    "docker": "install Docker or Podman",
}
InputValues = Mapping[str, Sequence[str]]


class InstallPlan(Value):
    """One way to use a server."""

    description: ServerDescription
    package: ServerPackage | None = None
    remote: RemoteServer | None = None

    @property
    def runner(self) -> str:
        """Returns the program that starts it; "" for a hosted server."""
        return RUNNERS[self.package.registry_type] if self.package else ""

    def inputs(self) -> dict[str, InputField]:
        """Return all inputs by name."""
        fields: list[InputField] = []
        if self.package is not None:
            fields += self.package.runtime_arguments
            fields += self.package.package_arguments
            fields += self.package.environment_variables
        if self.remote is not None:
            fields += (self.remote.url_field, *self.remote.headers)
        inputs: dict[str, InputField] = {}
        for field in fields:
            inputs |= _inputs(field)
        return inputs

    def missing(self, values: InputValues) -> list[InputField]:
        """Return required inputs without a value."""
        return [
            field
            for name, field in self.inputs().items()
            if field.is_required and field.default is None and not any(values.get(name, ()))
        ]

    def secrets(self) -> frozenset[str]:
        """Return variables and headers whose values must not be stored in the settings."""
        named = self.package.environment_variables if self.package else ()
        named = self.remote.headers if self.remote else named
        return frozenset(
            each.name
            for each in named
            if each.is_secret or any(inner.is_secret for inner in each.variables.values())
        )

    def settings(self, values: InputValues) -> JsonObject:
        """Return the settings for `mcp_servers.NAME`; raise UsageError for missing or unknown
        inputs."""
        known = self.inputs()
        if unknown := [name for name in values if name not in known]:
            named = ", ".join(known) or "nothing"
            raise UsageError(f"{unknown[0]!r} cannot be set; known inputs: {named}.")
        if left := self.missing(values):
            about = left[0].description or "required"
            raise UsageError(f"Give --set {left[0].name}=VALUE ({about}).")
        if self.package is not None:
            return _command_settings(self.package, values)
        assert self.remote is not None
        settings: JsonObject = {"url": _values(self.remote.url_field, values)[0]}
        if self.remote.type == "sse":
            settings["transport"] = "sse"
        if headers := _named_values(self.remote.headers, values):
            settings["headers"] = headers
        return settings


def plan_install(description: ServerDescription, *, remote: bool = False) -> InstallPlan:
    """Return the first supported package or, without one or with `remote`, the first hosted server.
    Raise UsageError when there is none."""
    if not remote:
        for package in description.packages:
            if package.registry_type in RUNNERS and package.transport.type == "stdio":
                if not re.fullmatch(_IDENTIFIER, package.identifier):
                    raise UsageError(f"{package.identifier!r} is not a valid package name.")
                if package.version and not re.fullmatch(_VERSION, package.version):
                    raise UsageError(f"{package.version!r} is not a valid version.")
                return InstallPlan(description=description, package=package)
    for server in description.remotes:
        if server.type in ("streamable-http", "sse") and server.url.startswith(("https:", "http:")):
            return InstallPlan(description=description, remote=server)
    kinds = sorted({package.registry_type for package in description.packages}) or ["no package"]
    raise UsageError(f"{description.name} cannot be installed; it offers only {', '.join(kinds)}.")


def _command_settings(package: ServerPackage, values: InputValues) -> JsonObject:
    env = _named_values(package.environment_variables, values)
    before = _arguments(package.runtime_arguments, values)
    after = _arguments(package.package_arguments, values)
    runner = RUNNERS[package.registry_type]
    match runner:
        case "npx":
            call = ["-y", *before, _at(package, "@")]
        case "uvx":
            call = [*before, _at(package, "@")]
        case _:
            variables = [word for name in env for word in ("-e", name)]
            image = package.identifier if ":" in package.identifier else _at(package, ":")
            call = ["run", "-i", "--rm", *variables, *before, image]
    return {"command": runner, "args": [*call, *after], **({"env": env} if env else {})}


def _at(package: ServerPackage, sign: str) -> str:
    return f"{package.identifier}{sign}{package.version}" if package.version else package.identifier


def _named_values(fields: Sequence[InputField], values: InputValues) -> dict[str, str]:
    return {field.name: found[0] for field in fields if (found := _values(field, values))}


def _arguments(arguments: Sequence[Argument], values: InputValues) -> list[str]:
    argv: list[str] = []
    for argument in arguments:
        found = _values(argument, values)
        for value in found if argument.is_repeated else found[:1]:
            if argument.type == "named":
                argv.append(argument.name)
            if value:
                argv.append(value)
    return argv


def _inputs(field: InputField) -> dict[str, InputField]:
    if field.value is not None:
        names = dict.fromkeys(re.findall(_PLACEHOLDER, field.value))
        known = {name: field.variables.get(name, InputField()) for name in names}
        return {name: replace(inner, name=name) for name, inner in known.items()}
    name = _name(field)
    return {name: replace(field, name=name)} if name else {}


def _name(field: InputField) -> str:
    hint = field.value_hint if isinstance(field, Argument) else ""
    return (hint or field.name).lstrip("-")


def _values(field: InputField, values: InputValues) -> list[str]:
    """Return the values of an input; none when it is omitted."""
    if field.value is None:
        return _input_values(field, _name(field), values)
    text = field.value
    for name, placeholder in _inputs(field).items():
        substitutes = _input_values(placeholder, name, values)
        if not substitutes and not placeholder.is_required:
            return []
        text = text.replace(f"{{{name}}}", substitutes[0])
    return [text]


def _input_values(field: InputField, name: str, values: InputValues) -> list[str]:
    chosen = [each for each in values.get(name, ()) if each]
    if not chosen and field.default is not None:
        chosen = [field.default]
    for each in chosen:
        if field.choices and each not in field.choices:
            raise UsageError(f"{name} must be one of {', '.join(field.choices)}.")
    return chosen


MAX_RESULTS = 50
T = TypeVar("T")


class _ShippedServers(Value):
    servers: tuple[ServerDescription, ...]


class _ListedServer(Value):
    server: ServerDescription


class _Page(Value):
    servers: tuple[_ListedServer, ...] = ()


class ServerCatalogue:
    def __init__(self, settings: Settings, http: HttpClient) -> None:
        self._registry = settings.mcp_registry.rstrip("/")
        proxied = bool(settings.network.proxy)
        self._client = JudgedHttp(http, {"registry": self._registry}, proxied=proxied)

    def list_shipped(self, query: str = "") -> list[ServerDescription]:
        """List the servers of the shipped catalogue."""
        raw = files("hermes.mcp.catalogue").joinpath("shipped.json").read_bytes()
        return [each for each in decode(_ShippedServers, raw).servers if each.has(query)]

    async def search_registry(self, query: str) -> list[ServerDescription]:
        """Search the registry. Its texts are cleaned, since anyone can publish there."""
        parameters = urlencode({"search": query, "version": "latest", "limit": MAX_RESULTS})
        page = await self._fetch(_Page, f"servers?{parameters}")
        return [_clean(each.server) for each in page.servers]

    async def find(self, name: str) -> ServerDescription:
        """Find a server by shipped name, JSON file, or registry name (with a `/`)."""
        if name.endswith(".json"):
            return await asyncio.to_thread(_read, name)
        known = {each.name: each for each in self.list_shipped()}
        if name in known:
            return known[name]
        if "/" in name:
            path = f"servers/{quote(name, safe='')}/versions/latest"
            return _clean((await self._fetch(_ListedServer, path)).server)
        raise NotFound(
            f"No server named {name!r} is known; `hermes mcp catalog` lists all, and "
            "`hermes mcp catalog --online WORDS` searches the registry.",
            near=tuple(known),
        )

    async def _fetch(self, kind: type[T], path: str) -> T:
        url = f"{self._registry}/v0.1/{path}"
        answer = await self._client.fetch(url, {"accept": "application/json"}, None)
        if answer.status == 404:
            raise NotFound("The registry has no server of that name; check the name.")
        if answer.status != 200:
            raise HermesError(f"The registry returned status {answer.status}; try again later.")
        try:
            return decode(kind, answer.body)
        except DecodeError as error:
            raise HermesError(
                f"Invalid response from {self._registry} ({error}); try again."
            ) from error


def _read(name: str) -> ServerDescription:
    file = Path(name).expanduser()
    try:
        return _clean(decode(ServerDescription, file.read_bytes()))
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}); check the path.") from error
    except DecodeError as error:
        raise UsageError(f"{file} does not describe a server: {error}.") from error


def _clean(each: ServerDescription) -> ServerDescription:
    return replace(
        each,
        name=clean_description(each.name),
        title=clean_description(each.title),
        description=clean_description(each.description),
    )


class CatalogueRow(Value):
    """A line of the catalogue."""

    name: str
    title: str
    description: str
    version: str
    how: str  # the program that starts the server, "address" if remote, "-" if it cannot be used
    needs: tuple[str, ...]


def catalogue_row(server: ServerDescription) -> CatalogueRow:
    how, needs = "-", tuple[str, ...]()
    with suppress(UsageError):
        plan = plan_install(server)
        how = plan.runner or "address"
        needs = tuple(value.name for value in plan.missing({}))
    return CatalogueRow(
        name=server.name,
        title=server.title,
        description=server.description,
        version=server.version or next((each.version for each in server.packages), ""),
        how=how,
        needs=needs,
    )


def install_settings(
    plan: InstallPlan, values: InputValues, *, untrusted: bool
) -> McpServerSettings:
    """Build the settings of a server. Raise UsageError when a value or the program that starts the
    server is missing."""
    settings = plan.settings(values)
    if plan.runner and shutil.which(plan.runner) is None:
        advice = ADVICE[plan.runner]
        raise UsageError(f"This needs `{plan.runner}`, which is not installed: {advice}.")
    try:
        return convert(McpServerSettings, settings | ({"trust": "untrusted"} if untrusted else {}))
    except DecodeError as error:
        raise UsageError(f"This server cannot be configured ({error}); choose another.") from error
