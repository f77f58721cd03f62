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

MOST = 50
T = TypeVar("T")


class _Known(Value):
    servers: tuple[ServerDescription, ...]


class _Listed(Value):
    server: ServerDescription


class _Page(Value):
    servers: tuple[_Listed, ...] = ()


class ServerCatalogue:
    def __init__(self, settings: Settings, http: HttpClient) -> None:
        self._registry = settings.mcp_registry.rstrip("/")
        proxied = bool(settings.network.proxy)
        self._way = JudgedHttp(http, {"registry": self._registry}, proxied=proxied)

    def shipped(self, words: str = "") -> list[ServerDescription]:
        """Those that come with the program."""
        raw = files("hermes.mcp.catalogue").joinpath("shipped.json").read_bytes()
        return [each for each in decode(_Known, raw).servers if each.has(words)]

    async def online(self, words: str) -> list[ServerDescription]:
        """Those of the registry; what it says is cleaned, since anybody may write there."""
        asked = urlencode({"search": words, "version": "latest", "limit": MOST})
        page = await self._fetch(_Page, f"servers?{asked}")
        return [_clean(each.server) for each in page.servers]

    async def find(self, name: str) -> ServerDescription:
        """By a name that is known, a file, or a name of the registry, which has a `/`."""
        if name.endswith(".json"):
            return await asyncio.to_thread(_read, name)
        known = {each.name: each for each in self.shipped()}
        if name in known:
            return known[name]
        if "/" in name:
            where = f"servers/{quote(name, safe='')}/versions/latest"
            return _clean((await self._fetch(_Listed, where)).server)
        raise NotFound(
            f"No server named {name!r} is known; `hermes mcp catalog` shows all, and "
            "`hermes mcp catalog --online WORDS` looks in the registry.",
            near=tuple(known),
        )

    async def _fetch(self, kind: type[T], where: str) -> T:
        url = f"{self._registry}/v0.1/{where}"
        answer = await self._way.fetch(url, {"accept": "application/json"}, None)
        if answer.status == 404:
            raise NotFound("The registry has no server of that name.")
        if answer.status != 200:
            raise HermesError(f"The registry answers with {answer.status}; try again later.")
        try:
            return decode(kind, answer.body)
        except DecodeError as error:
            raise HermesError(f"What {self._registry} says is not understood: {error}.") from error


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
    """One line of the catalogue. `how` is the program that starts it, "address" for one that runs
    elsewhere, "-" for one that cannot be used here."""

    name: str
    title: str
    description: str
    version: str
    how: str
    needs: tuple[str, ...]


class RequiredValue(Value):
    """Something that a server must be told."""

    name: str
    words: str = ""
    secret: bool = False


def catalogue_row(described: ServerDescription) -> CatalogueRow:
    how, needs = "-", tuple[str, ...]()
    try:
        plan = plan_install(described)
    except UsageError:
        pass
    else:
        how = plan.runner or "address"
        needs = tuple(blank.name for blank in plan.missing({}))
    return CatalogueRow(
        name=described.name,
        title=described.title,
        description=described.description,
        version=described.version or next((each.version for each in described.packages), ""),
        how=how,
        needs=needs,
    )


class Installation:
    """One server on its way into the settings."""

    def __init__(self, described: ServerDescription, *, remote: bool = False) -> None:
        self._plan: InstallPlan = plan_install(described, remote=remote)

    @property
    def name(self) -> str:
        return self._plan.description.short_name

    def needs(self, given: Given) -> list[RequiredValue]:
        """What is left to be told."""
        return [
            RequiredValue(name=each.name, words=each.description, secret=each.is_secret)
            for each in self._plan.missing(given)
        ]

    def settings(self, given: Given, *, untrusted: bool) -> McpServerSettings:
        """UsageError when something is missing, here or in what was given."""
        told: JsonObject = self._plan.settings(given)
        runner = self._plan.runner
        if runner and shutil.which(runner) is None:
            raise UsageError(f"This needs `{runner}`, which is not here: {ADVICE[runner]}.")
        try:
            return convert(McpServerSettings, told | ({"trust": "untrusted"} if untrusted else {}))
        except DecodeError as error:
            raise UsageError(f"This server cannot be described here: {error}.") from error

    async def add(
        self, run: RunContext, name: str, own: McpServerSettings, screen: LoginScreen
    ) -> ToolListing:
        return await McpAdmin(run).add(name, own, screen=screen, secrets=self._plan.secrets())
