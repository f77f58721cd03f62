"""Settings of sessions, compaction and the terminal display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from hermes.codec.values import Value
from hermes.config.schema import Count, Positive

if TYPE_CHECKING:
    from hermes.config.gateway_settings import PlatformDisplaySettings

# Rarely set, so `schema` loads it when a file names it.
LAZY_SECTIONS = {"PlatformDisplaySettings": "hermes.config.gateway_settings"}


class RetentionSettings(Value):
    """Retention of old sessions; by default all are kept."""

    mode: Annotated[
        Literal["off", "prune", "archive"],
        "Keep all sessions, delete old ones, or move them to `archive/`.",
    ] = "off"
    days: Annotated[Positive, "Days after which a session is old."] = 90
    min_interval_hours: Annotated[Positive, "Hours between two clean-ups."] = 24


class SessionSettings(Value):
    record: Annotated[
        bool, "Record the raw bytes of model calls, so that sessions can be replayed."
    ] = False
    retention: RetentionSettings = RetentionSettings()
    write_json_snapshots: Annotated[
        bool, "Also write each session to `sessions/session_ID.json`, after every turn."
    ] = False


class SessionSearchSettings(Value):
    """The session search tool."""

    summarize: Annotated[
        bool, "Summarise results with a model by default; slower, and costs tokens."
    ] = False


Share = Annotated[float, Meta(gt=0)]


class CompressionSettings(Value):
    """When a long conversation is compacted, and what stays verbatim."""

    enabled: Annotated[bool, "Compact conversations before they fill the context window."] = True
    threshold: Annotated[
        Share, "Share of the context window that triggers compaction; higher in small windows."
    ] = 0.5
    target_ratio: Annotated[
        Share, "Share of the compaction threshold that the newest messages may use."
    ] = 0.2
    protect_first_n: Annotated[
        Count, "Number of first messages that the first compaction keeps verbatim, if they fit."
    ] = 3
    protect_last_n: Annotated[
        Count, "Number of newest messages that are kept verbatim, if they fit."
    ] = 20
    abort_on_summary_failure: Annotated[
        bool, "If the summary fails, remove no messages; end the turn if the prompt does not fit."
    ] = False
    in_place: Annotated[
        bool, "Keep the session after a compaction; false: the next message starts a child session."
    ] = True
    hygiene_hard_message_limit: Annotated[
        Positive, "Number of messages that triggers compaction."
    ] = 5_000
    model_thresholds: Annotated[
        dict[str, float], "Values of `threshold` for models whose name contains the key."
    ] = {}


class ContextSettings(Value):
    engine: Annotated[str, "Compaction engine; plugins may add others."] = "compressor"
    direct_tool_tokens: Annotated[
        Count, "Maximum tokens of tool schemas in a request; `tool_search` finds the other tools."
    ] = 2_250


class DisplaySettings(Value):
    """What the terminal shows."""

    personality: Annotated[str, "Personality of new sessions."] = ""
    language: Annotated[
        Literal["en", "de", "es", "fr", "ja", "tr", "uk", "zh"],
        "Language of the interface; models answer in the language of the prompt.",
    ] = "en"
    streaming: Annotated[bool, "Show an answer while it is generated."] = True
    show_reasoning: Annotated[bool, "Show the model's reasoning."] = False
    show_cost: Annotated[bool, "Show the cost in the status bar."] = False
    tool_progress: Annotated[
        Literal["off", "new", "all", "verbose"],
        "Tool calls to show: none, the first of several calls of a tool, all, or all with details.",
    ] = "all"
    tool_progress_grouping: Annotated[
        Literal["accumulate", "separate"], "In chats, tool lines share one post or have their own."
    ] = "accumulate"
    tool_progress_command: Annotated[bool, "In chats, offer `/verbose`."] = False
    cleanup_progress: Annotated[bool, "In chats, delete tool lines after a successful turn."] = (
        False
    )
    long_running_notifications: Annotated[bool, "In chats, say every few minutes what goes on."] = (
        True
    )
    tool_preview_length: Annotated[
        Count, "Maximum characters of a tool call preview; 0 for no limit."
    ] = 0
    turn_completion_explainer: Annotated[bool, "Explain why a turn ended without an answer."] = True
    final_response_markdown: Annotated[
        Literal["render", "strip", "raw"],
        "Markdown in answers: rendered, without its marks, or as it is.",
    ] = "render"
    busy_input_mode: Annotated[
        Literal["interrupt", "queue", "steer"], "What happens to input that you send during a turn."
    ] = "interrupt"
    busy_ack_enabled: Annotated[bool, "In chats, confirm input during a turn."] = True
    busy_ack_detail: Annotated[bool, "Add to it what the turn is doing."] = False
    platforms: dict[str, PlatformDisplaySettings] = {}
    resume_display: Annotated[
        Literal["full", "minimal", "off"], "How much of a resumed session is shown."
    ] = "full"
    resume_exchanges: Annotated[Count, "Number of exchanges shown when a session is resumed."] = 10
    skin: Annotated[str, "Colours, symbols and labels: a built-in skin or one in `skins/`."] = (
        "default"
    )
    kaomoji: Annotated[bool, "Show faces next to the spinner if the skin has them."] = True
    inline_diffs: Annotated[bool, "Show a diff after an edit."] = True
    memory_notifications: Annotated[
        Literal["on", "off", "verbose"],
        "Notices about changed memory and skills: one line, none, or the full text.",
    ] = "on"
    interim_assistant_messages: Annotated[
        bool, "Show text that the model writes between tool calls."
    ] = True
    background_process_notifications: Annotated[
        Literal["all", "concise", "off"],
        "Notices about background processes: some output, one line, or none. Chats of the gateway "
        "use `concise` unless this is set.",
    ] = "all"
    file_mutation_verifier: Annotated[bool, "Show a notice if all edits of a turn failed."] = True
    timestamps: Annotated[bool, "Show the time of each message."] = False
    timestamp_format: Annotated[str, "Time format, as for `date`."] = "%H:%M"
    bell_on_complete: Annotated[bool, "Ring the terminal bell when a turn ends."] = False
    compact: Annotated[bool, "Use the short banner at any window width."] = False
    status_bar: Annotated[bool, "Show model, context and time above the input."] = True


class QuickCommand(Value):
    """A user-defined slash command: `exec` runs a shell command without the model, `alias` is
    another name for a slash command."""

    type: Annotated[Literal["exec", "alias"], "Kind of command."] = "exec"
    command: Annotated[str, "Shell command for `exec`."] = ""
    target: Annotated[str, "Slash command for `alias`, with its arguments."] = ""
