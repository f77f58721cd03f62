"""Health checks of plugins: with starting them, or from their files only."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import Value, replace
from hermes.config.diagnostics import Diagnostic, ok, warning
from hermes.config.environment import process_environment
from hermes.config.load import Config
from hermes.config.run_context import RunContext
from hermes.core.errors import HermesError
from hermes.core.world import World
from hermes.credentials.redaction import SecretRedactor
from hermes.plugins.discovery import FoundPlugin
from hermes.plugins.launch import MEGABYTE, folder_size, quota_fault
from hermes.plugins.permissions import PluginRules
from hermes.plugins.protocol import NO_CALLER, PluginFault, PluginRequests
from hermes.plugins.registry import PluginRegistry, PluginState
from hermes.plugins.run_plugins import FAULTY
from hermes.plugins.sandbox import PluginSandbox, is_sandboxed

SECONDS = 10


class PluginCheck(Value):
    """The health of one plugin."""

    key: str
    ok: bool
    words: str


async def check_all(plugins: PluginRegistry) -> list[PluginCheck]:
    """Start every enabled third-party plugin and wait for its answer."""
    others = [state for state in plugins.states if not state.plugin.trusted]
    checks = [_check_files(state) for state in others if state.status not in ("on", "off")]
    own = [state for state in plugins.usable() if not state.plugin.trusted]
    await plugins.load(own, known=False)
    for state in own:
        now = plugins.state(state.plugin.key)
        checks.append(await _ask(plugins, now) if now.status == "loaded" else _check_files(now))
    await plugins.close()
    faults = {state.plugin.key: state.fault for state in plugins.states if state.fault}
    return [
        replace(each, ok=False, words=faults[each.key]) if each.ok and each.key in faults else each
        for each in checks
    ]


async def _ask(plugins: PluginRegistry, state: PluginState) -> PluginCheck:
    key = state.plugin.key
    if why := quota_fault(plugins.data_dir(state.plugin), plugins.rules.data_mb):
        return PluginCheck(key=key, ok=False, words=f"it {why}")
    running = plugins.running(key)
    message = running.protection
    if state.level != "in_process":
        try:
            await running.call("ping", "", None, seconds=SECONDS, caller=NO_CALLER)
        except PluginFault as fault:
            return PluginCheck(key=key, ok=False, words=str(fault))
        message = f"answers; isolated by {running.protection}"
    text = "; ".join((message, *_missing_hosts(state)))
    return PluginCheck(key=key, ok=running.protection != PluginSandbox.UNCONFINED, words=text)


def _missing_hosts(state: PluginState) -> Iterator[str]:
    """Yield registrations that Hermes does not use."""
    for platform in state.surface.platforms:
        yield f"provides the platform {platform.name}, which needs a gateway; none is available"
    for service in state.surface.services:
        if service.kind == "browser":
            yield f"provides the browser {service.name}, which no tool uses"
        if not service.available:
            yield f"its {service.kind} provider {service.name} is not available"


def _check_files(state: PluginState) -> PluginCheck:
    ok = state.status == "loaded"
    return PluginCheck(key=state.plugin.key, ok=ok, words=state.fault or state.status)


async def plugin_findings(config: Config) -> list[Diagnostic]:
    """Return findings for `hermes doctor` from files only; starts nothing."""
    from hermes.plugins.host import load_plugins

    if not config.settings.plugins.enabled:
        return [ok("no plugin is enabled")]
    env = process_environment()
    run = RunContext(config, env=env, world=World(), redactor=SecretRedactor(config, env))
    plugins = load_plugins(run, serve=_serve_nothing, reserved_names=tuple)
    try:
        findings = [
            _finding(plugins, each)
            for each in plugins.states
            if not each.plugin.trusted and each.status != "off"
        ]
        rules, variables = plugins.rules, plugins.host.variables
        if not is_sandboxed(rules.sandbox, rules.means, variables):
            message = "plugins run without a sandbox: neither Landlock nor bubblewrap works"
            findings.append(warning("plugin", message, fix="install bubblewrap"))
        return findings
    finally:
        await plugins.close()


def _serve_nothing(rules: PluginRules, plugin: FoundPlugin) -> PluginRequests:
    raise HermesError(f"A check of files cannot start {plugin.key}.")


def _finding(plugins: PluginRegistry, state: PluginState) -> Diagnostic:
    key, folder = state.plugin.key, plugins.data_dir(state.plugin)
    if state.status in FAULTY:
        fix = f"`hermes plugins info {key}` shows details"
        return warning("plugin", f"{key}: {state.fault.rstrip('.')}", fix=fix)
    if why := quota_fault(folder, plugins.rules.data_mb):
        return warning("plugin", f"{key} {why}", fix=f"delete unneeded files in {folder}")
    where = "inside Hermes" if state.level == "in_process" else "in a process of its own"
    usage = f"uses {folder_size(folder) / MEGABYTE:.1f} of {plugins.rules.data_mb} MB"
    return ok(f"{key} runs {where}, {usage}; `hermes plugins doctor` starts and tests it")
