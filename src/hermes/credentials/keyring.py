"""The keyring of the operating system, where it is installed and willing."""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module
from importlib.util import find_spec
from typing import Any

log = logging.getLogger(__name__)

SERVICE = "hermes-agent"
# Some keyrings ask the person to unlock them; without anybody there they would wait for ever.
_SECONDS = 20.0


class Keyring:
    """Secrets by name. `account` keeps homes apart. No method raises: a keyring that does not
    work is one that has nothing and takes nothing."""

    def __init__(self, account: str) -> None:
        self._account = account

    @staticmethod
    def is_installed() -> bool:
        return find_spec("keyring") is not None

    async def get(self, name: str) -> str:
        return await self._call("get_password", name) or ""

    async def put(self, name: str, secret: str) -> bool:
        """Whether it can be read back."""
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
            # Its many back ends raise errors of their own kinds; none of them may end a call.
            log.warning("keyring failed", extra={"function": function, "error": type(error)})
            return None
