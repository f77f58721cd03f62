"""All styles by name, in the order in which they are tried."""

from __future__ import annotations

from hermes.core.errors import ConfigError
from hermes.providers.textcalls.style import CallStyle
from hermes.providers.textcalls.styles import (
    gemma,
    json_tags,
    plain,
    python_calls,
    vendor_tokens,
    xml_tags,
)

AUTO = "auto"
STYLES: tuple[CallStyle, ...] = (
    *json_tags.STYLES,
    *xml_tags.STYLES,
    *vendor_tokens.STYLES,
    *gemma.STYLES,
    *python_calls.STYLES,
    *plain.STYLES,
)
# Style names by the models that use them.
ALIASES = {
    "qwen": "hermes",
    "qwen2.5": "hermes",
    "qwen3": "hermes",
    "ernie": "hermes",
    "exaone": "hermes",
    "granite4": "hermes",
    "qwen3-coder": "qwen-coder",
    "nemotron3": "qwen-coder",
    "llama3": "llama",
    "llama4-pythonic": "pythonic",
    "deepseek-v3": "deepseek",
    "deepseek-r1": "deepseek",
    "deepseek-v3.1": "deepseek",
    "deepseek-v3.2": "deepseek-dsml",
    "glm4.5": "glm",
    "kimi-k2": "kimi",
    "gemma3": "gemma",
    "minimax-m2": "minimax",
    "hunyuan": "jamba",
    "command-r": "command",
    "gpt-oss": "harmony",
    "xlam": "json",
    "anthropic": "invoke",
}


def trusted_styles(name: str) -> frozenset[str]:
    """The styles that a model is known to use; empty for `auto`. Raises ConfigError for an unknown
    style."""
    if name in ("", AUTO):
        return frozenset()
    name = ALIASES.get(name, name)
    if name == "llama":
        # Llama 3 uses all of these.
        return frozenset(("llama", "json", "function"))
    if name == "gemma":
        return frozenset(("gemma", "fenced", "pythonic", "python"))
    if name not in {style.name for style in STYLES}:
        known = ", ".join((AUTO, *sorted(style.name for style in STYLES)))
        raise ConfigError(f"There is no tool call style {name!r}; available: {known}.")
    return frozenset((name,))
