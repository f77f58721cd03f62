"""Settings of the gateway, of streaming in chats and of automatic resets. Those of single
platforms are in `gateway_settings`, which most starts do not load."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.codec.values import Value
from hermes.config.schema import Count, NonNegative, Positive, Seconds

Hour = Annotated[int, Meta(ge=0, le=23)]


class HumanDelaySettings(Value):
    """Pauses between the posts of one answer."""

    mode: Annotated[Literal["off", "on"], "Whether to pause."] = "off"
    min_ms: Annotated[Count, "Shortest pause, in milliseconds."] = 800
    max_ms: Annotated[Count, "Longest pause, in milliseconds."] = 2_500


class GatewaySettings(Value):
    """The process that connects messaging platforms."""

    platform_connect_timeout: Annotated[
        NonNegative, "Seconds until a platform must be connected; 0 for no limit."
    ] = 30
    restart_drain_timeout: Annotated[
        NonNegative, "Seconds that running turns get at a stop or restart."
    ] = 0
    max_inbound_media_mb: Annotated[Positive, "Maximum size of a received file, in MB."] = 50
    media_roots: Annotated[tuple[str, ...], "Further folders from which files may be sent."] = ()
    max_concurrent_sessions: Annotated[Positive | None, "Concurrent turns; null for no limit."] = (
        None
    )
    session_store_max_age_days: Annotated[
        Count, "Days until a chat without messages loses its session; 0 for never."
    ] = 90
    unauthorized_dm_behavior: Annotated[
        Literal["", "pair", "ignore"],
        "Unknown people who write directly get a pairing code or no answer; empty lets the "
        "platform choose. `platforms.NAME.extra.unauthorized_dm_behavior` overrides it.",
    ] = ""
    human_delay: HumanDelaySettings = HumanDelaySettings()
    systemd_watchdog_seconds: Annotated[
        Count, "Seconds until systemd restarts a gateway that hangs; 0 for never."
    ] = 0


class StreamingSettings(Value):
    """How answers appear in chats while they are written."""

    enabled: Annotated[bool, "Show an answer while it is written, where posts can be edited."] = (
        True
    )
    transport: Annotated[Literal["auto", "edit", "off"], "How the text grows."] = "auto"
    edit_interval: Annotated[Seconds, "Seconds between two edits."] = 0.8
    buffer_threshold: Annotated[Count, "Characters before the first post."] = 24
    cursor: Annotated[str, "Mark at the end of unfinished text."] = " ▉"
    fresh_final_after_seconds: Annotated[
        NonNegative, "Post the final text as a new message after this time; 0 for never."
    ] = 0


class SessionResetSettings(Value):
    """When a chat starts a new session by itself."""

    mode: Annotated[
        Literal["none", "idle", "daily", "both"], "Never, after idle time, once a day, or both."
    ] = "none"
    idle_minutes: Annotated[Positive, "Minutes without a message."] = 1_440
    at_hour: Annotated[Hour, "Local hour of the daily reset."] = 4
    notify: Annotated[bool, "Say so in the chat."] = True
    notify_exclude_platforms: Annotated[tuple[str, ...], "Platforms without this notice."] = (
        "api_server",
        "webhook",
    )
    bg_process_max_age_hours: Annotated[
        NonNegative, "A younger background process of the session prevents the reset."
    ] = 24
