"""Chooses the environment variables of child processes: all except the secrets of Hermes."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping

# Keys and addresses of model providers: no user or skill setting passes them on. Looked up rather
# than matched, because this runs at every start.
_VENDORS = frozenset(
    (
        "AI_GATEWAY", "ALIBABA_CODING_PLAN", "ANTHROPIC", "ARCEE", "AZURE_FOUNDRY", "AZURE_OPENAI",
        "CEREBRAS", "COHERE", "COPILOT", "COPILOT_GITHUB", "DASHSCOPE", "DEEPINFRA", "DEEPSEEK",
        "FIREWORKS", "GEMINI", "GLM", "GMI", "GOOGLE", "GROQ", "HF", "HUGGINGFACE", "KILOCODE",
        "KIMI", "KIMI_CN", "KIMI_CODING", "LM", "MINIMAX", "MINIMAX_CN", "MISTRAL", "MOONSHOT",
        "NOUS", "NOVITA", "NVIDIA", "OLLAMA", "OPENAI", "OPENCODE_GO", "OPENCODE_ZEN", "OPENROUTER",
        "PERPLEXITY", "QWEN", "STEPFUN", "TENCENT_TOKENHUB", "TOGETHER", "UPSTAGE", "XAI", "XIAOMI",
        "ZAI", "Z_AI",
    )
)  # fmt: skip
_VENDOR_ENDINGS = ("_API_KEY", "_API_KEYS", "_API_BASE", "_API_BASE_URL", "_BASE_URL", "_TOKEN")
_OURS = frozenset(("AWS_BEARER_TOKEN_BEDROCK", "CLAUDE_CODE_OAUTH_TOKEN", "VOICE_TOOLS_OPENAI_KEY"))

# Secrets of tools and messaging: hidden unless the user names one.
_CHANNELS = (
    "BLUEBUBBLES_", "DINGTALK_", "DISCORD_", "EMAIL_", "FEISHU_", "GATEWAY_", "GH_", "GITHUB_",
    "HASS_", "HERMES_", "IMAP_", "LARK_", "LINE_", "MATRIX_", "MATTERMOST_", "QQ_", "SIGNAL_",
    "SLACK_", "SMS_", "SMTP_", "TEAMS_", "TELEGRAM_", "TWILIO_", "WECOM_", "WEIXIN_", "WHATSAPP_",
)  # fmt: skip
_SECRET_ENDINGS = ("_TOKEN", "_SECRET", "_PASSWORD", "_KEY", "_SID", "_PAT", "_WEBHOOK_URL")
_PRIVATE = frozenset(
    ("API_SERVER_KEY", "BROWSERBASE_PROJECT_ID", "SUDO_PASSWORD", "WEBHOOK_SECRET")
)

_ADDRESSES = ("_BASE_URL", "_API_BASE", "_PROJECT_ID")

# Set for the interpreter that runs Hermes; a project's own environment is left alone.
_INTERPRETER = frozenset(("PYTHONHOME", "__PYVENV_LAUNCHER__"))
_PREFIXES = frozenset(("VIRTUAL_ENV", "CONDA_PREFIX"))


def child_environment(
    environ: Mapping[str, str], passthrough: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables of `environ` for commands, tool servers and code. `passthrough` names
    secrets that a child may see; those of model providers stay hidden even then."""
    return {name: value for name, value in environ.items() if _visible(name, value, passthrough)}


def hidden_values(environ: Mapping[str, str]) -> list[str]:
    """Return the secrets that are hidden from children. Hidden addresses are not secrets."""
    return [
        value
        for name, value in environ.items()
        if (is_providers(name) or _is_private(name)) and not name.endswith(_ADDRESSES)
    ]


def _visible(name: str, value: str, passthrough: Collection[str]) -> bool:
    if is_providers(name):
        return False
    if name in passthrough:
        return True
    if name in _PREFIXES:
        return value != sys.prefix
    return name not in _INTERPRETER and not _is_private(name)


def is_providers(name: str) -> bool:
    """Return whether the variable belongs to a model provider, so that nothing passes it on."""
    if name in _OURS:
        return True
    if name.startswith(("AUXILIARY_", "STT_", "TTS_")):
        return name.endswith(("_API_KEY", "_BASE_URL"))
    return any(
        name.endswith(ending) and name.removesuffix(ending) in _VENDORS
        for ending in _VENDOR_ENDINGS
    )


def _is_private(name: str) -> bool:
    if name in _PRIVATE or name.endswith(("_API_KEY", "_API_KEYS")):
        return True
    return name.startswith(_CHANNELS) and name.endswith(_SECRET_ENDINGS)
