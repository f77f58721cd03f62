"""Settings of platforms: variables and config.yaml say the same, and variables win."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.config.gateway_settings import (
    PlatformDisplay,
    platform_display,
    platform_options,
    reset_policy,
    variable_name,
)
from hermes.config.home import Home
from hermes.config.load import Config, load
from hermes.core.errors import ConfigError

Load = Callable[..., Config]


@pytest.fixture
def loaded(tmp_path: Path) -> Load:
    def read(text: str = "", dotenv: str = "", **env: str) -> Config:
        (tmp_path / "config.yaml").write_text(text)
        (tmp_path / ".env").write_text(dotenv)
        return load(Home(tmp_path), env=env)

    return read


def test_a_variable_is_the_twin_of_a_key_under_extra(loaded: Load) -> None:
    assert variable_name("slack", "require_mention") == "SLACK_REQUIRE_MENTION"
    text = "platforms: {slack: {extra: {require_mention: true, allowed_channels: [C1, 2]}}}"
    from_file = platform_options(loaded(text), "slack")
    from_env = platform_options(
        loaded(SLACK_REQUIRE_MENTION="yes", SLACK_ALLOWED_CHANNELS="C1, 2"), "slack"
    )
    for options in (from_file, from_env):
        assert options.flag("require_mention")
        assert options.items("allowed_channels") == ("C1", "2")
    assert from_env.items("nothing") is None


def test_a_variable_overrides_the_file_and_env_file_the_process(loaded: Load) -> None:
    text = "platforms: {slack: {reply_to_mode: all, extra: {require_mention: true}}}"
    config = loaded(
        text,
        "SLACK_REQUIRE_MENTION=false\nSLACK_REPLY_TO_MODE=off\n",
        SLACK_REQUIRE_MENTION="true",
    )
    options = platform_options(config, "slack")
    assert not options.flag("require_mention", default=True)
    assert options.reply_to_mode == "off"


def test_an_empty_list_is_not_the_same_as_none(loaded: Load) -> None:
    options = platform_options(loaded("platforms: {x: {extra: {allow_admin_from: []}}}"), "x")
    assert options.items("allow_admin_from") == ()


def test_variables_without_the_prefix_belong_to_a_platform_that_names_them(loaded: Load) -> None:
    config = loaded("platforms: {sms: {extra: {twilio_auth_token: t}}}", TWILIO_ACCOUNT_SID="AC")
    further = ("TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN")
    variables = platform_options(config, "sms", further).variables
    assert variables["TWILIO_ACCOUNT_SID"] == "AC"
    assert variables["TWILIO_AUTH_TOKEN"] == "t"
    assert "TWILIO_ACCOUNT_SID" not in platform_options(config, "slack").variables


def test_numbers_are_ids_of_home_channels(loaded: Load) -> None:
    text = "platforms: {telegram: {home_channel: {chat_id: -100123, thread_id: 7, name: Us}}}"
    options = platform_options(loaded(text), "telegram")
    assert (options.home_chat_id, options.home_thread_id) == ("-100123", "7")
    other = platform_options(loaded(text, TELEGRAM_HOME_CHANNEL="5"), "telegram")
    assert (other.home_chat_id, other.home_name) == ("5", "Us")


def test_an_explicit_no_in_the_file_wins_over_the_variable(loaded: Load) -> None:
    off = loaded("platforms: {whatsapp: {enabled: false}}", WHATSAPP_ENABLED="true")
    assert platform_options(off, "whatsapp").enabled is False
    assert platform_options(loaded(WHATSAPP_ENABLED="true"), "whatsapp").enabled is True
    assert platform_options(loaded(), "whatsapp").enabled is None


def test_the_platform_decides_over_the_type_and_the_type_over_the_default(loaded: Load) -> None:
    config = loaded(
        "session_reset: {mode: daily, at_hour: 5}\n"
        "reset_by_type: {dm: {mode: idle, idle_minutes: 9}}\n"
        "reset_by_platform: {slack: {idle_minutes: 3}}\n"
    )
    policy = reset_policy(config, "slack", "dm")
    assert (policy.mode, policy.idle_minutes, policy.at_hour) == ("idle", 3, 5)
    assert reset_policy(config, "matrix", "group").mode == "daily"


def test_what_suits_a_platform_gives_way_to_what_somebody_set(loaded: Load) -> None:
    quiet = platform_display(loaded(), "signal")
    assert quiet == PlatformDisplay(
        streaming=False,
        tool_progress="off",
        tool_preview_length=40,
        show_reasoning=False,
        interim_assistant_messages=False,
        long_running_notifications=False,
        cleanup_progress=False,
        busy_input_mode="interrupt",
        background_process_notifications="concise",
    )
    text = "display: {tool_progress: new, platforms: {signal: {streaming: true}}}"
    display = platform_display(loaded(text), "signal")
    assert (display.tool_progress, display.streaming) == ("new", True)
    asked = loaded(text, HERMES_GATEWAY_BUSY_INPUT_MODE="queue")
    assert platform_display(asked, "signal").busy_input_mode == "queue"


def test_an_unknown_value_of_a_variable_is_named(loaded: Load) -> None:
    with pytest.raises(ConfigError, match="HERMES_GATEWAY_BUSY_INPUT_MODE"):
        platform_display(loaded(HERMES_GATEWAY_BUSY_INPUT_MODE="loud"), "slack")


def test_a_home_without_platforms_does_not_load_their_settings(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hermes.config.home import Home;"
        "from hermes.config.load import load; load(Home(Path(sys.argv[1])), env={});"
        "print('hermes.config.gateway_settings' in sys.modules)"
    )
    (tmp_path / "config.yaml").write_text("display: {streaming: true}\n")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
