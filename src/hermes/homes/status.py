"""The status report of a home, and deeper checks on request."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol

from hermes.codec.json import encode
from hermes.config.diagnostics import Diagnostic
from hermes.config.environment import display_value, mask
from hermes.core.errors import HermesError
from hermes.homes.backup import used_by
from hermes.homes.health import index_findings, journal_findings
from hermes.homes.installation import installation
from hermes.models.browser import ModelBrowser
from hermes.models.explanation import explain_choice
from hermes.models.model_ref import IN_PROCESS
from hermes.tools.toolbox import wanted_names
from hermes.version import __version__
from hermes.workspaces.shell import describe_backend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.load import Config
    from hermes.config.run_context import RunContext
    from hermes.journal.archive import SessionArchive
    from hermes.memory.service import MemoryService
    from hermes.models.models import Models

# Section name -> entry name -> text.
Page = dict[str, dict[str, str]]

_PACKAGES = ("click", "msgspec", "prompt-toolkit", "rich", "ruamel.yaml", "wcwidth")


class StatusSources(Protocol):
    """What the status report reads; an App provides all of it."""

    @property
    def run(self) -> RunContext: ...
    @property
    def models(self) -> Models: ...
    @property
    def memory(self) -> MemoryService: ...
    @property
    def archive(self) -> SessionArchive: ...


async def status(parts: StatusSources) -> Page:
    """Creates and contacts nothing; secrets are masked."""
    run = parts.run
    home, settings = run.home, run.settings
    return {
        "Environment": environment_lines(run),
        "Model": _model(parts.models, run.config),
        "Keys": {name: mask(run.config.secrets.get(name)) for name in run.config.secrets.names()},
        "Logins": await _logins(parts.models),
        "Terminal": {
            "backend": settings.terminal.backend,
            "where": describe_backend(settings.terminal) or "commands run on this machine",
            "approvals": settings.approvals.mode,
            "undo": "on" if settings.checkpoints.enabled else "off",
        },
        "Tools": {
            "toolsets": ", ".join(settings.toolsets),
            "tools": ", ".join(wanted_names(settings)),
        },
        "Memory": await _memory(parts.memory),
        "Sessions": {
            **await _sessions(parts.archive),
            "open in": ", ".join(used_by(home)) or "none",
        },
    }


def environment_lines(run: RunContext) -> dict[str, str]:
    here = installation()
    return {
        "hermes": __version__,
        "python": f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.prefix})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "installed": f"checkout at {here.path}" if here.kind == "checkout" else "package",
        "home": str(run.home.root),
        "profile": run.home.profile,
    }


def _model(models: Models, config: Config) -> dict[str, str]:
    why = explain_choice(models, config)
    if why.winner is None:
        return {"answers": "the offline assistant; `hermes model` selects a model"}
    found = {
        "answers": f"{why.winner.model or 'its default model'} ({why.winner.provider})",
        "because": why.winner.why,
    }
    return {**found, "problem": why.winner.problem} if why.winner.problem else found


async def _logins(models: Models) -> dict[str, str]:
    rows = await models.accounts.rows()
    return {f"{row.provider} {row.label or row.id}": row.status for row in rows}


async def _memory(memory: MemoryService) -> dict[str, str]:
    found = await memory.status()
    parts: dict[str, str] = {
        target: f"{part.entries} entries, {part.usage}" if part.is_on else "off"
        for target, part in found.parts.items()
    }
    return {**parts, "waiting": str(found.pending), "provider": found.provider or "none"}


async def _sessions(archive: SessionArchive) -> dict[str, str]:
    found = await archive.stats()
    return {
        "sessions": str(found.sessions),
        "messages": str(found.messages),
        "bytes": f"{found.bytes:,}",
    }


async def dump(parts: StatusSources, *, with_keys: bool) -> Page:
    """A report for support, without secrets and without messages. Keys are listed, masked, only
    with `with_keys`."""
    whole = await status(parts)
    keys = whole["Keys"] if with_keys else dict.fromkeys(whole["Keys"], "set")
    faults = [finding for finding in parts.run.config.diagnostics if finding.level != "ok"]
    return {
        "Environment": whole["Environment"],
        "Packages": packages(),
        "Model": whole["Model"],
        "Keys": keys,
        "Terminal": whole["Terminal"],
        "Tools": whole["Tools"],
        "Sessions": whole["Sessions"],
        "Changed settings": changed_settings(parts.run),
        "Findings": {f"{number}": fault.text for number, fault in enumerate(faults, start=1)},
    }


def packages() -> dict[str, str]:
    return {name: _version(name) for name in _PACKAGES}


def changed_settings(run: RunContext) -> dict[str, str]:
    """With the source of each."""
    return {
        key: _text(run, key)
        for key in run.config.known_keys()
        if run.config.explain(key).source.kind != "default"
    }


def _text(run: RunContext, key: str) -> str:
    setting = run.config.explain(key)
    value = display_value(setting.value, secret=setting.setting.secret)
    text = value if isinstance(value, str) else encode(value).decode()
    return f"{run.redactor.line(text)}  ({setting.source})"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


async def full_status(parts: StatusSources, plugins: Mapping[str, str]) -> Page:
    """Everything that is configured, used or not; `plugins` maps names to states. Makes no
    requests."""
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
    """Requests the provider's model list and reads every journal record once."""
    found = [*await journal_findings(parts.run.home), *await index_findings(parts.run.home)]
    return {"Checks": {"model": await _check_model(parts), "sessions": _words(found)}}


async def _check_model(parts: StatusSources) -> str:
    winner = explain_choice(parts.models, parts.run.config).winner
    if winner is None or winner.provider in IN_PROCESS:
        return "runs in this process"
    if winner.problem:
        return winner.problem
    started = parts.run.world.clock.monotonic()
    try:
        cards = await ModelBrowser(parts.models).cards(winner.provider, refresh=True)
    except HermesError as error:
        return str(error)
    if cards.problem:
        return cards.problem
    elapsed = (parts.run.world.clock.monotonic() - started) * 1000
    return f"{winner.provider} answers ({len(cards.cards)} models, {elapsed:.0f} ms)"


def _lack(problem: str) -> str:
    """Without the advice, which would repeat on every line."""
    return problem.partition(";")[0].rpartition(", and ")[2].rstrip(".")


def _server(enabled: bool, fault: str) -> str:
    return fault or ("on" if enabled else "off")


def _words(findings: list[Diagnostic]) -> str:
    return "; ".join(f"{each.text} ({each.fix})" if each.fix else each.text for each in findings)
