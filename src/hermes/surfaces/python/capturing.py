"""Asks the caller's function for a secret. What it gives goes to the store, and nowhere else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from hermes.app.build import App
from hermes.codec.values import JsonObject
from hermes.config.secrets import read_env_file

log = logging.getLogger(__name__)


class Capture:
    """The function is called with the name, the words to ask with, and more facts. It returns the
    value, or a dictionary: with `value`, or with `stored` if it wrote the value to `.env` itself;
    anything else means that there is none."""

    def __init__(self, app: App, callback: Callable[..., Any]) -> None:
        self._app = app
        self._callback = callback

    async def __call__(self, name: str, prompt: str, facts: JsonObject) -> str | None:
        try:
            given = await asyncio.to_thread(self._callback, name, prompt, facts)
        except Exception:
            log.exception("a callback that was asked for a secret failed")
            return None
        if isinstance(given, str):
            return given
        if not isinstance(given, dict):
            return None
        if value := given.get("value"):
            return str(value)
        written = read_env_file(self._app.home).variables.get(name)
        return written if given.get("stored") else None
