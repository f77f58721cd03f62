"""Maps the settings of a home to the options of its conversations."""

from __future__ import annotations

from hermes.config.chat_settings import SessionResetSettings
from hermes.config.gateway_settings import (
    platform_display,
    reset_policy,
    variable_name,
)
from hermes.config.load import Config
from hermes.surfaces.gateway.manifests import ConfiguredPlatform
from hermes.surfaces.gateway.options import (
    ChannelOverride,
    DisplayOptions,
    GatewayOptions,
    HomeChannel,
    PlatformChatOptions,
    ResetOptions,
    ResetPolicy,
    StreamingOptions,
)


def gateway_options(config: Config) -> GatewayOptions:
    """The options of all conversations."""
    settings = config.settings
    gateway, delay = settings.gateway, settings.gateway.human_delay
    display = platform_display(config, "")
    return GatewayOptions(
        profile=config.home.profile if config.home.profile != "default" else "",
        per_user_in_groups=settings.group_sessions_per_user,
        per_user_in_threads=settings.thread_sessions_per_user,
        reset=_reset_options(config),
        streaming=StreamingOptions(
            enabled=settings.streaming.enabled and settings.streaming.transport != "off",
            edit_seconds=settings.streaming.edit_interval,
            buffer_chars=settings.streaming.buffer_threshold,
            cursor=settings.streaming.cursor,
            human_delay_ms=(delay.min_ms, delay.max_ms) if delay.mode == "on" else (0, 0),
            fresh_final_seconds=settings.streaming.fresh_final_after_seconds,
        ),
        busy_mode=display.busy_input_mode,
        busy_ack=settings.display.busy_ack_enabled,
        busy_ack_detail=settings.display.busy_ack_detail,
        max_concurrent_sessions=gateway.max_concurrent_sessions or 0,
        inactivity_seconds=settings.agent.gateway_timeout,
        approval_seconds=settings.approvals.gateway_timeout,
        requester_only=settings.approvals.requester_only,
        redact_pii=settings.privacy.redact_pii,
        media_roots=gateway.media_roots,
        process_notices=display.background_process_notifications,
        route_days=gateway.session_store_max_age_days,
    )


def _reset_options(config: Config) -> ResetOptions:
    """The policies by platform and by type; each has all values."""
    settings = config.settings
    return ResetOptions(
        default=_policy(settings.session_reset),
        by_type={name: _policy(reset_policy(config, "", name)) for name in settings.reset_by_type},
        by_platform={
            name: _policy(reset_policy(config, name, "")) for name in settings.reset_by_platform
        },
        silent_platforms=settings.session_reset.notify_exclude_platforms,
    )


def _policy(policy: SessionResetSettings) -> ResetPolicy:
    return ResetPolicy(
        mode=policy.mode,
        idle_minutes=policy.idle_minutes,
        at_hour=policy.at_hour,
        notify=policy.notify,
        process_hours=policy.bg_process_max_age_hours,
    )


def chat_options(config: Config, platform: ConfiguredPlatform) -> PlatformChatOptions:
    """The options of the conversations of one platform."""
    options, name = platform.options, platform.manifest.name
    abilities = platform.manifest.abilities
    display = platform_display(config, name)
    channel_variable = variable_name(name, "home_channel")
    home = HomeChannel(
        chat_id=options.home_chat_id,
        name=options.home_name,
        thread_id=options.home_thread_id,
        env=channel_variable if config.secrets.get(channel_variable) else "",
    )
    return PlatformChatOptions(
        home_channel=home if home.chat_id else None,
        reply_to_mode=options.reply_to_mode,
        typing_indicator=options.typing_indicator,
        reactions=abilities.reactions and options.flag("reactions", default=abilities.shows_state),
        restart_notification=options.gateway_restart_notification,
        channel_overrides={
            chat: ChannelOverride(
                model=each.model, provider=each.provider, system_prompt=each.system_prompt
            )
            for chat, each in options.channel_overrides.items()
        },
        toolsets=config.settings.platform_toolsets.get(name, ()),
        display=DisplayOptions(
            streaming=display.streaming,
            tool_progress=display.tool_progress,
            tool_preview_chars=display.tool_preview_length,
            groups_progress=config.settings.display.tool_progress_grouping == "accumulate",
            deletes_progress=display.cleanup_progress,
            interim_messages=display.interim_assistant_messages,
            long_running_notices=display.long_running_notifications,
            show_reasoning=display.show_reasoning,
        ),
        extra=options.extra,
    )
