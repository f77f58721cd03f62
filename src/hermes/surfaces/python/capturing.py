"""Asks the caller's function for a secret, which goes only to the secret store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from hermes.app.build import App
from hermes.codec.values import JsonObject
from hermes.config.secrets import read_env_file

log = logging.getLogger(__name__)


class SecretPrompt:
    """Calls the function with the name, the prompt and details. It returns the value, or a
    dictionary with `value`, or with `stored` if it wrote the value to `.env` itself; anything
    else means no value."""

    def __init__(self, app: App, callback: Callable[..., Any]) -> None:
        self._app = app
        self._callback = callback

    async def __call__(self, name: str, prompt: str, facts: JsonObject) -> str | None:
        try:
            given = await asyncio.to_thread(self._callback, name, prompt, facts)
        except Exception:
            log.exception("callback for a secret failed")
            return None
        if isinstance(given, str):
            return given
        if not isinstance(given, dict):
            return None
        if value := given.get("value"):
            return str(value)
        written = read_env_file(self._app.home).variables.get(name)
        return written if given.get("stored") else None
