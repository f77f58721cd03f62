"""The settings of plugins."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.kinds import Positive, Price, Seconds


class PluginGrantSettings(Value):
    """What a plugin may have that it does not have by itself."""

    network: Annotated[bool, "Reach the network."] = False
    paths: Annotated[tuple[str, ...], "Folders that it may read and change."] = ()
    env: Annotated[tuple[str, ...], "Keys of model providers that it may have."] = ()
    llm: Annotated[bool, "Ask the model of the session; it is paid like all else."] = False
    processes: Annotated[bool, "Start programs."] = False


class PluginEntrySettings(Value):
    """One plugin."""

    isolation: Annotated[
        Literal["", "process", "in_process"],
        "`in_process` runs it inside Hermes, with all that Hermes can do.",
    ] = ""
    allow_tool_override: Annotated[bool, "Its tools may take the names of others."] = False
    development: Annotated[bool, "Follow changes of its files without asking."] = False
    grants: PluginGrantSettings = PluginGrantSettings()
    config: Annotated[dict[str, object], "Whatever the plugin wants to be told."] = {}


class PluginSettings(Value):
    """Code of others: which, and how far it reaches."""

    enabled: Annotated[tuple[str, ...], "Plugins to load, by key or name."] = ()
    disabled: Annotated[tuple[str, ...], "Plugins that are never loaded; this wins."] = ()
    safe_mode: Annotated[bool, "Load nothing but what comes with the program."] = False
    project: Annotated[bool, "Look for plugins in `.hermes/plugins` of the project, too."] = False
    debug: Annotated[bool, "Log why each folder was taken or passed over."] = False
    sandbox: Annotated[
        Literal["auto", "require", "off"],
        "`auto` confines plugins where the system can, `require` loads none where it cannot.",
    ] = "auto"
    block_on_scan: Annotated[
        Literal["", "high"], "`high` refuses to enable what the scan finds most suspicious."
    ] = ""
    allow_override: Annotated[
        tuple[str, ...], "Plugins of memory that others may take the place of."
    ] = ()
    load_timeout: Annotated[Seconds, "Seconds that a plugin may take to load."] = 20
    tool_timeout: Annotated[Seconds, "Seconds that a call of a plugin's tool may take."] = 120
    hook_timeout: Annotated[Price, "Seconds that a hook of a plugin may take; 0 for no limit."] = 30
    data_mb: Annotated[Positive, "Megabytes that a plugin may keep in its folder."] = 512
    entries: dict[str, PluginEntrySettings] = {}


PLUGIN_VARIABLES = {
    "HERMES_SAFE_MODE": "safe_mode",
    "HERMES_ENABLE_PROJECT_PLUGINS": "project",
    "HERMES_PLUGINS_DEBUG": "debug",
}
