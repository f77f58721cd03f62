"""Determines the context window of a model, and learns it from errors."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Literal

from hermes.codec.atomic_files import replace_file
from hermes.codec.values import Value
from hermes.core.errors import ProviderError
from hermes.net.addresses import host_of, is_local
from hermes.providers.model_catalogue import ModelCatalogue, Vendor
from hermes.providers.model_servers import ModelListing
from hermes.providers.profile import UNKNOWN_WINDOW, merge_families

# Sizes to try next when an overflow error names no number.
TIERS = (256_000, 128_000, 64_000, 32_000, 16_000, 8_000)
_LINE = (
    r"^\s*(?P<key>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s#'\"].*?)\s*:\s+"
    r"(?P<tokens>\d{3,9})\s*(?P<note>#.*)?$"
)
_GUESS = "# guess"
_HEAD = "# Context windows in tokens, learned from errors of servers. Delete a line to forget it.\n"


class LearnedWindow(Value):
    """A context window that an error revealed."""

    tokens: int
    guess: bool = False  # a step down after an error that named no number


class LearnedWindows:
    """The file `context_length_cache.yaml` of a home. Reading never raises; if writing fails,
    the learned window is not saved."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, LearnedWindow] | None = None

    def window(self, model: str, url: str) -> LearnedWindow | None:
        if self._known is None:
            self._known = self._read()
        return self._known.get(_key(model, url))

    def learn(self, model: str, url: str, tokens: int, *, guess: bool = False) -> None:
        """Save a window. A reported number replaces a guess; a guess never replaces a smaller
        number."""
        known = self._read()
        old = known.get(_key(model, url))
        if guess and old is not None and old.tokens <= tokens:
            self._known = known
            return
        known[_key(model, url)] = LearnedWindow(tokens=tokens, guess=guess)
        self._known = known
        self._write(known)

    def forget(self, model: str, url: str) -> None:
        known = self._read()
        if known.pop(_key(model, url), None) is not None:
            self._write(known)
        self._known = known

    def _read(self) -> dict[str, LearnedWindow]:
        """Read the file again before each write, because another process may have changed it."""
        try:
            text = self._path.read_text("utf-8")
        except (OSError, UnicodeError):
            return {}
        found = (re.match(_LINE, line) for line in text.splitlines())
        return {
            _unquote(match["key"]): LearnedWindow(
                tokens=int(match["tokens"]), guess=(match["note"] or "").startswith(_GUESS)
            )
            for match in found
            if match is not None
        }

    def _write(self, known: dict[str, LearnedWindow]) -> None:
        lines = (
            f"{json.dumps(key)}: {value.tokens}{'  ' + _GUESS if value.guess else ''}\n"
            for key, value in sorted(known.items())
        )
        with suppress(OSError):
            replace_file(self._path, (_HEAD + "".join(lines)).encode(), durable=False)


class WindowLearner:
    """Updates the learned window of one model at one address during use."""

    def __init__(self, limits: LearnedWindows, model: str, url: str, window: int) -> None:
        self._limits = limits
        self._model = model
        self._url = url
        self._window = window

    def record_reported(self, tokens: int) -> None:
        """Record the window that the server reported."""
        self._window = tokens
        self._limits.learn(self._model, self._url, tokens)

    def record_error(self, error: ProviderError) -> None:
        revealed = window_after(error, self._window)
        if revealed is not None:
            self._window = revealed.tokens
            self._limits.learn(self._model, self._url, revealed.tokens, guess=revealed.guess)


def window_after(error: ProviderError, window: int) -> LearnedWindow | None:
    """Return the window that an overflow error implies after a window of this size: the number in
    the error, else the next lower tier; None for other errors, or if nothing is smaller."""
    if error.reason not in ("context_overflow", "payload_too_large"):
        return None
    if error.limit is not None:
        return LearnedWindow(tokens=error.limit) if error.limit < window else None
    if error.reason == "payload_too_large":
        return None
    tier = next((tier for tier in TIERS if tier < window), None)
    return LearnedWindow(tokens=tier, guess=True) if tier is not None else None


def _key(model: str, url: str) -> str:
    return f"{model}@{url.rstrip('/')}"


def _unquote(key: str) -> str:
    if key.startswith('"'):
        try:
            return str(json.loads(key))
        except ValueError:
            return key
    return key.strip("'")


UNKNOWN_LOCAL_WINDOW = 32_768
"""Local servers truncate prompts silently, so the default for them is cautious."""

Source = Literal["user", "learned", "listing", "family", "guess"]


class ContextWindow(Value):
    tokens: int
    source: Source


def context_window(
    catalogue: ModelCatalogue,
    vendor: Vendor,
    model: str,
    url: str,
    *,
    configured: int | None = None,
    learned: LearnedWindows | None = None,
    listing: ModelListing | None = None,
) -> ContextWindow:
    """Return the first known window: user setting, error message, the endpoint's listing, the
    family, a default. A guess after an error ranks below what the provider reports."""
    if configured:
        return ContextWindow(tokens=configured, source="user")
    known = learned.window(model, url) if learned is not None else None
    if known is not None and not known.guess:
        return ContextWindow(tokens=known.tokens, source="learned")
    entry = listing.find(model) if listing is not None else None
    if entry is not None and entry.window:
        return ContextWindow(tokens=entry.window, source="listing")
    if family := merge_families(catalogue.families, model, vendor.name).window:
        window = ContextWindow(tokens=family, source="family")
    else:
        unknown = UNKNOWN_LOCAL_WINDOW if is_local(host_of(url)) else UNKNOWN_WINDOW
        window = ContextWindow(tokens=unknown, source="guess")
    if known is not None and known.tokens < window.tokens:
        return ContextWindow(tokens=known.tokens, source="learned")
    return window
