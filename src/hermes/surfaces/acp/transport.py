"""The messages of an editor on stdin and stdout, with method names that the library lacks."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

log = logging.getLogger(__name__)

SET_MODEL = "session/set_model"


class EditorTransport:
    """Implements the transport of the ACP library: one JSON message per line. The library has no
    method `session/set_model`; it arrives as an extension of that name."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._one = asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        async with self._one:
            self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        while line := await self._line():
            try:
                message = json.loads(line)
            except ValueError:
                log.warning("an editor sent a line that is not JSON")
                continue
            if isinstance(message, dict):
                if message.get("method") == SET_MODEL:
                    message["method"] = f"_{SET_MODEL}"
                return message
        return None

    async def close(self) -> None:
        """Wait for messages that are being written. Standard output stays open for the process."""
        async with self._one:
            pass

    async def _line(self) -> bytes:
        """Return the next line, however long; b"" at the end."""
        parts: list[bytes] = []
        while True:
            try:
                parts.append(await self._reader.readuntil(b"\n"))
            except asyncio.LimitOverrunError as error:
                parts.append(await self._reader.readexactly(error.consumed))
                continue
            except asyncio.IncompleteReadError as error:
                parts.append(error.partial)
            return b"".join(parts)
