"""Settings of messaging platforms and their variables: `SLACK_REQUIRE_MENTION` is
`platforms.slack.extra.require_mention`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, JsonValue, Value, replace
from hermes.config.chat_settings import Hour, SessionResetSettings
from hermes.config.environment import TRUE_WORDS
from hermes.config.schema import Count, Positive
from hermes.core.errors import ConfigError

if TYPE_CHECKING:
    from hermes.config.load import Config

ReplyMode = Literal["off", "first", "all"]
ToolProgress = Literal["off", "new", "all", "verbose", "log"]
BusyInput = Literal["interrupt", "queue", "steer"]
ProcessNotices = Literal["all", "concise", "result", "error", "off"]


class HomeChannelSettings(Value):
    """The chat of a platform that gets messages without an explicit target."""

    chat_id: Annotated[str | int, "Id of the chat."] = ""
    name: Annotated[str, "Name of the chat, for display."] = ""
    thread_id: Annotated[str | int, "Thread in the chat."] = ""


class ChannelOverrideSettings(Value):
    """What is different in one chat."""

    model: Annotated[str, "Model of new sessions."] = ""
    provider: Annotated[str, "Provider of that model."] = ""
    system_prompt: Annotated[str, "Text appended to the system prompt."] = ""


class PlatformSettings(Value):
    """One messaging platform."""

    enabled: Annotated[
        bool | None, "Use this platform; null uses it when its credentials are set."
    ] = None
    home_channel: HomeChannelSettings = HomeChannelSettings()
    reply_to_mode: Annotated[
        ReplyMode, "Quote the message that is answered: never, in the first post, in all posts."
    ] = "first"
    typing_indicator: Annotated[bool, "Show that an answer is being written."] = True
    gateway_restart_notification: Annotated[bool, "Tell the chat that a restart is over."] = True
    channel_overrides: dict[str, ChannelOverrideSettings] = {}
    extra: Annotated[dict[str, object], "Settings of this platform; see its page in the docs."] = {}


class ResetOverrideSettings(Value):
    """What differs from `session_reset`."""

    mode: Annotated[Literal["none", "idle", "daily", "both"] | None, "As `session_reset.mode`."] = (
        None
    )
    idle_minutes: Annotated[Positive | None, "As `session_reset.idle_minutes`."] = None
    at_hour: Annotated[Hour | None, "As `session_reset.at_hour`."] = None
    notify: Annotated[bool | None, "As `session_reset.notify`."] = None


class PlatformDisplaySettings(Value):
    """What chats of one platform show, if it differs from `display`."""

    streaming: Annotated[bool | None, "As `streaming.enabled`."] = None
    tool_progress: Annotated[
        ToolProgress | None,
        "As `display.tool_progress`; `log` writes to `logs/tool_calls.log` instead of the chat.",
    ] = None
    tool_preview_length: Annotated[Count | None, "As `display.tool_preview_length`."] = None
    show_reasoning: Annotated[bool | None, "As `display.show_reasoning`."] = None
    interim_assistant_messages: Annotated[
        bool | None, "As `display.interim_assistant_messages`."
    ] = None
    long_running_notifications: Annotated[
        bool | None, "As `display.long_running_notifications`."
    ] = None
    cleanup_progress: Annotated[bool | None, "As `display.cleanup_progress`."] = None
    background_process_notifications: Annotated[
        ProcessNotices | None,
        "As `display.background_process_notifications`; also only results or only failures.",
    ] = None


class PlatformDisplay(Value):
    """What chats of one platform show."""

    streaming: bool
    tool_progress: ToolProgress
    tool_preview_length: int
    show_reasoning: bool
    interim_assistant_messages: bool
    long_running_notifications: bool
    cleanup_progress: bool
    busy_input_mode: BusyInput
    background_process_notifications: ProcessNotices


class PlatformOptions(Value):
    """The settings of one platform, from variables and config.yaml together."""

    name: str
    # None: nobody has said so.
    enabled: bool | None = None
    home_chat_id: str = ""
    home_name: str = ""
    home_thread_id: str = ""
    reply_to_mode: ReplyMode = "first"
    typing_indicator: bool = True
    gateway_restart_notification: bool = True
    channel_overrides: dict[str, ChannelOverrideSettings] = {}
    extra: JsonObject = {}
    # Every setting of the platform by the name of its variable, wherever the value comes from.
    variables: dict[str, str] = {}

    def text(self, key: str) -> str:
        """The value of `extra.<key>` or its variable, as text."""
        return self.variables.get(variable_name(self.name, key), "")

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self.text(key).strip().lower()
        return value in TRUE_WORDS if value else default

    def items(self, key: str) -> tuple[str, ...] | None:
        """The value of a list; None when it is not set."""
        name = variable_name(self.name, key)
        return split_list(self.variables[name]) if name in self.variables else None


def variable_name(platform: str, key: str) -> str:
    """The variable of `platforms.<platform>.extra.<key>`."""
    return f"{platform}_{key}".upper().replace("-", "_")


def split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def value_text(value: JsonValue) -> str:
    """A value of config.yaml as its variable would have it: lists are comma-separated."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(value_text(each) for each in value)
    return "" if value is None else str(value)


def platform_variables(
    name: str, extra: JsonObject, variables: Mapping[str, str], further: tuple[str, ...] = ()
) -> dict[str, str]:
    """The settings of a platform by variable: `extra`, then what the environment overrides.
    `further` are variables without the prefix of the platform."""
    found = {
        variable_name(name, key): value_text(value)
        for key, value in extra.items()
        if not isinstance(value, dict)
    }
    found |= {
        each: found[variable_name(name, each)] for each in further if _twin(each, name, found)
    }
    prefixes = (variable_name(name, ""), f"HERMES_{variable_name(name, '')}")
    for variable, value in variables.items():
        if value and (variable.startswith(prefixes) or variable in further):
            found[variable] = value
    return found


def _twin(variable: str, name: str, found: Mapping[str, str]) -> bool:
    return (
        not variable.startswith(variable_name(name, "")) and variable_name(name, variable) in found
    )


def platform_options(config: Config, name: str, further: tuple[str, ...] = ()) -> PlatformOptions:
    """The settings of a platform; variables override config.yaml."""
    stored = config.settings.platforms.get(name, PlatformSettings())
    extra: JsonObject = dict(stored.extra)
    found = platform_variables(name, extra, config.secrets.variables(), further)
    home = stored.home_channel
    enabled = found.get(variable_name(name, "enabled"), "").strip().lower()
    mode = found.get(variable_name(name, "reply_to_mode"), "")
    return PlatformOptions(
        name=name,
        enabled=stored.enabled
        if stored.enabled is not None or not enabled
        else enabled in TRUE_WORDS,
        home_chat_id=found.get(variable_name(name, "home_channel"), str(home.chat_id)),
        home_name=found.get(variable_name(name, "home_channel_name"), home.name),
        home_thread_id=found.get(
            variable_name(name, "home_channel_thread_id"), str(home.thread_id)
        ),
        reply_to_mode=mode if mode in ("off", "first", "all") else stored.reply_to_mode,  # type: ignore[arg-type]
        typing_indicator=stored.typing_indicator,
        gateway_restart_notification=stored.gateway_restart_notification,
        channel_overrides=stored.channel_overrides,
        extra=extra,
        variables=found,
    )


def reset_policy(config: Config, platform: str, chat_type: str) -> SessionResetSettings:
    """The reset rules of a chat: of its platform, else of its type, else the default."""
    settings = config.settings
    policy = settings.session_reset
    for override in (
        settings.reset_by_type.get(chat_type),
        settings.reset_by_platform.get(platform),
    ):
        if override is not None:
            changes = {
                name: value
                for name in override.__struct_fields__
                if (value := getattr(override, name)) is not None
            }
            policy = replace(policy, **changes)
    return policy


# What a platform shows unless the settings say otherwise: tool progress, streaming, and whether
# it tells what happens between tool calls and during long work.
_QUIET: tuple[ToolProgress, bool | None, bool] = ("off", False, False)
_MODEST: tuple[ToolProgress, bool | None, bool] = ("new", None, True)
_DISPLAYS: dict[str, tuple[ToolProgress, bool | None, bool]] = {
    "discord": ("all", None, True),
    "telegram": ("off", None, True),
    "slack": ("off", None, True),
    **dict.fromkeys(("mattermost", "matrix", "feishu", "whatsapp"), _MODEST),
    **dict.fromkeys(("signal", "wecom", "dingtalk"), _QUIET),
    **dict.fromkeys(("email", "sms", "webhook", "homeassistant"), _QUIET),
}
PREVIEW_CHARS = 40
_DISPLAY_VARIABLES = {
    "busy_input_mode": "HERMES_GATEWAY_BUSY_INPUT_MODE",
    "background_process_notifications": "HERMES_BACKGROUND_NOTIFICATIONS",
}


def platform_display(config: Config, name: str) -> PlatformDisplay:
    """What chats of a platform show: `display.platforms.<name>`, else `display`, else what suits
    the platform."""
    settings, variables = config.settings, config.secrets.variables()
    own = settings.display.platforms.get(name, PlatformDisplaySettings())
    progress, streams, talkative = _DISPLAYS.get(name, ("all", None, True))

    def choose(key: str, suited: object, general: str = "") -> object:
        value = getattr(own, key)
        if value is not None:
            return value
        found = config.explain(general or f"display.{key}")
        return suited if found.source.kind == "default" and suited is not None else found.value

    values = {
        "streaming": choose("streaming", streams, "streaming.enabled"),
        "tool_progress": choose("tool_progress", progress),
        "tool_preview_length": choose("tool_preview_length", PREVIEW_CHARS),
        "show_reasoning": choose("show_reasoning", None),
        "interim_assistant_messages": choose("interim_assistant_messages", talkative),
        "long_running_notifications": choose("long_running_notifications", talkative),
        "cleanup_progress": choose("cleanup_progress", None),
        "background_process_notifications": choose("background_process_notifications", "concise"),
        "busy_input_mode": settings.display.busy_input_mode,
    }
    for key, variable in _DISPLAY_VARIABLES.items():
        values[key] = variables.get(variable) or values[key]
    try:
        return convert(PlatformDisplay, values)
    except DecodeError as error:
        names = " or ".join(_DISPLAY_VARIABLES.values())
        raise ConfigError(f"{names} has an unknown value ({error}); correct it.") from error
