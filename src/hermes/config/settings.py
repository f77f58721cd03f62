"""All settings with types, defaults and descriptions, and the variables that override them.

Documentation, checks, `hermes config` and the loader read these classes: a setting is declared
once, here or in one of the `…_settings` modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from hermes.codec.values import Value
from hermes.config.chat_settings import (
    GatewaySettings,
    SessionResetSettings,
    StreamingSettings,
)
from hermes.config.cron_settings import CronSettings
from hermes.config.delegation_settings import (
    BackgroundSettings,
    DelegationSettings,
    GoalSettings,
    WorkRetentionSettings,
)
from hermes.config.execution_settings import (
    TERMINAL_VARIABLES,
    CodeExecutionSettings,
    PlanningSettings,
    SecuritySettings,
    TerminalSettings,
)
from hermes.config.extension_settings import (
    PLUGIN_VARIABLES,
    AutoAccept,
    CuratorSettings,
    McpServerSettings,
    PluginSettings,
    Registry,
    ShellHooks,
    SkillSettings,
)
from hermes.config.moa_settings import MoaSettings
from hermes.config.provider_settings import (
    AuxiliarySettings,
    BudgetSettings,
    CooldownSettings,
    FallbackSettings,
    ImageGenSettings,
    ModelSettings,
    OpenRouterSettings,
    PoolStrategy,
    ProviderSettings,
    RoutingSettings,
    SttSettings,
    TtsSettings,
    WebSettings,
)
from hermes.config.schema import Count, Effort, NonNegative, Positive, Seconds
from hermes.config.session_settings import (
    CompressionSettings,
    ContextSettings,
    DisplaySettings,
    QuickCommand,
    SessionSearchSettings,
    SessionSettings,
)

if TYPE_CHECKING:
    from hermes.config.gateway_settings import PlatformSettings, ResetOverrideSettings

# Rarely set, so `schema` loads them when a file names one.
LAZY_SECTIONS = dict.fromkeys(
    ("PlatformSettings", "ResetOverrideSettings"), "hermes.config.gateway_settings"
)


class AgentSettings(Value):
    """How a turn runs."""

    max_turns: Annotated[Positive, "Maximum model calls in one turn."] = 90
    api_max_retries: Annotated[Positive, "Maximum attempts per model call."] = 3
    reasoning_effort: Annotated[Effort, "Reasoning effort; empty uses the provider's default."] = ""
    reasoning_overrides: Annotated[
        dict[str, Effort], "Reasoning effort for models whose name contains the key."
    ] = {}
    service_tier: Annotated[str, "Service tier to request, if the provider has several."] = ""
    system_prompt: Annotated[str, "Text appended to the system prompt."] = ""
    gateway_timeout: Annotated[
        NonNegative, "In chats, seconds without activity until a turn is stopped; 0 for never."
    ] = 1_800
    clarify_timeout: Annotated[
        Seconds, "Seconds to wait for an answer to the agent's question."
    ] = 120
    tool_timeout: Annotated[NonNegative, "Timeout of a tool call, in seconds; 0 for none."] = 660
    disabled_toolsets: Annotated[tuple[str, ...], "Toolsets that are never offered."] = ()
    task_completion_guidance: Annotated[bool, "Tell the model to finish its task."] = True
    parallel_tool_call_guidance: Annotated[bool, "Tell the model to batch independent calls."] = (
        True
    )
    environment_hint: Annotated[str, "Note about this machine in the system prompt."] = ""
    environment_probe: Annotated[
        bool, "Describe unusual properties of this machine to the model."
    ] = True
    tool_use_enforcement: Annotated[
        str,
        "Tell models to act, not to announce: `auto` (by family), `true`, `false`, or model names.",
    ] = "auto"
    personalities: Annotated[
        dict[str, object], "Deprecated; use the top-level `personalities`."
    ] = {}
    local_stream_stale_timeout: Annotated[
        Seconds | None,
        "Seconds without data until a local model counts as stuck; null waits while its server "
        "reports activity.",
    ] = None


class ToolOutputSettings(Value):
    """Limits of tool output in the prompt."""

    max_bytes: Annotated[Positive, "Maximum bytes of command output."] = 50_000
    max_lines: Annotated[Positive, "Maximum lines of a file or listing."] = 2_000
    max_line_length: Annotated[Positive, "Maximum characters of one line."] = 2_000


class GuardrailSettings(Value):
    """When a turn that repeats itself gets a warning or is stopped."""

    hard_stop_enabled: Annotated[bool, "End the turn when a `stop_…` count is reached."] = False
    warn_same_failure: Annotated[Positive, "Warn after this many failures of the same call."] = 2
    warn_tool_failure: Annotated[Positive, "Warn after this many failures of the same tool."] = 3
    warn_same_answer: Annotated[
        Positive, "Warn after this many identical results of the same call."
    ] = 2
    refuse_same_failure: Annotated[Positive, "Refuse a call after it failed this many times."] = 3
    stop_same_failure: Annotated[
        Positive, "End the turn after this many failures of the same call."
    ] = 5
    stop_tool_failure: Annotated[
        Positive, "End the turn after this many failures of the same tool."
    ] = 8
    stop_same_answer: Annotated[
        Positive, "End the turn after this many identical results of the same call."
    ] = 5


class ApprovalSettings(Value):
    """Approval of risky effects."""

    mode: Annotated[
        Literal["manual", "smart", "off"],
        "`manual` asks you; `smart` lets a model approve simple cases; `off` denies only the most "
        "dangerous effects.",
    ] = "manual"
    timeout: Annotated[Seconds, "Seconds until an unanswered question counts as no."] = 60
    gateway_timeout: Annotated[Seconds, "The same for questions in chats of the gateway."] = 300
    requester_only: Annotated[
        bool, "In chats, only the person whose message led to a question may answer it."
    ] = False
    noninteractive_mode: Annotated[
        Literal["deny", "approve"], "Answer if no person can be asked."
    ] = "deny"
    cron_mode: Annotated[Literal["deny", "approve"], "Answer to questions of scheduled jobs."] = (
        "deny"
    )
    deny: Annotated[tuple[str, ...], "Command patterns that are always denied."] = ()
    destructive_slash_confirm: Annotated[bool, "Destructive slash commands must be confirmed."] = (
        True
    )


class CachingSettings(Value):
    """Cache markers for providers that cache prompts on request."""

    cache_ttl: Annotated[Literal["5m", "1h"], "Lifetime of a cached prompt."] = "5m"


class CheckpointSettings(Value):
    """File checkpoints for undo."""

    enabled: Annotated[bool, "Save files before a turn changes them."] = True
    max_snapshots: Annotated[Positive, "Number of turns per project that can be undone."] = 20
    max_total_size_mb: Annotated[Positive, "Maximum size of all checkpoints, in MB."] = 2_000
    max_file_size_mb: Annotated[Positive, "Maximum size of a saved file, in MB."] = 100
    max_files: Annotated[
        Positive, "Maximum files of a project; larger projects have no checkpoints."
    ] = 50_000
    auto_prune: Annotated[bool, "Delete old checkpoints automatically."] = True
    retention_days: Annotated[Positive, "Days until a checkpoint is old."] = 7
    min_interval_hours: Annotated[Positive, "Hours between two clean-ups."] = 24


class MemorySettings(Value):
    """Memory across sessions."""

    memory_enabled: Annotated[bool, "Use notes in `memories/MEMORY.md`."] = True
    user_profile_enabled: Annotated[bool, "Use the user profile in `memories/USER.md`."] = True
    memory_char_limit: Annotated[Positive, "Maximum characters of MEMORY.md."] = 2_200
    user_char_limit: Annotated[Positive, "Maximum characters of USER.md."] = 1_375
    nudge_interval: Annotated[
        Count, "Review memory after this many turns without a change; 0 for never."
    ] = 10
    flush_min_turns: Annotated[
        Count, "Save memory before compaction after at least this many turns; 0 for never."
    ] = 6
    write_approval: Annotated[bool, "Memory changes wait for `hermes memory accept`."] = False
    provider: Annotated[
        str, "User model in addition to the memory files: `local`, `honcho`, or a plugin."
    ] = ""


class LoggingSettings(Value):
    """The files in `logs/`."""

    level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"], "Minimum level of `agent.log`."
    ] = "INFO"
    max_size_mb: Annotated[Positive, "Size at which a log file is rotated, in MB."] = 5
    backup_count: Annotated[Count, "Number of rotated log files to keep."] = 3


class LocalSettings(Value):
    """The model that runs inside this process."""

    model: Annotated[str, "A GGUF file, or the name of an installed model."] = ""
    threads: Annotated[Positive | None, "Number of threads; null leaves one core free."] = None


class UpdateSettings(Value):
    """Backups before `hermes update`."""

    pre_update_backup: Annotated[
        Literal["quick", "full", "off"],
        "What to back up: settings, keys and sessions (`quick`), the whole home, or nothing.",
    ] = "quick"
    backup_keep: Annotated[Positive, "Number of quick backups to keep."] = 5


class NetworkSettings(Value):
    """Network access."""

    ca_bundle: Annotated[str, "PEM file of certificates to trust instead of the system's."] = ""
    proxy: Annotated[str, "Proxy for outgoing requests."] = ""
    no_proxy: Annotated[str, "Hosts that bypass the proxy, comma-separated."] = ""
    force_ipv4: Annotated[bool, "Never use IPv6."] = False
    request_timeout_seconds: Annotated[Seconds, "Timeout of a model request, in seconds."] = 1800
    stream_read_timeout_seconds: Annotated[
        Seconds, "Seconds without a byte until a stream fails."
    ] = 120
    stream_stale_timeout_seconds: Annotated[
        Seconds, "Seconds without content until a stream counts as stalled."
    ] = 180
    stream_stale_giveup: Annotated[Positive, "Consecutive stalled streams before giving up."] = 5


class PrivacySettings(Value):
    redact_pii: Annotated[
        bool, "In group chats, hide phone numbers, addresses and ids of people from models."
    ] = False


class ApiServerSettings(Value):
    """The HTTP server of `hermes serve`."""

    host: Annotated[str, "Address to listen on."] = "127.0.0.1"
    port: Annotated[Count, "Port to listen on; 0 uses a free one."] = 8642
    hosts: Annotated[tuple[str, ...], "Accepted host names, in addition to the address."] = ()
    cors_origins: Annotated[tuple[str, ...], "Allowed CORS origins."] = ()
    model_name: Annotated[str, "Model name in `/v1/models`; empty uses the profile name."] = ""
    direct_models: Annotated[bool, "Requests may name any model, not only aliases."] = False
    max_concurrent_runs: Annotated[Count, "Maximum concurrent turns; 0 for no limit."] = 64
    max_queued_runs: Annotated[Count, "Maximum waiting turns; more are refused."] = 1_000
    queue_seconds: Annotated[Positive, "Seconds that a turn may wait."] = 300
    stored_responses: Annotated[
        Positive, "Number of responses kept for `previous_response_id`."
    ] = 1_000
    show_reasoning: Annotated[bool, "Send the model's reasoning to clients."] = False
    ignore_client_tools: Annotated[
        bool, "Ignore tools in requests, which Open WebUI and others send; else refuse them."
    ] = True
    inline_media: Annotated[bool, "Embed images in answers as data URLs."] = False
    drain_seconds: Annotated[Count, "Seconds that running turns may continue at shutdown."] = 10


class AcpSettings(Value):
    """Sessions in editors."""

    use_client_terminal: Annotated[
        bool, "Run commands in the editor's terminal if it has one; they are not confined."
    ] = False


class Settings(Value):
    """All settings of a home, with their defaults."""

    toolsets: Annotated[tuple[str, ...], "Toolsets that are offered."] = ("hermes-cli",)
    platform_toolsets: Annotated[
        dict[str, tuple[str, ...]], "Toolsets by surface (`cli`, `acp`), instead of `toolsets`."
    ] = {}
    timezone: Annotated[str, "Time zone, such as `Europe/Berlin`; empty uses this machine's."] = ""
    prefill_messages_file: Annotated[
        str, "JSON file in the home: a list of `{role, content}` that starts every request."
    ] = ""
    file_read_max_chars: Annotated[Positive, "Maximum characters of one file read."] = 100_000
    context_file_max_chars: Annotated[
        Positive | None,
        "Maximum characters of a project file in the prompt; null scales with the model.",
    ] = None
    command_allowlist: Annotated[
        tuple[str, ...], "Effects that are always allowed; the answer `always` adds one."
    ] = ()
    model: ModelSettings = ModelSettings()
    agent: AgentSettings = AgentSettings()
    terminal: TerminalSettings = TerminalSettings()
    code_execution: CodeExecutionSettings = CodeExecutionSettings()
    planning: PlanningSettings = PlanningSettings()
    tool_output: ToolOutputSettings = ToolOutputSettings()
    tool_loop_guardrails: GuardrailSettings = GuardrailSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    prompt_caching: CachingSettings = CachingSettings()
    compression: CompressionSettings = CompressionSettings()
    context: ContextSettings = ContextSettings()
    personalities: Annotated[dict[str, object], "User-defined personalities: `pirate: Arr …`."] = {}
    quick_commands: dict[str, QuickCommand] = {}
    platform_hints: Annotated[
        dict[str, object],
        "Prompt hints by surface: text to append, or a mapping with `replace` and `append`.",
    ] = {}
    display: DisplaySettings = DisplaySettings()
    sessions: SessionSettings = SessionSettings()
    session_search: SessionSearchSettings = SessionSearchSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    memory: MemorySettings = MemorySettings()
    skills: SkillSettings = SkillSettings()
    curator: CuratorSettings = CuratorSettings()
    image_gen: ImageGenSettings = ImageGenSettings()
    logging: LoggingSettings = LoggingSettings()
    providers: dict[str, ProviderSettings] = {}
    local: LocalSettings = LocalSettings()
    network: NetworkSettings = NetworkSettings()
    privacy: PrivacySettings = PrivacySettings()
    security: SecuritySettings = SecuritySettings()
    updates: UpdateSettings = UpdateSettings()
    model_aliases: Annotated[dict[str, str], "Short names for models: `fast: openrouter:…`."] = {}
    fallback_providers: Annotated[
        tuple[FallbackSettings, ...], "Models to use if the main one fails, in order."
    ] = ()
    provider_routing: RoutingSettings = RoutingSettings()
    openrouter: OpenRouterSettings = OpenRouterSettings()
    credential_pool_strategies: Annotated[
        dict[str, PoolStrategy], "How to choose among several keys of a provider."
    ] = {}
    credential_pool_cooldowns: CooldownSettings = CooldownSettings()
    budget: BudgetSettings = BudgetSettings()
    auxiliary: AuxiliarySettings = AuxiliarySettings()
    acp: AcpSettings = AcpSettings()
    api_server: ApiServerSettings = ApiServerSettings()
    platforms: dict[str, PlatformSettings] = {}
    gateway: GatewaySettings = GatewaySettings()
    streaming: StreamingSettings = StreamingSettings()
    session_reset: SessionResetSettings = SessionResetSettings()
    reset_by_type: dict[str, ResetOverrideSettings] = {}
    reset_by_platform: dict[str, ResetOverrideSettings] = {}
    group_sessions_per_user: Annotated[
        bool, "In groups, each person has a session of their own."
    ] = True
    thread_sessions_per_user: Annotated[
        bool, "In threads, each person has a session of their own."
    ] = False
    cron: CronSettings = CronSettings()
    moa: MoaSettings = MoaSettings()
    delegation: DelegationSettings = DelegationSettings()
    background: BackgroundSettings = BackgroundSettings()
    goals: GoalSettings = GoalSettings()
    retention: WorkRetentionSettings = WorkRetentionSettings()
    mcp_servers: dict[str, McpServerSettings] = {}
    mcp_registry: Registry = "https://registry.modelcontextprotocol.io"
    hooks: ShellHooks = {}
    hooks_auto_accept: AutoAccept = False
    plugins: PluginSettings = PluginSettings()
    stt: SttSettings = SttSettings()
    tts: TtsSettings = TtsSettings()
    web: WebSettings = WebSettings()


class Override(Value):
    """A variable that overrides a setting. A `weak` one yields to config.yaml. With `when_true`, a
    true word sets that value and anything else is ignored."""

    variable: str
    key: str
    weak: bool = False
    when_true: str = ""


# Of two variables for one key the first wins.
OVERRIDES = (
    Override(variable="HERMES_INFERENCE_MODEL", key="model.default"),
    Override(variable="HERMES_MODEL", key="model.default"),
    Override(variable="HERMES_INFERENCE_PROVIDER", key="model.provider", weak=True),
    Override(variable="HERMES_MAX_TOKENS", key="model.max_tokens"),
    Override(variable="HERMES_MAX_ITERATIONS", key="agent.max_turns"),
    Override(variable="HERMES_CONCURRENT_TOOL_TIMEOUT_S", key="agent.tool_timeout"),
    Override(variable="HERMES_EPHEMERAL_SYSTEM_PROMPT", key="agent.system_prompt"),
    Override(variable="HERMES_PREFILL_MESSAGES_FILE", key="prefill_messages_file"),
    Override(variable="HERMES_TIMEZONE", key="timezone"),
    Override(variable="HERMES_RECORD", key="sessions.record"),
    *(Override(variable=name, key=f"terminal.{key}") for name, key in TERMINAL_VARIABLES.items()),
    Override(variable="HERMES_ACCEPT_HOOKS", key="hooks_auto_accept"),
    # Before HERMES_YOLO_MODE: if both are set, Hermes asks.
    Override(variable="HERMES_EXEC_ASK", key="approvals.mode", when_true="manual"),
    Override(variable="HERMES_YOLO_MODE", key="approvals.mode", when_true="off"),
    Override(variable="HERMES_CA_BUNDLE", key="network.ca_bundle"),
    Override(variable="SSL_CERT_FILE", key="network.ca_bundle", weak=True),
    Override(variable="REQUESTS_CA_BUNDLE", key="network.ca_bundle", weak=True),
    Override(variable="HTTPS_PROXY", key="network.proxy", weak=True),
    Override(variable="https_proxy", key="network.proxy", weak=True),
    Override(variable="ALL_PROXY", key="network.proxy", weak=True),
    Override(variable="all_proxy", key="network.proxy", weak=True),
    Override(variable="NO_PROXY", key="network.no_proxy", weak=True),
    Override(variable="no_proxy", key="network.no_proxy", weak=True),
    Override(variable="HERMES_API_TIMEOUT", key="network.request_timeout_seconds"),
    Override(variable="HERMES_STREAM_READ_TIMEOUT", key="network.stream_read_timeout_seconds"),
    Override(variable="HERMES_STREAM_STALE_TIMEOUT", key="network.stream_stale_timeout_seconds"),
    Override(variable="HERMES_STREAM_STALE_GIVEUP", key="network.stream_stale_giveup"),
    Override(variable="HERMES_REDACT_SECRETS", key="security.redact_secrets"),
    Override(variable="HERMES_ALLOW_PRIVATE_URLS", key="security.allow_private_urls"),
    Override(variable="HERMES_WRITE_SAFE_ROOT", key="security.write_safe_roots"),
    *(Override(variable=name, key=f"plugins.{key}") for name, key in PLUGIN_VARIABLES.items()),
    *(
        Override(variable=f"AUXILIARY_{task}_{field}".upper(), key=f"auxiliary.{task}.{field}")
        for task in ("vision", "web_extract", "approval")
        for field in ("provider", "model", "base_url", "api_key")
    ),
    Override(variable="HERMES_CRON_MAX_PARALLEL", key="cron.max_parallel_jobs"),
    Override(variable="HERMES_CRON_TIMEOUT", key="cron.inactivity_seconds"),
    Override(variable="HERMES_CRON_SCRIPT_TIMEOUT", key="cron.script_timeout_seconds"),
    Override(variable="API_SERVER_HOST", key="api_server.host"),
    Override(variable="API_SERVER_PORT", key="api_server.port"),
    Override(variable="API_SERVER_CORS_ORIGINS", key="api_server.cors_origins"),
    Override(variable="API_SERVER_MODEL_NAME", key="api_server.model_name"),
)

# `model: NAME` means `model.default: NAME`, `budget.day: 2` means two dollars.
SHORT_FORMS = {
    "model": "default",
    **{f"budget.{period}": "usd" for period in ("day", "month", "person", "job", "task")},
}
