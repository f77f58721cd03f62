"""Servers of the catalogue as surfaces show and install them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value
from hermes.config.extension_settings import McpServerSettings
from hermes.core.errors import UsageError
from hermes.mcp.admin import McpAdmin
from hermes.mcp.catalogue.install_plan import ADVICE, InstallPlan, ServerDescription, plan_install

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.mcp.listing import ToolListing
    from hermes.mcp.oauth.login import LoginScreen

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
