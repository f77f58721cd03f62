"""What a longer look adds to the page of a home: all that is set up, and whether it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.config.diagnostics import Diagnostic
from hermes.core.errors import HermesError
from hermes.homes.health import index_findings, journal_findings
from hermes.homes.status import Page, changed_settings, packages
from hermes.models.choice import IN_PROCESS
from hermes.models.explaining import explain_choice
from hermes.models.shelf import ModelBrowser

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.homes.status import StatusSources


async def full_status(parts: StatusSources, plugins: Mapping[str, str]) -> Page:
    """All that is set up, used or not; `plugins` are their states. Nothing is contacted."""
    from hermes.mcp.admin import McpAdmin as Servers

    return {
        "Providers": {
            row.name: "usable" if row.usable else _lack(row.problem)
            for row in ModelBrowser(parts.models).providers()
        },
        "Servers": {row.name: _server(row.enabled, row.fault) for row in Servers(parts.run).rows()},
        "Plugins": dict(plugins),
        "Changed settings": changed_settings(parts.run),
        "Packages": packages(),
    }


async def deep_checks(parts: StatusSources) -> Page:
    """The model's provider is asked for its list, and every record is read once."""
    found = [*await journal_findings(parts.run.home), *await index_findings(parts.run.home)]
    return {"Checks": {"model": await _model(parts), "sessions": _words(found)}}


async def _model(parts: StatusSources) -> str:
    winner = explain_choice(parts.models, parts.run.config).winner
    if winner is None or winner.provider in IN_PROCESS:
        return "answers inside this process"
    if winner.problem:
        return winner.problem
    began = parts.run.world.clock.monotonic()
    try:
        cards = await ModelBrowser(parts.models).cards(winner.provider, refresh=True)
    except HermesError as error:
        return str(error)
    if cards.problem:
        return cards.problem
    took = (parts.run.world.clock.monotonic() - began) * 1000
    return f"{winner.provider} answers ({len(cards.cards)} models, {took:.0f} ms)"


def _lack(problem: str) -> str:
    """Without the advice that would repeat in every line."""
    return problem.partition(";")[0].rpartition(", and ")[2].rstrip(".")


def _server(enabled: bool, fault: str) -> str:
    return fault or ("on" if enabled else "off")


def _words(findings: list[Diagnostic]) -> str:
    return "; ".join(f"{each.text} ({each.fix})" if each.fix else each.text for each in findings)
