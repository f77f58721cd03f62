"""Authorises requests with OAuth tokens and renews them."""

from __future__ import annotations

import asyncio
import base64
import re
import warnings
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from mcp import MCPDeprecationWarning
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)

from hermes.codec.values import replace
from hermes.core.errors import HermesError
from hermes.core.world import Clock
from hermes.mcp.oauth.login import LoginMemory, token_of, trigger_login
from hermes.mcp.oauth.store import StoredToken, TokenStore
from hermes.mcp.server import LoginRejected, LoginRequired, McpServer, NeedsLogin, NeedsScope

EARLY_SECONDS = 60.0


class MachineBearer(httpx2.Auth):
    """Authorises requests; gets a new token when it is expired or rejected."""

    def __init__(self, server: McpServer, store: TokenStore, clock: Clock) -> None:
        self._server = server
        self._store = store
        self._clock = clock

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        token = await self._usable()
        request.headers["Authorization"] = f"Bearer {token.access_token}"
        response = yield request
        if response.status_code == 401:
            token = await self._usable(refused=token.access_token)
            request.headers["Authorization"] = f"Bearer {token.access_token}"
            response = yield request
        if response.status_code in (401, 403):
            raise LoginRejected(
                self._server.name, f"its token is rejected with {response.status_code}."
            )

    async def _usable(self, *, refused: str = "") -> StoredToken:
        async with self._store.lock():
            token = self._store.token()
            if token is not None and token.access_token != refused and self._is_good(token):
                return token
            return await machine_token(self._server, self._store, self._clock)

    def _is_good(self, token: StoredToken) -> bool:
        """Rejects expired tokens, those of another server and those of a person's login."""
        fresh = not token.expires_at or token.expires_at - EARLY_SECONDS >= self._clock.now()
        return fresh and not token.refresh_token and token.is_for(self._server.url)


async def machine_token(server: McpServer, store: TokenStore, clock: Clock) -> StoredToken:
    """Gets and stores a token; Barred. The secret is only sent to the authorization server of
    the first token unless the settings name another."""
    old = store.token()
    known = old.issuer if old is not None and old.is_for(server.url) else ""
    issuer = server.oauth.issuer or known
    memory = LoginMemory(None)
    try:
        provider = await asyncio.to_thread(_provider, server, memory, issuer or None)
        await trigger_login(server, provider)
    except (OAuthFlowError, HermesError, httpx2.HTTPError, OSError, ValueError) as error:
        raise LoginRejected(server.name, f"{error}") from error
    if memory.tokens is None:
        raise LoginRejected(server.name, "it accepts requests without a login; remove `auth`.")
    token = token_of(memory.tokens, provider, clock)
    store.put_token(token)
    return token


def _provider(server: McpServer, memory: LoginMemory, issuer: str | None) -> OAuthClientProvider:
    own = server.oauth
    scope = own.scope or None
    with warnings.catch_warnings():
        # Without a configured issuer the discovered one is used and pinned.
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        if not own.private_key_file:
            return ClientCredentialsOAuthProvider(
                server.url, memory, own.client_id, own.client_secret, scope=scope, issuer=issuer
            )
        signed = SignedJWTParameters(
            issuer=own.client_id,
            subject=own.client_id,
            signing_key=Path(own.private_key_file).expanduser().read_text(),
            signing_algorithm=own.signing_algorithm,
        )
        return PrivateKeyJWTOAuthProvider(
            server.url,
            memory,
            own.client_id,
            signed.create_assertion_provider(),
            scope=scope,
            issuer=issuer,
        )


def auth_for(server: McpServer, tokens: Path, clock: Clock) -> httpx2.Auth | None:
    """Raises NeedsLogin when a login is configured but missing."""
    if server.auth != "oauth":
        return UnconfiguredAuth(server) if server.url else None
    store = TokenStore(tokens, server.name)
    if server.uses_client_credentials:
        return MachineBearer(server, store, clock)
    token = store.token()
    # A token must not be sent to another server after a change of settings.
    if token is None or not token.is_for(server.url):
        raise NeedsLogin(server.name)
    return OAuthBearer(server, store, clock)


class UnconfiguredAuth(httpx2.Auth):
    """For servers without a configured login: turns 401 into an error with advice."""

    def __init__(self, server: McpServer) -> None:
        self._server = server

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        response = yield request
        if response.status_code != 401:
            return
        if self._server.headers:
            raise LoginRejected(self._server.name, "it answers the configured headers with 401.")
        raise LoginRequired(self._server.name)


class OAuthBearer(httpx2.Auth):
    """Retries once with a refreshed token. Never asks a person: NeedsLogin when refreshing
    fails."""

    def __init__(self, server: McpServer, store: TokenStore, clock: Clock) -> None:
        self._server = server
        self._store = store
        self._clock = clock

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        token = self._token()
        if self._is_old(token):
            async with self._store.lock():
                token = self._token()
                if self._is_old(token):
                    token = await self._store_renewed(token, (yield self._renewal(token)))
        request.headers["Authorization"] = f"Bearer {token.access_token}"
        response = yield request
        if response.status_code == 403:
            await self._note_wanted(response)
        if response.status_code != 401:
            return
        async with self._store.lock():
            newest = self._token()
            # Another process may have refreshed it meanwhile.
            if newest.access_token == token.access_token:
                newest = await self._store_renewed(newest, (yield self._renewal(newest)))
        request.headers["Authorization"] = f"Bearer {newest.access_token}"
        response = yield request
        if response.status_code == 403:
            await self._note_wanted(response)
        if response.status_code == 401:
            raise NeedsLogin(self._server.name)

    async def _note_wanted(self, response: httpx2.Response) -> None:
        """Stores the missing scope for the next login, since only a person can grant it."""
        challenge = response.headers.get("www-authenticate", "")
        if not re.search(r'\berror="?insufficient_scope\b', challenge):
            return
        found = re.search(r'\bscope="([^"]*)"', challenge)
        scope = found[1] if found else ""
        async with self._store.lock():
            self._store.put_token(replace(self._token(), wanted=scope))
        raise NeedsScope(self._server.name, scope)

    def _is_old(self, token: StoredToken) -> bool:
        return bool(token.expires_at) and token.expires_at - EARLY_SECONDS < self._clock.now()

    def _token(self) -> StoredToken:
        token = self._store.token()
        if token is None:
            raise NeedsLogin(self._server.name)
        return token

    def _renewal(self, token: StoredToken) -> httpx2.Request:
        client: dict[str, Any] = self._store.client() or {}
        if not token.refresh_token or not token.token_endpoint or not client.get("client_id"):
            raise NeedsLogin(self._server.name)
        data = {
            "grant_type": "refresh_token",
            "refresh_token": token.refresh_token,
            "client_id": str(client["client_id"]),
        }
        if token.resource:
            data["resource"] = token.resource
        headers: dict[str, str] = {}
        if secret := client.get("client_secret"):
            if client.get("token_endpoint_auth_method") == "client_secret_basic":
                pair = f"{quote(client['client_id'], safe='')}:{quote(secret, safe='')}"
                headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            else:
                data["client_secret"] = secret
        return httpx2.Request("POST", token.token_endpoint, data=data, headers=headers)

    async def _store_renewed(self, old: StoredToken, response: httpx2.Response) -> StoredToken:
        await response.aread()
        if response.status_code != 200:
            raise NeedsLogin(self._server.name)
        given = response.json()
        seconds = given.get("expires_in")
        token = replace(
            old,
            access_token=given["access_token"],
            refresh_token=given.get("refresh_token") or old.refresh_token,
            expires_at=self._clock.now() + float(seconds) if seconds else 0.0,
            scope=given.get("scope") or old.scope,
        )
        self._store.put_token(token)
        return token
