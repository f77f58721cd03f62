from __future__ import annotations

import sys

import pytest

from hermes.config.child_environment import child_environment


@pytest.mark.parametrize(
    "name",
    [
        "OPENROUTER_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_TOKEN", "HF_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN", "GLM_API_KEY", "Z_AI_API_KEY", "COPILOT_GITHUB_TOKEN",
        "COPILOT_API_BASE_URL", "AUXILIARY_VISION_API_KEY", "AUXILIARY_VISION_BASE_URL",
        "AZURE_FOUNDRY_API_KEY", "KIMI_CN_API_KEY", "VOICE_TOOLS_OPENAI_KEY", "STT_OPENAI_BASE_URL",
    ],
)  # fmt: skip
def test_provider_credentials_never_reach_a_child(name: str) -> None:
    assert child_environment({name: "x"}, [name]) == {}


@pytest.mark.parametrize(
    "name",
    [
        "TAVILY_API_KEY", "TELEGRAM_BOT_TOKEN", "SLACK_APP_TOKEN", "MATRIX_ACCESS_TOKEN",
        "MATRIX_PASSWORD", "TWILIO_AUTH_TOKEN", "EMAIL_PASSWORD", "FEISHU_APP_SECRET",
        "API_SERVER_KEY", "WEBHOOK_SECRET", "GATEWAY_PROXY_KEY", "GITHUB_TOKEN", "GH_TOKEN",
        "HASS_TOKEN", "SUDO_PASSWORD", "SOMETHING_NEW_API_KEY", "DINGTALK_WEBHOOK_URL",
    ],
)  # fmt: skip
def test_other_secrets_reach_a_child_only_by_name(name: str) -> None:
    assert child_environment({name: "x"}) == {}
    assert child_environment({name: "x"}, [name]) == {name: "x"}


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "LANG", "EDITOR", "DATABASE_URL", "HERMES_SESSION_ID", "HERMES_HOME",
     "SSH_AUTH_SOCK", "AWS_PROFILE", "TOKENIZERS_PARALLELISM", "KEYBOARD", "LM_STUDIO_HOME"],
)  # fmt: skip
def test_ordinary_variables_are_left_alone(name: str) -> None:
    assert child_environment({name: "x"}) == {name: "x"}


def test_only_the_interpreters_own_environment_is_hidden() -> None:
    given = {"VIRTUAL_ENV": sys.prefix, "CONDA_PREFIX": "/project/env", "PYTHONHOME": "/x"}
    assert child_environment(given) == {"CONDA_PREFIX": "/project/env"}
