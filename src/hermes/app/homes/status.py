"""The state of a home on one page, for `hermes status` and for somebody who is asked for help."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from hermes.codec.json import encode
from hermes.config.secrets import masked, shown
from hermes.homes.backup import used_by
from hermes.homes.updating import installation
from hermes.models.explaining import explain_choice
from hermes.tools.toolbox import wanted_names
from hermes.version import __version__
from hermes.workspaces.terminal_settings import described

if TYPE_CHECKING:
    from hermes.app.build import App

# Section: what it says, by name.
Page = dict[str, dict[str, str]]

_PACKAGES = ("click", "msgspec", "prompt-toolkit", "rich", "ruamel.yaml", "wcwidth")


async def status(app: App) -> Page:
    """Nothing is made or contacted; secrets are masked."""
    home, settings = app.home, app.settings
    return {
        "Environment": environment_lines(app),
        "Model": _model(app),
        "Keys": {name: masked(app.config.secrets.get(name)) for name in app.config.secrets.names()},
        "Logins": await _logins(app),
        "Terminal": {
            "backend": settings.terminal.backend,
            "where": described(settings.terminal) or "commands run on this machine",
            "approvals": settings.approvals.mode,
            "undo": "on" if settings.checkpoints.enabled else "off",
        },
        "Tools": {
            "toolsets": ", ".join(settings.toolsets),
            "tools": ", ".join(wanted_names(settings)),
        },
        "Memory": await _memory(app),
        "Sessions": {**await _sessions(app), "open in": ", ".join(used_by(home)) or "nobody"},
    }


def environment_lines(app: App) -> dict[str, str]:
    here = installation()
    return {
        "hermes": __version__,
        "python": f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.prefix})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "installed": f"checkout at {here.place}" if here.kind == "checkout" else "package",
        "home": str(app.home.root),
        "profile": app.home.profile,
    }


def _model(app: App) -> dict[str, str]:
    why = explain_choice(app.models, app.config)
    if why.winner is None:
        return {"answers": "the offline assistant; `hermes model` chooses a model"}
    found = {
        "answers": f"{why.winner.model or 'its usual model'} ({why.winner.provider})",
        "because": why.winner.why,
    }
    return {**found, "problem": why.winner.problem} if why.winner.problem else found


async def _logins(app: App) -> dict[str, str]:
    rows = await app.models.accounts.rows()
    return {f"{row.provider} {row.label or row.id}": row.status for row in rows}


async def _memory(app: App) -> dict[str, str]:
    found = await app.memory.status()
    parts: dict[str, str] = {
        target: f"{part.entries} entries, {part.usage}" if part.is_on else "off"
        for target, part in found.parts.items()
    }
    return {**parts, "waiting": str(found.pending), "provider": found.provider or "none"}


async def _sessions(app: App) -> dict[str, str]:
    found = await app.library.stats()
    return {
        "sessions": str(found.sessions),
        "messages": str(found.messages),
        "bytes": f"{found.bytes:,}",
    }


async def dump(app: App, *, with_keys: bool) -> Page:
    """What somebody who helps needs to know, without secrets and without what was said. Only with
    `with_keys` are keys shown at all, and then masked."""
    whole = await status(app)
    keys = whole["Keys"] if with_keys else dict.fromkeys(whole["Keys"], "set")
    faults = [finding for finding in app.config.findings if finding.level != "ok"]
    return {
        "Environment": whole["Environment"],
        "Packages": packages(),
        "Model": whole["Model"],
        "Keys": keys,
        "Terminal": whole["Terminal"],
        "Tools": whole["Tools"],
        "Sessions": whole["Sessions"],
        "Changed settings": changed_settings(app),
        "Findings": {f"{number}": fault.text for number, fault in enumerate(faults, start=1)},
    }


def packages() -> dict[str, str]:
    return {name: _version(name) for name in _PACKAGES}


def changed_settings(app: App) -> dict[str, str]:
    """With where each comes from."""
    return {
        key: _text(app, key)
        for key in app.config.known_keys()
        if app.config.explain(key).source.kind != "default"
    }


def _text(app: App, key: str) -> str:
    held = app.config.explain(key)
    value = shown(held.value, secret=held.setting.secret)
    text = value if isinstance(value, str) else encode(value).decode()
    return f"{app.secrecy.line(text)}  ({held.source})"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
