"""The status report of a home, and deeper checks on request."""

from __future__ import annotations

import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol

from hermes.codec.json import encode
from hermes.config.environment import display_value, mask
from hermes.core.errors import HermesError
from hermes.homes.backup import used_by
from hermes.homes.health import index_findings, journal_findings
from hermes.homes.installation import installation
from hermes.models.browser import ModelBrowser, explain_choice, find_answer
from hermes.models.model_ref import IN_PROCESS
from hermes.tools.toolbox import wanted_names
from hermes.version import __version__
from hermes.workspaces.shell import describe_backend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.run_context import RunContext
    from hermes.journal.archive import SessionArchive
    from hermes.journal.journal import SqliteJournal
    from hermes.memory.service import MemoryService
    from hermes.models.models import Models

# Section name -> entry name -> text.
Page = dict[str, dict[str, str]]

_PACKAGES = ("click", "msgspec", "prompt-toolkit", "rich", "ruamel.yaml", "wcwidth")


class StatusSources(Protocol):
    """What the status report reads; an App provides all of it."""

    @property
    def context(self) -> RunContext: ...
    @property
    def models(self) -> Models: ...
    @property
    def memory(self) -> MemoryService: ...
    @property
    def archive(self) -> SessionArchive: ...
    @property
    def journal(self) -> SqliteJournal: ...


async def status(parts: StatusSources) -> Page:
    """Build the status page. Creates nothing; secrets are masked. Contacts only a server that must
    be asked which model answers."""
    run = parts.context
    home, settings = run.home, run.settings
    sessions, memory = await parts.archive.stats(), await parts.memory.status()
    answer = await find_answer(parts.models, run.config)
    model = {"answers": answer.describe(), "because": answer.why, "problem": answer.problem}
    model = {name: text for name, text in model.items() if text}
    return {
        "Environment": environment_lines(run),
        "Model": model,
        "Keys": {name: mask(run.config.secrets.get(name)) for name in run.config.secrets.names()},
        "Logins": {
            f"{row.provider} {row.label or row.id}": row.status
            for row in await parts.models.accounts.rows()
        },
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
        "Memory": {
            **{
                target: f"{part.entries} entries, {part.usage}" if part.is_on else "off"
                for target, part in memory.parts.items()
            },
            "waiting": str(memory.pending),
            "provider": memory.provider or "none",
        },
        "Sessions": {
            "sessions": str(sessions.sessions),
            "messages": str(sessions.messages),
            "bytes": f"{sessions.bytes:,}",
            "open in": ", ".join(used_by(home)) or "none",
        },
        "Jobs": await job_lines(parts),
        "Started work": await started_lines(parts),
    }


async def started_lines(parts: StatusSources) -> dict[str, str]:
    """List goals that are not reached, and background tasks that have not reported."""
    from hermes.delegation.background import owed_children
    from hermes.delegation.goals import describe

    goals = {
        session_id: describe(goal)
        for session_id, goal in (await parts.archive.goals()).items()
        if goal.state in ("active", "blocked", "exhausted")
    }
    owed = {
        each.id: f"background task of {each.owner}, not reported; `hermes -r {each.owner}` goes on"
        for each in await owed_children(parts.journal)
    }
    return {**goals, **owed}


async def job_lines(parts: StatusSources) -> dict[str, str]:
    """Say whether scheduled jobs run, and what they owe."""
    from hermes.cron.service import CronService

    state = await CronService(parts.context, parts.journal).state()
    running = "running" if state.running else "not running; `hermes cron run` starts it"
    lines = {"scheduler": running, "jobs": str(state.jobs)}
    if state.next_run_at:
        lines["next"] = f"{state.next_job} at {state.next_run_at}"
    if state.unknown:
        lines["unknown outcome"] = f"{len(state.unknown)}; `hermes cron status` lists them"
    if owed := len(state.undelivered) + len(state.waiting):
        lines["undelivered"] = f"{owed}; `hermes cron status` lists them"
    return lines


def environment_lines(run: RunContext) -> dict[str, str]:
    here = installation()
    return {
        "hermes": __version__,
        "python": f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.prefix})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "installed": here.describe(),
        "home": str(run.home.root),
        "profile": run.home.profile,
    }


async def dump(parts: StatusSources, *, with_keys: bool) -> Page:
    """Build a report for support, without secrets and without messages. Keys are listed, masked,
    only with `with_keys`."""
    whole = await status(parts)
    keys = whole["Keys"] if with_keys else dict.fromkeys(whole["Keys"], "set")
    faults = [finding for finding in parts.context.config.diagnostics if finding.level != "ok"]
    return {
        "Environment": whole["Environment"],
        "Packages": packages(),
        "Model": whole["Model"],
        "Keys": keys,
        "Terminal": whole["Terminal"],
        "Tools": whole["Tools"],
        "Sessions": whole["Sessions"],
        "Changed settings": changed_settings(parts.context),
        "Findings": {f"{number}": fault.text for number, fault in enumerate(faults, start=1)},
    }


def packages() -> dict[str, str]:
    found = dict.fromkeys(_PACKAGES, "not installed")
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def changed_settings(run: RunContext) -> dict[str, str]:
    """Return the changed settings, each with its source."""
    changed: dict[str, str] = {}
    for key in run.config.known_keys():
        setting = run.config.explain(key)
        if setting.source.kind != "default":
            value = display_value(setting.value, secret=setting.setting.secret)
            text = value if isinstance(value, str) else encode(value).decode()
            changed[key] = f"{run.redactor.line(text)}  ({setting.source})"
    return changed


async def full_status(parts: StatusSources, plugins: Mapping[str, str]) -> Page:
    """Build a page with everything that is configured, used or not; `plugins` maps names to states.
    Makes no requests."""
    from hermes.mcp.admin import McpAdmin

    return {
        "Providers": {
            # Without the advice, which would repeat on every line.
            row.name: "usable"
            if row.usable
            else row.problem.partition(";")[0].rpartition(", and ")[2].rstrip(".")
            for row in ModelBrowser(parts.models).providers()
        },
        "Servers": {
            row.name: row.fault or ("on" if row.enabled else "off")
            for row in McpAdmin(parts.context).rows()
        },
        "Plugins": dict(plugins),
        "Changed settings": changed_settings(parts.context),
        "Packages": packages(),
    }


async def deep_checks(parts: StatusSources) -> Page:
    """Request the provider's model list, and read every journal record once."""
    found = [*await journal_findings(parts.context.home), *await index_findings(parts.context.home)]
    findings = "; ".join(f"{each.text} ({each.fix})" if each.fix else each.text for each in found)
    winner = explain_choice(parts.models, parts.context.config).winner
    if winner is None or winner.provider in IN_PROCESS:
        model = "runs in this process"
    elif not (model := winner.problem):
        clock = parts.context.world.clock
        started = clock.monotonic()
        try:
            listed = await ModelBrowser(parts.models).cards(winner.provider, refresh=True)
            count, elapsed = len(listed.cards), (clock.monotonic() - started) * 1000
            answers = f"{winner.provider} answers ({count} models, {elapsed:.0f} ms)"
            model = listed.problem or answers
        except HermesError as error:
            model = str(error)
    return {"Checks": {"model": model, "sessions": findings}}
