"""Caches whether sessions are offered image generation, because importing providers would delay
every start."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, decode, encode_sorted
from hermes.codec.values import Value
from hermes.config.files import replace_file
from hermes.core.errors import ConfigError
from hermes.core.prompt import ToolSpec
from hermes.providers.scope import is_plausible_key
from hermes.version import __version__

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

AUTH_FILE = "auth.json"
# Without one of these variables, no bundled provider needs to be checked.
KEYS = (
    "FAL_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "REPLICATE_API_TOKEN",
    "XAI_API_KEY",
)
_FILE = "image_tool.json"
_ENDING = "_IMAGE_MODEL"


class ImageOffer(Value):
    """`spec` is None without an available provider. `why` identifies everything that the offer
    depends on."""

    why: str
    spec: ToolSpec | None = None


def is_likely_available(run: RunContext) -> bool:
    """Return whether a key, a login or a setting suggests image generation."""
    secret = run.config.secrets.get
    return (
        run.settings.image_gen != type(run.settings.image_gen)()
        or any(is_plausible_key(secret(name)) for name in KEYS)
        or (run.home.root / AUTH_FILE).exists()
    )


def offer_key(run: RunContext) -> str:
    """Return a value that stays the same while the offer does. Of keys, only their presence
    counts."""
    secret = run.config.secrets.get
    names = {*run.config.secrets.names(), *run.env}
    try:
        auth = (run.home.root / AUTH_FILE).stat().st_mtime_ns
    except OSError:
        auth = 0
    facts = (
        __version__,
        run.settings.image_gen,
        [bool(is_plausible_key(secret(name))) for name in KEYS],
        secret("OPENAI_BASE_URL"),
        sorted((name, secret(name)) for name in names if name.endswith(_ENDING)),
        auth,
    )
    return hashlib.sha256(encode_sorted(facts)).hexdigest()[:32]


def load_offer(run: RunContext, reason: str) -> ImageOffer | None:
    try:
        offer = decode(ImageOffer, (run.home.cache / _FILE).read_bytes())
    except (OSError, DecodeError):
        return None
    return offer if offer.why == reason else None


def save_offer(run: RunContext, offer: ImageOffer) -> None:
    """Best effort: without it, the next start takes a little longer."""
    try:
        replace_file(run.home, run.home.cache / _FILE, encode_sorted(offer), durable=False)
    except ConfigError:
        return
