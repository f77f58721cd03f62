"""OAuth login without a person: the `client_credentials` grant."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
from mcp import MCPDeprecationWarning
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)

from hermes.core.errors import HermesError
from hermes.core.world import Clock
from hermes.mcp.faults import LoginRejected
from hermes.mcp.oauth.login import LoginMemory, token_of, trigger_login
from hermes.mcp.oauth.store import StoredToken, TokenStore
from hermes.mcp.server import McpServer

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
