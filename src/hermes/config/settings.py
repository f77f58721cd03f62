"""Every setting there is, with its kind, default and meaning, and the variables that override it.

Documentation, checks, `hermes config` and the loader all read these classes: a key is added here,
in one of the `…_settings` modules beside it and nowhere else.
"""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.context_settings import CompressionSettings, ContextSettings
from hermes.config.display_settings import DisplaySettings, QuickCommand
from hermes.config.hook_settings import AutoAccept, ShellHooks
from hermes.config.image_settings import ImageGenSettings
from hermes.config.kinds import Count, Effort, Positive, Seconds
from hermes.config.mcp_settings import McpServerSettings, Registry
from hermes.config.model_settings import (
    AuxiliarySettings,
    BudgetSettings,
    CooldownSettings,
    FallbackSettings,
    ModelSettings,
    OpenRouterSettings,
    PoolStrategy,
    ProviderSettings,
    RoutingSettings,
)
from hermes.config.plugin_settings import PLUGIN_VARIABLES, PluginSettings
from hermes.config.security_settings import SecuritySettings
from hermes.config.service_settings import SttSettings, TtsSettings, WebSettings
from hermes.config.session_settings import SessionSearchSettings, SessionSettings
from hermes.config.skill_settings import CuratorSettings, SkillSettings
from hermes.config.terminal_settings import TERMINAL_VARIABLES, TerminalSettings


class AgentSettings(Value):
    """How a turn runs."""

    max_turns: Annotated[Positive, "Model calls that one turn may make."] = 90
    api_max_retries: Annotated[Positive, "Attempts at one model call before giving up."] = 3
    reasoning_effort: Annotated[Effort, "How hard to think; empty is the provider's default."] = ""
    reasoning_overrides: Annotated[
        dict[str, Effort], "How hard models think whose name contains this."
    ] = {}
    service_tier: Annotated[str, "Service tier to ask for, where a provider has several."] = ""
    system_prompt: Annotated[str, "Text added to the end of the system prompt."] = ""
    clarify_timeout: Annotated[
        Seconds, "Seconds to wait for an answer to a question of the agent."
    ] = 120
    tool_timeout: Annotated[
        Seconds, "Seconds after which a call of a tool is given up; 0 waits for ever."
    ] = 660
    disabled_toolsets: Annotated[tuple[str, ...], "Toolsets that are never offered."] = ()
    task_completion_guidance: Annotated[bool, "Tell the model to finish what it began."] = True
    parallel_tool_call_guidance: Annotated[bool, "Tell the model to batch independent calls."] = (
        True
    )
    environment_hint: Annotated[str, "A note on this machine for the system prompt."] = ""
    environment_probe: Annotated[bool, "Tell the model what is unusual about this machine."] = True
    tool_use_enforcement: Annotated[
        str, "Tell models to act, not to promise: `auto` by family, `true`, `false`, or names."
    ] = "auto"
    personalities: Annotated[dict[str, object], "The same as `personalities`."] = {}
    local_stream_stale_timeout: Annotated[
        Seconds | None,
        "Seconds without a byte after which a local model counts as stuck; null waits as long as "
        "its server shows that it works.",
    ] = None


class ToolOutputSettings(Value):
    """How much of a tool's output the model sees."""

    max_bytes: Annotated[Positive, "Bytes of command output."] = 50_000
    max_lines: Annotated[Positive, "Lines of a file or listing."] = 2_000
    max_line_length: Annotated[Positive, "Characters of one line."] = 2_000


class GuardrailSettings(Value):
    """When a turn that goes in circles is warned or stopped."""

    hard_stop_enabled: Annotated[bool, "End the turn at the `stop_…` counts."] = False
    warn_same_failure: Annotated[Positive, "Same call failed: warn after."] = 2
    warn_tool_failure: Annotated[Positive, "Same tool failed: warn after."] = 3
    warn_same_answer: Annotated[Positive, "Same call, same answer: warn after."] = 2
    refuse_same_failure: Annotated[Positive, "Same call failed: refuse it after."] = 3
    stop_same_failure: Annotated[Positive, "Same call failed: end the turn after."] = 5
    stop_tool_failure: Annotated[Positive, "Same tool failed: end the turn after."] = 8
    stop_same_answer: Annotated[Positive, "Same call, same answer: end the turn after."] = 5


class ApprovalSettings(Value):
    """Who decides about risky effects."""

    mode: Annotated[
        Literal["manual", "smart", "off"],
        "`manual` asks; `smart` lets a model allow what is simple; `off` allows all but the worst.",
    ] = "manual"
    timeout: Annotated[Seconds, "Seconds until an unanswered question counts as no."] = 60
    noninteractive_mode: Annotated[
        Literal["deny", "approve"], "The answer where nobody can be asked."
    ] = "deny"
    deny: Annotated[tuple[str, ...], "Command patterns that are always refused."] = ()
    destructive_slash_confirm: Annotated[
        bool, "Slash commands that throw something away want to be confirmed."
    ] = True


class CachingSettings(Value):
    """Marks for providers that cache prompts on request."""

    cache_ttl: Annotated[Literal["5m", "1h"], "How long a provider should keep a prompt."] = "5m"


class CheckpointSettings(Value):
    """What is kept so that changes to files can be taken back."""

    enabled: Annotated[bool, "Keep what files held before a turn changes them."] = True
    max_snapshots: Annotated[Positive, "Turns of one project that can be taken back."] = 20
    max_total_size_mb: Annotated[Positive, "Size of all that is kept."] = 2_000
    max_file_size_mb: Annotated[Positive, "Size of a file from which it is not copied."] = 100
    max_files: Annotated[Positive, "Files of a project from which it is not followed."] = 50_000
    auto_prune: Annotated[bool, "Remove what is old by itself."] = True
    retention_days: Annotated[Positive, "Days after which it is old."] = 7
    min_interval_hours: Annotated[Positive, "Hours between two sweeps."] = 24


class MemorySettings(Value):
    """What is known from one session to the next."""

    memory_enabled: Annotated[bool, "Keep notes in `memories/MEMORY.md` and show them."] = True
    user_profile_enabled: Annotated[bool, "Keep who you are in `memories/USER.md`."] = True
    memory_char_limit: Annotated[Positive, "Characters of MEMORY.md."] = 2_200
    user_char_limit: Annotated[Positive, "Characters of USER.md."] = 1_375
    nudge_interval: Annotated[
        Count, "Turns without a change of memory after which it is reviewed; 0 for never."
    ] = 10
    flush_min_turns: Annotated[
        Count, "Turns that a conversation has before memory is saved on shortening it; 0 for never."
    ] = 6
    write_approval: Annotated[bool, "Everything waits for `hermes memory accept`."] = False
    provider: Annotated[
        str, "What models the user besides the files: `local`, `honcho`, or one that was added."
    ] = ""


class LoggingSettings(Value):
    """The files in `logs/`."""

    level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"], "Least important lines in `agent.log`."
    ] = "INFO"
    max_size_mb: Annotated[Positive, "Size at which a file is rotated."] = 5
    backup_count: Annotated[Count, "Rotated files that are kept."] = 3


class LocalSettings(Value):
    """The model that runs inside this process."""

    model: Annotated[str, "A GGUF file, or the name of an installed model."] = ""
    threads: Annotated[Positive | None, "Threads to compute with; null leaves one core free."] = (
        None
    )


class UpdateSettings(Value):
    """What `hermes update` does first."""

    pre_update_backup: Annotated[
        Literal["quick", "full", "off"], "Back up settings, keys and sessions, or the whole home."
    ] = "quick"
    backup_keep: Annotated[Positive, "Quick backups before updates that are kept."] = 5


class NetworkSettings(Value):
    """How the outside world is reached."""

    ca_bundle: Annotated[str, "A PEM file of certificates to trust instead of the system's."] = ""
    proxy: Annotated[str, "Proxy for requests that leave this machine."] = ""
    no_proxy: Annotated[str, "Hosts reached without the proxy, with commas between them."] = ""
    force_ipv4: Annotated[bool, "Never IPv6, where that leads nowhere."] = False
    request_timeout_seconds: Annotated[Seconds, "Longest model request."] = 1800
    stream_read_timeout_seconds: Annotated[Seconds, "Longest wait for the next bytes."] = 120
    stream_stale_timeout_seconds: Annotated[Seconds, "Longest silence within a stream."] = 180
    stream_stale_giveup: Annotated[Positive, "Silent streams in a row after which to give up."] = 5


class PrivacySettings(Value):
    redact_pii: Annotated[
        bool, "In chats with others, show models no phone numbers, addresses and ids of people."
    ] = False


class ApiServerSettings(Value):
    """The HTTP server of `hermes serve`."""

    host: Annotated[str, "Address to listen at."] = "127.0.0.1"
    port: Annotated[Count, "Port to listen at; 0 takes a free one."] = 8642
    hosts: Annotated[tuple[str, ...], "Names it may be called by, besides its address."] = ()
    cors_origins: Annotated[tuple[str, ...], "Origins whose pages may call it."] = ()
    model_name: Annotated[str, "Name it goes by in `/v1/models`; empty is the profile's."] = ""
    direct_models: Annotated[bool, "Requests may name any model, not only an alias."] = False
    max_concurrent_runs: Annotated[Count, "Turns at the same time; 0 for no limit."] = 10
    stored_responses: Annotated[Positive, "Responses kept to be gone on from."] = 1_000
    show_reasoning: Annotated[bool, "Clients see the model's reasoning."] = False
    ignore_client_tools: Annotated[
        bool, "Requests may bring tools, which go unused; else they are refused."
    ] = False
    inline_media: Annotated[bool, "Pictures stand in the text of answers, as data URLs."] = False
    drain_seconds: Annotated[Count, "Seconds that running turns get when it is stopped."] = 10


class AcpSettings(Value):
    """Sessions in editors."""

    use_client_terminal: Annotated[
        bool, "Commands run in terminals of the editor, where it has them; nothing confines them."
    ] = False


class Settings(Value):
    """All settings of a home, with their defaults."""

    toolsets: Annotated[tuple[str, ...], "Toolsets that are offered."] = ("hermes-cli",)
    platform_toolsets: Annotated[
        dict[str, tuple[str, ...]], "Toolsets by surface (`cli`, `acp`), in place of `toolsets`."
    ] = {}
    timezone: Annotated[
        str, "Where times are told, such as `Europe/Berlin`; empty is this machine's zone."
    ] = ""
    prefill_messages_file: Annotated[
        str, "A JSON list of `{role, content}` that every request begins with; from the home."
    ] = ""
    file_read_max_chars: Annotated[Positive, "Characters that one read of a file may give."] = (
        100_000
    )
    context_file_max_chars: Annotated[
        Positive | None, "Characters of one project file in the prompt; null scales with the model."
    ] = None
    command_allowlist: Annotated[
        tuple[str, ...], "Effects that were allowed for ever; written by the answer `always`."
    ] = ()
    model: ModelSettings = ModelSettings()
    agent: AgentSettings = AgentSettings()
    terminal: TerminalSettings = TerminalSettings()
    tool_output: ToolOutputSettings = ToolOutputSettings()
    tool_loop_guardrails: GuardrailSettings = GuardrailSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    prompt_caching: CachingSettings = CachingSettings()
    compression: CompressionSettings = CompressionSettings()
    context: ContextSettings = ContextSettings()
    personalities: Annotated[dict[str, object], "Personalities of your own: `pirate: Arr …`."] = {}
    quick_commands: dict[str, QuickCommand] = {}
    platform_hints: Annotated[
        dict[str, object], "Hints by surface: text to append, or `replace` and `append`."
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
        tuple[FallbackSettings, ...], "Models that go on when the chosen one cannot, in order."
    ] = ()
    provider_routing: RoutingSettings = RoutingSettings()
    openrouter: OpenRouterSettings = OpenRouterSettings()
    credential_pool_strategies: Annotated[
        dict[str, PoolStrategy], "How a key is picked from several of one provider."
    ] = {}
    credential_pool_cooldowns: CooldownSettings = CooldownSettings()
    budget: BudgetSettings = BudgetSettings()
    auxiliary: AuxiliarySettings = AuxiliarySettings()
    acp: AcpSettings = AcpSettings()
    api_server: ApiServerSettings = ApiServerSettings()
    mcp_servers: dict[str, McpServerSettings] = {}
    mcp_registry: Registry = "https://registry.modelcontextprotocol.io"
    hooks: ShellHooks = {}
    hooks_auto_accept: AutoAccept = False
    plugins: PluginSettings = PluginSettings()
    stt: SttSettings = SttSettings()
    tts: TtsSettings = TtsSettings()
    web: WebSettings = WebSettings()


class Override(Value):
    """A variable that a setting may come from. A `weak` one yields to config.yaml; one with
    `when_true` is a switch: a true word gives that value, anything else says nothing."""

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
    # Before the one that asks nothing, so that whoever sets both is asked.
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
    Override(variable="API_SERVER_HOST", key="api_server.host"),
    Override(variable="API_SERVER_PORT", key="api_server.port"),
    Override(variable="API_SERVER_CORS_ORIGINS", key="api_server.cors_origins"),
    Override(variable="API_SERVER_MODEL_NAME", key="api_server.model_name"),
)

# `model: NAME` in a file means `model.default: NAME`, `budget.day: 2` means two dollars.
SHORT_FORMS = {
    "model": "default",
    **{f"budget.{period}": "usd" for period in ("day", "month", "person", "job", "task")},
}
