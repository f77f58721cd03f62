"""Access to the system keyring."""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module
from importlib.util import find_spec
from typing import Any

log = logging.getLogger(__name__)

SERVICE = "hermes-agent"
# Some keyrings ask a person to unlock them and would otherwise wait for ever.
_SECONDS = 20.0


class Keyring:
    """Secrets by name. `account` separates homes. No method raises: a broken keyring is treated as
    empty."""

    def __init__(self, account: str) -> None:
        self._account = account

    @staticmethod
    def is_installed() -> bool:
        return find_spec("keyring") is not None

    async def get(self, name: str) -> str:
        return await self._call("get_password", name) or ""

    async def put(self, name: str, secret: str) -> bool:
        """Returns whether the secret can be read back."""
        await self._call("set_password", name, secret)
        return await self.get(name) == secret

    async def drop(self, name: str) -> None:
        await self._call("delete_password", name)

    async def _call(self, function: str, name: str, *more: str) -> str | None:
        if not self.is_installed():
            return None

        def work() -> str | None:
            library: Any = import_module("keyring")
            found = getattr(library, function)(SERVICE, f"{self._account}/{name}", *more)
            return found if isinstance(found, str) else None

        try:
            async with asyncio.timeout(_SECONDS):
                return await asyncio.to_thread(work)
        except Exception as error:
            # Each backend raises its own kinds of errors.
            log.warning("keyring failed", extra={"function": function, "error": type(error)})
            return None
