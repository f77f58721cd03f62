"""How the plugins of a home do: each one started and asked, or looked at from outside only."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import Value, replace
from hermes.config.findings import Finding, fine, warning
from hermes.config.load import Config
from hermes.config.run_context import RunContext
from hermes.config.secrets import environment
from hermes.core.errors import HermesError
from hermes.core.world import World
from hermes.credentials.redaction import Secrecy
from hermes.plugins.cell import PluginCell, confines
from hermes.plugins.found import Found
from hermes.plugins.plugins import Plugins, State
from hermes.plugins.room import MEGABYTE, overfull, size_of
from hermes.plugins.rules import Rules
from hermes.plugins.running import PluginFault
from hermes.plugins.serving import NOBODY, Serving

SECONDS = 10


class Check(Value):
    """How one plugin does."""

    key: str
    ok: bool
    words: str


async def check_all(plugins: Plugins) -> list[Check]:
    """Starts every plugin of others that is on and waits for its answer."""
    others = [state for state in plugins.states if not state.found.trusted]
    checks = [_outside(state) for state in others if state.status not in ("on", "off")]
    own = [state for state in plugins.usable() if not state.found.trusted]
    await plugins.load(own, known=False)
    for state in own:
        now = plugins.state(state.found.key)
        checks.append(await _asked(plugins, now) if now.status == "loaded" else _outside(now))
    await plugins.close()
    faults = {state.found.key: state.fault for state in plugins.states if state.fault}
    return [
        replace(each, ok=False, words=faults[each.key]) if each.ok and each.key in faults else each
        for each in checks
    ]


async def _asked(plugins: Plugins, state: State) -> Check:
    key = state.found.key
    if why := overfull(plugins.data_dir(state.found), plugins.rules.data_mb):
        return Check(key=key, ok=False, words=f"it {why}")
    running = plugins.running(key)
    words = running.protection
    if state.level != "in_process":
        try:
            await running.call("ping", "", None, seconds=SECONDS, caller=NOBODY)
        except PluginFault as fault:
            return Check(key=key, ok=False, words=str(fault))
        words = f"answers; kept apart by {running.protection}"
    told = "; ".join((words, *_lacking(state)))
    return Check(key=key, ok=running.protection != PluginCell.UNCONFINED, words=told)


def _lacking(state: State) -> Iterator[str]:
    """What it brings and nobody uses here."""
    for platform in state.surface.platforms if state.surface else ():
        yield f"brings the platform {platform.name}, which a gateway is needed to run: none is here"
    for service in state.surface.services if state.surface else ():
        if service.kind == "browser":
            yield f"brings the browser {service.name}, which no tool here uses"
        if not service.available:
            yield f"its {service.kind} provider {service.name} says that it cannot be used now"


def _outside(state: State) -> Check:
    ok = state.status == "loaded"
    return Check(key=state.found.key, ok=ok, words=state.fault or state.status)


async def plugin_findings(config: Config) -> list[Finding]:
    """For `hermes doctor`: reads files only and starts nothing."""
    from hermes.plugins.host import load_plugins

    if not config.settings.plugins.enabled:
        return [fine("no plugin is on")]
    env = environment()
    run = RunContext(config, env=env, world=World(), redactor=Secrecy(config, env))
    plugins = load_plugins(run, serve=_serve_nothing, taken=tuple)
    try:
        found = [_finding(plugins, each) for each in plugins.states if _is_wanted(each)]
        rules, variables = plugins.rules, plugins.around.variables
        if not confines(rules.sandbox, rules.means, variables):
            words = "plugins are held back by limits alone: neither Landlock nor bubblewrap works"
            found.append(warning("plugin", words, fix="install bubblewrap"))
        return found
    finally:
        await plugins.close()


def _serve_nothing(rules: Rules, found: Found) -> Serving:
    raise HermesError(f"{found.key} cannot be started by a check of its files.")


def _is_wanted(state: State) -> bool:
    return not state.found.trusted and state.status != "off"


def _finding(plugins: Plugins, state: State) -> Finding:
    key, folder = state.found.key, plugins.data_dir(state.found)
    if state.status in ("error", "changed", "needs configuration"):
        fix = f"`hermes plugins info {key}` shows more"
        return warning("plugin", f"{key}: {state.fault.rstrip('.')}", fix=fix)
    if why := overfull(folder, plugins.rules.data_mb):
        return warning("plugin", f"{key} {why}", fix=f"remove what is not needed in {folder}")
    where = "inside Hermes" if state.level == "in_process" else "in a process of its own"
    kept = f"{size_of(folder) / MEGABYTE:.1f} of {plugins.rules.data_mb} MB kept"
    return fine(f"{key} runs {where}, {kept}; `hermes plugins doctor` starts and asks it")
