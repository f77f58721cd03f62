"""Settings of plugins."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.kinds import NonNegative, Positive, Seconds


class PluginGrantSettings(Value):
    """Permissions of a plugin; none by default."""

    network: Annotated[bool, "Use the network."] = False
    paths: Annotated[tuple[str, ...], "Folders it may read and write."] = ()
    env: Annotated[tuple[str, ...], "API keys of model providers it may read."] = ()
    llm: Annotated[bool, "Call the session's model; counts towards budgets."] = False
    processes: Annotated[bool, "Start programs."] = False


class PluginEntrySettings(Value):
    """Settings of one plugin."""

    isolation: Annotated[
        Literal["", "process", "in_process"],
        "`in_process` runs it inside Hermes, with all its permissions.",
    ] = ""
    allow_tool_override: Annotated[bool, "Its tools may replace tools of the same name."] = False
    development: Annotated[bool, "Reload changed files without asking."] = False
    grants: PluginGrantSettings = PluginGrantSettings()
    config: Annotated[dict[str, object], "Settings passed to the plugin."] = {}


class PluginSettings(Value):
    """Which plugins are loaded, and their limits."""

    enabled: Annotated[tuple[str, ...], "Plugins to load, by key or name."] = ()
    disabled: Annotated[tuple[str, ...], "Plugins that are never loaded; overrides `enabled`."] = ()
    safe_mode: Annotated[bool, "Load only bundled plugins."] = False
    project: Annotated[bool, "Also load plugins from `.hermes/plugins` of the project."] = False
    debug: Annotated[bool, "Log why each folder was loaded or skipped."] = False
    sandbox: Annotated[
        Literal["auto", "require", "off"],
        "`auto` sandboxes plugins if the system supports it; `require` loads none otherwise.",
    ] = "auto"
    block_on_scan: Annotated[
        Literal["", "high"], "`high` refuses plugins with a high-severity scan finding."
    ] = ""
    allow_override: Annotated[
        tuple[str, ...], "Memory plugins that other plugins may replace."
    ] = ()
    load_timeout: Annotated[Seconds, "Timeout of loading a plugin, in seconds."] = 20
    tool_timeout: Annotated[Seconds, "Timeout of a plugin tool call, in seconds."] = 120
    hook_timeout: Annotated[NonNegative, "Timeout of a plugin hook, in seconds; 0 for none."] = 30
    data_mb: Annotated[Positive, "Maximum size of a plugin's data folder, in MB."] = 512
    entries: dict[str, PluginEntrySettings] = {}


PLUGIN_VARIABLES = {
    "HERMES_SAFE_MODE": "safe_mode",
    "HERMES_ENABLE_PROJECT_PLUGINS": "project",
    "HERMES_PLUGINS_DEBUG": "debug",
}
