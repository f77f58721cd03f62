"""Options of conversations: how they are split, shown, reset and limited. The settings are mapped
to these values."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import JsonObject, Value

BusyInput = Literal["interrupt", "queue", "steer"]
ToolProgressLevel = Literal["off", "new", "all", "verbose", "log"]
ResetMode = Literal["none", "idle", "daily", "both"]
ReplyMode = Literal["off", "first", "all"]


class HomeChannel(Value):
    """Where messages without another target go."""

    chat_id: str
    name: str = ""
    thread_id: str = ""
    # The environment variable that sets it; then it cannot be changed in a chat.
    env: str = ""


class ChannelOverride(Value):
    """What differs in one chat of a platform."""

    model: str = ""
    provider: str = ""
    system_prompt: str = ""


class StreamingOptions(Value):
    """How an answer is shown while it is generated."""

    enabled: bool = True
    edit_seconds: float = 0.8
    # The first message is sent after this many characters, or after `edit_seconds`.
    buffer_chars: int = 24
    cursor: str = " ▉"
    # A pause of random length between the messages of one answer, in milliseconds.
    human_delay_ms: tuple[int, int] = (0, 0)
    # An answer that took longer is posted as a new message, which notifies people; 0 for never.
    fresh_final_seconds: float = 0.0


class DisplayOptions(Value):
    """What a chat shows of a turn besides the answer."""

    streaming: bool = True
    tool_progress: ToolProgressLevel = "all"
    tool_preview_chars: int = 40
    # One message that is edited, or one message for each call.
    groups_progress: bool = True
    deletes_progress: bool = False
    interim_messages: bool = True
    long_running_notices: bool = True
    show_reasoning: bool = False


class PlatformChatOptions(Value):
    """The settings of one platform."""

    home_channel: HomeChannel | None = None
    reply_to_mode: ReplyMode = "first"
    typing_indicator: bool = True
    # Messages get reactions that show their state.
    reactions: bool = False
    restart_notification: bool = True
    channel_overrides: dict[str, ChannelOverride] = {}
    toolsets: tuple[str, ...] = ()
    hint: str = ""
    display: DisplayOptions = DisplayOptions()
    extra: JsonObject = {}

    def override(self, chat_id: str, parent_id: str = "") -> ChannelOverride:
        """What differs in this chat; that of its parent applies if it has none of its own."""
        own = self.channel_overrides.get(chat_id)
        return own or self.channel_overrides.get(parent_id) or ChannelOverride()


class ResetPolicy(Value):
    """When a conversation starts anew by itself."""

    mode: ResetMode = "none"
    idle_minutes: float = 1440
    at_hour: int = 4
    notify: bool = True
    # A younger background process of the session postpones the reset.
    process_hours: float = 24


class ResetOptions(Value):
    """The policy of a platform ranks before that of a chat type, which ranks before the default."""

    default: ResetPolicy = ResetPolicy()
    by_type: dict[str, ResetPolicy] = {}
    by_platform: dict[str, ResetPolicy] = {}
    silent_platforms: tuple[str, ...] = ("api_server", "webhook")

    def policy(self, platform: str, chat_type: str) -> ResetPolicy:
        return self.by_platform.get(platform) or self.by_type.get(chat_type) or self.default


class GatewayOptions(Value):
    """The options of all conversations of a gateway."""

    profile: str = ""
    per_user_in_groups: bool = True
    per_user_in_threads: bool = False
    reset: ResetOptions = ResetOptions()
    streaming: StreamingOptions = StreamingOptions()
    busy_mode: BusyInput = "interrupt"
    busy_ack: bool = True
    busy_ack_detail: bool = False
    # Texts that follow each other this quickly are one message.
    burst_seconds: float = 0.6
    # The same while a turn runs in `queue` mode.
    queue_merge_seconds: float = 1.5
    max_inbox: int = 20
    # 0 for no limit.
    max_concurrent_sessions: int = 0
    # Without a token or a tool event for so long, a turn is interrupted; 0 for no limit.
    inactivity_seconds: float = 1800
    approval_seconds: float = 300
    question_seconds: float = 300
    requester_only: bool = False
    redact_pii: bool = False
    media_roots: tuple[str, ...] = ()
    process_notices: Literal["concise", "all", "result", "error", "off"] = "concise"
    receipts: bool = True
    # An unused conversation is forgotten after so long; its history stays. 0 keeps all.
    route_days: float = 90
    # How long an idle session stays open.
    idle_seconds: float = 300
