"""Stores OAuth tokens, one private file per server."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from math import inf
from pathlib import Path
from urllib.parse import urlsplit

from hermes.codec.atomic_files import PRIVATE, replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.credentials.auth_file import hold_lock
from hermes.mcp.listing import file_name


class StoredToken(Value):
    """A token of one server."""

    access_token: str
    refresh_token: str = ""
    expires_at: float = 0.0  # Unix time; 0 when unknown
    scope: str = ""
    issuer: str = ""
    token_endpoint: str = ""
    resource: str = ""
    wanted: str = ""  # a scope that the server requested later

    def is_for(self, url: str) -> bool:
        """Return whether the token belongs to the server at this URL."""
        ours, theirs = urlsplit(url), urlsplit(self.resource or url)
        return (ours.scheme, ours.netloc.lower()) == (theirs.scheme, theirs.netloc.lower())


class OAuthStore:
    """The token and client registration of one server."""

    def __init__(self, folder: Path, server: str) -> None:
        self._token = folder / f"{file_name(server)}.json"
        self._client = folder / f"{file_name(server)}.client.json"
        self._lock = folder / f".{file_name(server)}.lock"

    def token(self) -> StoredToken | None:
        try:
            return decode(StoredToken, self._token.read_bytes())
        except (OSError, DecodeError):
            return None

    def put_token(self, token: StoredToken) -> None:
        replace_file(self._token, encode(token), mode=PRIVATE)

    def client(self) -> JsonObject | None:
        try:
            return decode(dict, self._client.read_bytes())
        except (OSError, DecodeError):
            return None

    def put_client(self, client: JsonObject) -> None:
        replace_file(self._client, encode(client), mode=PRIVATE)

    def drop(self) -> bool:
        """Delete the login; return whether there was one."""
        found = self._token.exists()
        self._token.unlink(missing_ok=True)
        self._client.unlink(missing_ok=True)
        return found

    def lock(self) -> AbstractAsyncContextManager[None]:
        """Lock the files against other processes, for as long as a person takes to log in."""
        return hold_lock(self._lock, patience=inf)
