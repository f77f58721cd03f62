"""Settings of hooks, MCP servers, plugins and skills."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from hermes.codec.values import Value
from hermes.config.schema import SECRET, Count, NonNegative, Positive, Seconds


class ShellHookSettings(Value):
    """A program that runs at a hook."""

    command: Annotated[str, "Program with arguments; it runs without a shell."] = ""
    matcher: Annotated[str, "Pattern that must match the full tool name."] = ""
    timeout: Annotated[Seconds, "Seconds until the program is killed; at most 300."] = 60
    fail_closed: Annotated[bool, "Block the tool call if the program fails."] = False


ShellHooks: TypeAlias = Annotated[
    dict[str, tuple[ShellHookSettings, ...]], "Programs by hook: `pre_tool_call: [{command: …}]`."
]
AutoAccept: TypeAlias = Annotated[bool, "Run configured hooks without asking first."]


Registry = Annotated[str, "Registry that `hermes mcp catalog --online` searches."]
Interval = Annotated[float, Meta(ge=5)]


class McpToolSettings(Value):
    include: Annotated[tuple[str, ...], "Only use these tools, by name or pattern."] = ()
    exclude: Annotated[tuple[str, ...], "Tools to exclude, unless `include` is set."] = ()
    resources: Annotated[bool, "Offer tools that list and read the server's resources."] = True
    prompts: Annotated[bool, "Offer tools that list and get the server's prompts."] = True


class McpSamplingSettings(Value):
    enabled: Annotated[bool, "Allow the server to call the model (sampling)."] = True
    model: Annotated[str, "Model for sampling; empty uses the session's model."] = ""
    allowed_models: Annotated[tuple[str, ...], "Models that the server may choose."] = ()
    max_tokens_cap: Annotated[Positive, "Maximum answer length in tokens."] = 4096
    timeout: Annotated[Seconds, "Timeout of one request, in seconds."] = 30
    max_rpm: Annotated[Positive, "Maximum requests per minute."] = 10
    max_tool_rounds: Annotated[Count, "Maximum consecutive rounds of tool calls."] = 5


class McpElicitationSettings(Value):
    enabled: Annotated[bool, "Allow the server to ask the user."] = True
    timeout: Annotated[Seconds, "Seconds to wait for an answer."] = 300


class McpOauthSettings(Value):
    grant: Annotated[
        Literal["authorization_code", "client_credentials"],
        "Grant type: log in as a user, or as this client.",
    ] = "authorization_code"
    client_id: Annotated[str, "Client id, for a server without dynamic registration."] = ""
    client_secret: Annotated[str, SECRET, "Client secret."] = ""
    private_key_file: Annotated[str, "PEM file of a private key to use instead of the secret."] = ""
    signing_algorithm: Annotated[
        Literal["RS256", "ES256", "PS256", "EdDSA"], "Signing algorithm."
    ] = "RS256"
    issuer: Annotated[str, "The only authorization server that may receive the secret."] = ""
    client_metadata_url: Annotated[str, "HTTPS URL of a client metadata document."] = ""
    scope: Annotated[str, "Scopes to request; empty uses the scopes that the server names."] = ""
    redirect_host: Annotated[str, "Host of the redirect URI."] = "127.0.0.1"
    redirect_port: Annotated[Count, "Port of the redirect URI; 0 uses a free one."] = 0
    redirect_uri: Annotated[str, "Complete redirect URI; overrides host and port."] = ""
    timeout: Annotated[Seconds, "Seconds to wait for the login."] = 300


class McpServerSettings(Value):
    """An MCP server: a command to start, or a URL."""

    command: Annotated[str, "Program to start."] = ""
    args: Annotated[tuple[str, ...], "Arguments of the program."] = ()
    env: Annotated[dict[str, str], SECRET, "Environment variables added to the default ones."] = {}
    cwd: Annotated[str, "Working directory."] = ""
    url: Annotated[str, "URL of a remote server."] = ""
    transport: Annotated[Literal["http", "sse"], "Transport of a remote server."] = "http"
    headers: Annotated[dict[str, str], SECRET, "Headers added to every request."] = {}
    auth: Annotated[Literal["", "header", "oauth"], "Authentication; `oauth` needs a login."] = ""
    oauth: McpOauthSettings = McpOauthSettings()
    ssl_verify: Annotated[
        bool | str, "Whether to verify certificates, or the CA file to verify them with."
    ] = True
    client_cert: Annotated[tuple[str, ...], "Client certificate: file, key file, password."] = ()
    enabled: Annotated[bool, "Use this server."] = True
    timeout: Annotated[Seconds, "Timeout of one call, in seconds."] = 300
    connect_timeout: Annotated[Seconds, "Timeout for connecting, in seconds."] = 60
    keepalive_interval: Annotated[Interval, "Idle seconds after which a ping is sent."] = 180
    idle_timeout_seconds: Annotated[
        NonNegative, "Disconnect after this many idle seconds; 0 for never."
    ] = 0
    max_lifetime_seconds: Annotated[
        NonNegative, "Reconnect after this many seconds; 0 for never."
    ] = 0
    supports_parallel_tool_calls: Annotated[bool, "The server accepts parallel tool calls."] = False
    trust: Annotated[
        Literal["full", "untrusted"],
        "`untrusted` asks before every tool that may have side effects.",
    ] = "full"
    tools: McpToolSettings = McpToolSettings()
    sampling: McpSamplingSettings = McpSamplingSettings()
    elicitation: McpElicitationSettings = McpElicitationSettings()


class PluginGrantSettings(Value):
    """Permissions of a plugin; none by default."""

    network: Annotated[bool, "The plugin may use the network."] = False
    paths: Annotated[tuple[str, ...], "Folders that the plugin may read and write."] = ()
    env: Annotated[
        tuple[str, ...], "Variables with provider API keys that the plugin may read."
    ] = ()
    llm: Annotated[
        bool, "The plugin may call the session's model; calls count towards budgets."
    ] = False
    processes: Annotated[bool, "The plugin may start programs."] = False


class PluginEntrySettings(Value):
    """Settings of one plugin."""

    isolation: Annotated[
        Literal["", "process", "in_process"],
        "`in_process` runs the plugin inside Hermes, with all permissions of Hermes.",
    ] = ""
    allow_tool_override: Annotated[
        bool, "The plugin's tools may replace tools of the same name."
    ] = False
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
        "`auto` sandboxes plugins if the system supports it; `require` loads no plugin without a "
        "sandbox.",
    ] = "auto"
    block_on_scan: Annotated[
        Literal["", "high"], "`high` refuses plugins with a high-severity scan finding."
    ] = ""
    allow_override: Annotated[
        tuple[str, ...], "Memory plugins that other plugins may replace."
    ] = ()
    load_timeout: Annotated[Seconds, "Timeout for loading a plugin, in seconds."] = 20
    tool_timeout: Annotated[Seconds, "Timeout of a plugin tool call, in seconds."] = 120
    hook_timeout: Annotated[NonNegative, "Timeout of a plugin hook, in seconds; 0 for none."] = 30
    data_mb: Annotated[Positive, "Maximum size of a plugin's data folder, in MB."] = 512
    entries: dict[str, PluginEntrySettings] = {}


PLUGIN_VARIABLES = {
    "HERMES_SAFE_MODE": "safe_mode",
    "HERMES_ENABLE_PROJECT_PLUGINS": "project",
    "HERMES_PLUGINS_DEBUG": "debug",
}


class SkillSettings(Value):
    """Procedures that the agent can load and write."""

    enabled: Annotated[bool, "List skills in the prompt."] = True
    external_dirs: Annotated[tuple[str, ...], "Additional skill folders, read-only."] = ()
    trusted_projects: Annotated[
        tuple[str, ...], "Projects whose skills are loaded; `hermes skills trust` adds one."
    ] = ()
    disabled: Annotated[tuple[str, ...], "Disabled skills."] = ()
    platform_disabled: Annotated[
        dict[str, tuple[str, ...]], "Disabled skills by surface: `cli: [name]`."
    ] = {}
    config: Annotated[dict[str, Any], "Values of settings that skills declare."] = {}
    template_vars: Annotated[bool, "Expand `${HERMES_SKILL_DIR}` and `${HERMES_SESSION_ID}`."] = (
        True
    )
    inline_shell: Annotated[bool, "Run !`commands` in the text of a loaded skill."] = False
    inline_shell_timeout: Annotated[Seconds, "Timeout of each command, in seconds."] = 10
    guard_agent_created: Annotated[
        bool, "Refuse skills written by the agent if the scan finds them dangerous."
    ] = True
    write_approval: Annotated[bool, "Skills written by the agent wait for `/skills approve`."] = (
        False
    )
    creation_nudge_interval: Annotated[
        Count, "Review a session after this many tool calls; 0 for never."
    ] = 10
    review_calls: Annotated[Count, "Review a task after this many tool calls; 0 for never."] = 5
    rehearse: Annotated[
        Count, "Number of recorded sessions that test a change before it is used; 0 for none."
    ] = 3
    unrehearsed: Annotated[
        Literal["new", "all", "none"],
        "Which changes to enable if no session can be replayed: new skills, all, or none until "
        "you approve them.",
    ] = "new"
    index_max_chars: Annotated[Count, "Maximum characters of the skill list in the prompt."] = 1_960
    hub_urls: Annotated[
        dict[str, str],
        "Replacement URLs for: github_api, github_raw, skills_sh, clawhub, lobehub.",
    ] = {}


class CuratorBackupSettings(Value):
    enabled: Annotated[bool, "Back up all skills before some are archived."] = True
    keep: Annotated[Positive, "Number of backups to keep."] = 5


class CuratorSettings(Value):
    """Archives unused skills that the agent wrote. Skills are never deleted."""

    enabled: Annotated[bool, "Archive unused skills automatically."] = True
    interval_hours: Annotated[Positive, "Hours between two runs."] = 168
    min_idle_hours: Annotated[Count, "Hours that Hermes must be idle before a run."] = 2
    stale_after_days: Annotated[Positive, "Days without use until a skill is stale."] = 30
    archive_after_days: Annotated[Positive, "Days without use until a skill is archived."] = 90
    most_skills: Annotated[Count, "Maximum number of active skills; 0 for no limit."] = 100
    consolidate: Annotated[bool, "Let a model merge similar skills."] = False
    prune_builtins: Annotated[bool, "Also archive bundled skills."] = False
    backup: CuratorBackupSettings = CuratorBackupSettings()
