"""What a longer look adds to the page of a home: all that is set up, and whether it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.app.homes.health import index_findings, journal_findings
from hermes.app.homes.status import Page, changed_settings, packages
from hermes.config.findings import Finding
from hermes.core.errors import HermesError
from hermes.models.choice import WITHIN
from hermes.models.explaining import explain_choice
from hermes.models.shelf import Shelf

if TYPE_CHECKING:
    from hermes.app.build import App


async def everything(app: App) -> Page:
    """All that is set up, whether it is used now or not. Nobody is contacted."""
    from hermes.app.plugins.desk import Desk as Plugins
    from hermes.mcp.admin import Desk as Servers

    await app.plugged.offer()
    return {
        "Providers": {
            row.name: "usable" if row.usable else _lack(row.problem)
            for row in Shelf(app.models).providers()
        },
        "Servers": {row.name: _server(row.enabled, row.fault) for row in Servers(app.run).rows()},
        "Plugins": {row.key: row.fault or row.state for row in Plugins(app).rows()},
        "Changed settings": changed_settings(app),
        "Packages": packages(),
    }


async def tried(app: App) -> Page:
    """The model's provider is asked for its list, and every record is read once."""
    found = [*await journal_findings(app.home), *await index_findings(app.home)]
    return {"Checks": {"model": await _model(app), "sessions": _words(found)}}


async def _model(app: App) -> str:
    winner = explain_choice(app.models, app.config).winner
    if winner is None or winner.provider in WITHIN:
        return "answers inside this process"
    if winner.problem:
        return winner.problem
    began = app.world.clock.monotonic()
    try:
        cards = await Shelf(app.models).cards(winner.provider, refresh=True)
    except HermesError as error:
        return str(error)
    if cards.problem:
        return cards.problem
    took = (app.world.clock.monotonic() - began) * 1000
    return f"{winner.provider} answers ({len(cards.cards)} models, {took:.0f} ms)"


def _lack(problem: str) -> str:
    """Without the advice that would repeat in every line."""
    return problem.partition(";")[0].rpartition(", and ")[2].rstrip(".")


def _server(enabled: bool, fault: str) -> str:
    return fault or ("on" if enabled else "off")


def _words(findings: list[Finding]) -> str:
    return "; ".join(f"{each.text} ({each.fix})" if each.fix else each.text for each in findings)
