"""Spells model names for each vendor and resolves short names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from hermes.codec.values import Value

if TYPE_CHECKING:
    from hermes.providers.model_catalogue import ModelCatalogue, Vendor

NameStyle = Literal["own", "slug", "bare", "as_is"]
"""own: removes this vendor's prefix; slug: every name has a vendor prefix; bare: removes any
prefix; as_is: leaves names unchanged."""

# Maker prefix by the start of a model name, as aggregators spell it.
MAKERS = {
    "claude": "anthropic", "gpt": "openai", "codex": "openai", "o1": "openai", "o3": "openai",
    "o4": "openai", "gemini": "google", "gemma": "google", "deepseek": "deepseek", "glm": "z-ai",
    "kimi": "moonshotai", "grok": "x-ai", "qwen": "qwen", "minimax": "minimax",
    "llama": "meta-llama", "mimo": "xiaomi", "nemotron": "nvidia", "hermes": "nousresearch",
    "mistral": "mistralai", "devstral": "mistralai", "codestral": "mistralai", "step": "stepfun",
    "trinity": "arcee-ai",
}  # fmt: skip
# What follows the colon in names of local models: `qwen3:8b`, `llama3.2:latest`.
_TAG = (
    r"latest|cloud|instruct|chat|base|text|code|vision|thinking|preview|mini|medium|small|large"
    r"|(?:fp|bf|f)(?:16|32)|i?q\d\w*"
    r"|[ea]?\d+(?:\.\d+)?(?:x\d+(?:\.\d+)?)?[bmkt](?:-.+)?|v?\d+(?:\.\d+)*(?:-.+)?"
    r"|.+-(?:i?q\d\w*|(?:fp|bf|f)16|cloud)"
)


class Shorthand(Value):
    """An alias for the newest model whose name contains all of `match` and none of `but`."""

    match: tuple[str, ...]
    but: tuple[str, ...] = ()


def spell_for_vendor(vendor: Vendor, model: str) -> str:
    """Return the name as this vendor spells it."""
    model = model.strip()
    if vendor.names == "slug" and model and "/" not in model:
        makers = {**MAKERS, **vendor.makers}.items()
        known = (maker for start, maker in makers if model.lower().startswith(start))
        model = f"{maker}/{model}" if (maker := next(known, "")) else model
    elif vendor.names == "bare":
        model = model.rpartition("/")[2]
    elif vendor.names == "own":
        maker, slash, rest = model.partition("/")
        if slash and maker.lower() in (vendor.name, *vendor.aliases, *vendor.slugs):
            model = rest
    if vendor.hyphens and model.rpartition("/")[2].startswith("claude"):
        model = model.replace(".", "-")
    return model.lower() if vendor.lower else model


def split_model_ref(catalogue: ModelCatalogue, text: str) -> tuple[Vendor | None, str]:
    """Split `vendor:model`. There is no vendor where the colon belongs to the name, as in tags of
    local models and variants of aggregators."""
    head, colon, rest = text.partition(":")
    vendor = catalogue.vendor(head.strip().lower()) if colon and rest.strip() else None
    variant = any(rest in each.suffixes for each in catalogue.vendors.values())
    if vendor is None or variant:
        return None, text
    tag = "/" not in rest and re.fullmatch(_TAG, rest.strip(), re.IGNORECASE)
    return (None, text) if tag else (vendor, rest.strip())


def newest_match(catalogue: ModelCatalogue, word: str, models: Iterable[str]) -> str:
    """Return the newest of these models that a short name like `sonnet` can mean, or ""."""
    shorthand = catalogue.shorthands.get(word.strip().lower())
    if shorthand is None:
        return ""
    matches = []
    for model in models:
        name = _tail(model)
        unwanted = any(word in name for word in shorthand.but) or _has_word(name, _NOT_CHAT)
        if not unwanted and all(word in name for word in shorthand.match):
            matches.append(model)
    return max(matches, key=_sort_key, default="")


def _tail(model: str) -> str:
    return model.lower().rpartition("/")[2]


# Parts of names of models that are not for chat.
_NOT_CHAT = (
    "image", "audio", "tts", "embed", "realtime", "live", "transcribe", "whisper", "search",
    "guard", "moderation", "rerank", "video", "imagine", "robotics", "computer", "deep-research",
)  # fmt: skip
# Parts of names of lesser variants, chosen only when nothing else matches.
_LESSER = (
    "mini", "nano", "lite", "small", "tiny", "air", "free", "preview", "beta", "exp", "vision",
    "non-reasoning", "distill", "fast", "highspeed", "chat-latest",
)  # fmt: skip


def _has_word(name: str, words: tuple[str, ...]) -> bool:
    """Return whether one of the words is a whole part of the name: `gemini` does not contain
    `mini`."""
    return re.search(rf"(?:^|[-_.:])(?:{'|'.join(words)})(?:$|[-_.:])", name) is not None


def _sort_key(model: str) -> tuple[bool, tuple[float, ...], int, int]:
    """Return a key that sorts better and newer models last: full before lesser variants, then by
    version."""
    name = _tail(model)
    # 4-6 and 4.6 both mean 4.6; sizes, dates and lengths are not versions.
    plain = re.sub(r"20\d\d-\d\d-\d\d|\d{4,}|[ea]?\d+(?:\.\d+)?(?:x\d+)?[bkm]\b", "", name)
    found = re.search(r"(\d+)(?:[.-](\d{1,2})\b)?", plain)
    version = (float(f"{found[1]}.{found[2] or 0}"),) if found else ()
    full = not _has_word(name, _LESSER)
    return full, version, -len(re.findall(r"[a-z]+", name)), -len(name)
