"""Stores OAuth tokens, one private file per server."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from hermes.codec.atomic_files import PRIVATE, replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.mcp.listing import file_name

_LOOK_SECONDS = 0.05


class StoredToken(Value):
    """A token. `expires_at` is a Unix time, 0 when unknown. `wanted` is a scope that the server
    requested later."""

    access_token: str
    refresh_token: str = ""
    expires_at: float = 0.0
    scope: str = ""
    issuer: str = ""
    token_endpoint: str = ""
    resource: str = ""
    wanted: str = ""

    def is_for(self, url: str) -> bool:
        """Returns whether the token belongs to the server at this URL."""
        ours, theirs = urlsplit(url), urlsplit(self.resource or url)
        return (ours.scheme, ours.netloc.lower()) == (theirs.scheme, theirs.netloc.lower())


class TokenStore:
    """The token and client registration of one server."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder = folder
        self._token = folder / f"{file_name(server)}.json"
        self._client = folder / f"{file_name(server)}.client.json"
        self._lock = folder / f".{file_name(server)}.lock"

    def token(self) -> StoredToken | None:
        try:
            return decode(StoredToken, self._token.read_bytes())
        except (OSError, DecodeError):
            return None

    def put_token(self, token: StoredToken) -> None:
        self._write(self._token, encode(token))

    def client(self) -> JsonObject | None:
        try:
            return decode(dict, self._client.read_bytes())
        except (OSError, DecodeError):
            return None

    def put_client(self, client: JsonObject) -> None:
        self._write(self._client, encode(client))

    def drop(self) -> bool:
        """Deletes the login; returns whether there was one."""
        found = self._token.exists()
        self._token.unlink(missing_ok=True)
        self._client.unlink(missing_ok=True)
        return found

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Locks the files against other processes."""
        self._make_folder()
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not _try_lock(handle):  # noqa: ASYNC110 (other processes set no event)
                await asyncio.sleep(_LOOK_SECONDS)
            yield
        finally:
            os.close(handle)

    def _write(self, file: Path, data: bytes) -> None:
        replace_file(file, data, mode=PRIVATE)

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
