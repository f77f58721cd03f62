"""Finds MCP servers in catalogues and installs them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlencode

from hermes.codec.json import DecodeError, convert, decode
from hermes.codec.values import JsonObject, Value, replace
from hermes.config.extension_settings import McpServerSettings
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.mcp.admin import McpAdmin
from hermes.mcp.catalogue.install_plan import ADVICE, InstallPlan, ServerDescription, plan_install
from hermes.mcp.listing import clean_description
from hermes.web.fetcher import JudgedHttp

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.config.settings import Settings
    from hermes.mcp.listing import ToolListing
    from hermes.mcp.oauth.login import LoginScreen
    from hermes.net.http import HttpClient

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

    def list_shipped(self, words: str = "") -> list[ServerDescription]:
        """Lists the servers of the shipped catalogue."""
        raw = files("hermes.mcp.catalogue").joinpath("shipped.json").read_bytes()
        return [each for each in decode(_ShippedServers, raw).servers if each.has(words)]

    async def search_registry(self, words: str) -> list[ServerDescription]:
        """Searches the registry. Its texts are cleaned, since anyone can publish there."""
        query = urlencode({"search": words, "version": "latest", "limit": MAX_RESULTS})
        page = await self._fetch(_Page, f"servers?{query}")
        return [_clean(each.server) for each in page.servers]

    async def find(self, name: str) -> ServerDescription:
        """Finds a server by shipped name, JSON file, or registry name (with a `/`)."""
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
            raise NotFound("The registry has no server of that name.")
        if answer.status != 200:
            raise HermesError(f"The registry returned status {answer.status}; try again later.")
        try:
            return decode(kind, answer.body)
        except DecodeError as error:
            raise HermesError(f"Invalid response from {self._registry}: {error}.") from error


def _read(name: str) -> ServerDescription:
    file = Path(name).expanduser()
    try:
        return _clean(decode(ServerDescription, file.read_bytes()))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from error
    except DecodeError as error:
        raise UsageError(f"{file} does not describe a server: {error}.") from error


def _clean(each: ServerDescription) -> ServerDescription:
    return replace(
        each,
        name=clean_description(each.name),
        title=clean_description(each.title),
        description=clean_description(each.description),
    )


Given = Mapping[str, Sequence[str]]


class CatalogueRow(Value):
    """A line of the catalogue. `how` is the program that starts the server, "address" for a remote
    server, "-" for one that cannot be used."""

    name: str
    title: str
    description: str
    version: str
    how: str
    needs: tuple[str, ...]


class RequiredValue(Value):
    """A value that a server needs."""

    name: str
    description: str = ""
    secret: bool = False


def catalogue_row(server: ServerDescription) -> CatalogueRow:
    how, needs = "-", tuple[str, ...]()
    try:
        plan = plan_install(server)
    except UsageError:
        pass
    else:
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


class Installation:
    """The installation of one server."""

    def __init__(self, server: ServerDescription, *, remote: bool = False) -> None:
        self._plan: InstallPlan = plan_install(server, remote=remote)

    @property
    def name(self) -> str:
        return self._plan.description.short_name

    def needs(self, values: Given) -> list[RequiredValue]:
        """Lists missing values."""
        return [
            RequiredValue(name=each.name, description=each.description, secret=each.is_secret)
            for each in self._plan.missing(values)
        ]

    def settings(self, values: Given, *, untrusted: bool) -> McpServerSettings:
        """Raises UsageError when a value or the program that starts the server is missing."""
        settings: JsonObject = self._plan.settings(values)
        runner = self._plan.runner
        if runner and shutil.which(runner) is None:
            raise UsageError(f"This needs `{runner}`, which is not installed: {ADVICE[runner]}.")
        try:
            return convert(
                McpServerSettings, settings | ({"trust": "untrusted"} if untrusted else {})
            )
        except DecodeError as error:
            raise UsageError(f"This server cannot be configured: {error}.") from error

    async def add(
        self, run: RunContext, name: str, own: McpServerSettings, screen: LoginScreen
    ) -> ToolListing:
        return await McpAdmin(run).add(name, own, screen=screen, secrets=self._plan.secrets())
