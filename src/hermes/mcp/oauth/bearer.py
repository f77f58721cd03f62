"""Authorises requests with OAuth tokens and renews them."""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

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
from hermes.credentials.oauth.client import (
    OAuthErrorResponse,
    TokenEndpoint,
    parse_answer,
    parse_tokens,
    refresh_grant,
)
from hermes.mcp.oauth.login import LoginMemory, token_of, trigger_login
from hermes.mcp.oauth.store import OAuthStore, StoredToken
from hermes.mcp.server import (
    IssuerFailed,
    LoginRejected,
    McpServer,
    NeedsLogin,
)
from hermes.mcp.transport import http_client_factory

EARLY_SECONDS = 60.0


def auth_for(server: McpServer, tokens: Path, clock: Clock) -> httpx2.Auth | None:
    """Return the authentication of a server. Raise NeedsLogin when a login is configured but
    missing."""
    if server.auth != "oauth":
        return UnconfiguredAuth(server) if server.url else None
    store = OAuthStore(tokens, server.name)
    if server.uses_client_credentials:
        return MachineBearer(server, store, clock)
    token = store.token()
    # A token must not be sent to another server after a change of settings.
    if token is None or not token.is_for(server.url):
        raise NeedsLogin(server.name)
    return OAuthBearer(server, store, clock)


class UnconfiguredAuth(httpx2.Auth):
    """Turns 401 into an error with advice, for servers without a configured login."""

    def __init__(self, server: McpServer) -> None:
        self._server = server

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        response = yield request
        if response.status_code != 401:
            return
        if self._server.headers:
            raise LoginRejected(
                self._server.name, "it answers with 401; check the configured headers."
            )
        name = self._server.name
        raise NeedsLogin(
            name,
            f"requires a login or a key: set mcp_servers.{name}.auth to oauth and run "
            f"`hermes mcp login {name}`, or set the header that it expects.",
        )


class OAuthBearer(httpx2.Auth):
    """Sends the stored token, renewed if it is expired, and once more if the server rejects it.
    Never asks a person: NeedsLogin when the token cannot be renewed, IssuerFailed when it cannot
    be renewed now."""

    def __init__(self, server: McpServer, store: OAuthStore, clock: Clock) -> None:
        self._server = server
        self._store = store
        self._clock = clock

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        token = await self._usable_token()
        request.headers["Authorization"] = f"Bearer {token.access_token}"
        response = yield request
        if response.status_code == 401:
            token = await self._usable_token(rejected=token.access_token)
            request.headers["Authorization"] = f"Bearer {token.access_token}"
            response = yield request
        if response.status_code in (401, 403):
            await self._refuse(response)

    async def _usable_token(self, *, rejected: str = "") -> StoredToken:
        """Return the token, renewed in one process at a time."""
        token = self._store.token()
        if token is not None and self._is_usable(token, rejected):
            return token
        async with self._store.lock():
            token = self._store.token()
            if token is not None and self._is_usable(token, rejected):
                return token
            return await self._renew(token)

    def _is_usable(self, token: StoredToken, rejected: str) -> bool:
        is_fresh = not token.expires_at or token.expires_at - EARLY_SECONDS >= self._clock.now()
        return is_fresh and token.access_token != rejected

    async def _renew(self, token: StoredToken | None) -> StoredToken:
        client = self._store.client() or {}
        if token is None or not token.refresh_token or not token.token_endpoint:
            raise NeedsLogin(self._server.name)
        if not client.get("client_id"):
            raise NeedsLogin(self._server.name)
        in_header = client.get("token_endpoint_auth_method") == "client_secret_basic"
        endpoint = TokenEndpoint(
            url=token.token_endpoint,
            client_id=str(client["client_id"]),
            client_secret=str(client.get("client_secret") or ""),
            auth_method="client_secret_basic" if in_header else "client_secret_post",
            resource=token.resource,
        )
        timeout = httpx2.Timeout(self._server.connect_timeout)
        try:
            async with http_client_factory(self._server)(timeout=timeout) as http:
                response = await http.post(
                    endpoint.url,
                    data=endpoint.form(refresh_grant(token.refresh_token)),
                    headers=endpoint.client_headers(),
                )
        except httpx2.TransportError as error:
            raise IssuerFailed(self._server.name, str(error) or type(error).__name__) from error
        answer = parse_answer(response.status_code, response.content)
        fresh = parse_tokens(answer, now=self._clock.now())
        if isinstance(fresh, OAuthErrorResponse):
            # A new login also registers a new client.
            if fresh.is_final or fresh.code == "invalid_client":
                raise NeedsLogin(self._server.name)
            raise IssuerFailed(self._server.name, fresh.message)
        token = replace(
            token,
            access_token=fresh.access_token,
            refresh_token=fresh.refresh_token or token.refresh_token,
            expires_at=fresh.expires_at or 0.0,
            scope=fresh.scope or token.scope,
        )
        self._store.put_token(token)
        return token

    async def _refuse(self, response: httpx2.Response) -> None:
        """Store a missing scope for the next login, since only a person can grant it."""
        if response.status_code == 401:
            raise NeedsLogin(self._server.name)
        challenge = response.headers.get("www-authenticate", "")
        if not re.search(r'\berror="?insufficient_scope\b', challenge):
            return
        match = re.search(r'\bscope="([^"]*)"', challenge)
        scope = match[1] if match else ""
        async with self._store.lock():
            if (token := self._store.token()) is not None:
                self._store.put_token(replace(token, wanted=scope))
        name, detail = self._server.name, f" ({scope})" if scope else ""
        grant = f"run `hermes mcp login {name}` to grant them."
        raise NeedsLogin(name, f"requires more permissions{detail}: {grant}")


class MachineBearer(OAuthBearer):
    """Requests a new token with the configured client credentials."""

    def _is_usable(self, token: StoredToken, rejected: str) -> bool:
        """Return whether the token can be used. Tokens of another server and those of a person's
        login cannot."""
        is_own = not token.refresh_token and token.is_for(self._server.url)
        return is_own and super()._is_usable(token, rejected)

    async def _renew(self, token: StoredToken | None) -> StoredToken:
        return await machine_token(self._server, self._store, self._clock)

    async def _refuse(self, response: httpx2.Response) -> None:
        why = f"its token is rejected with {response.status_code}."
        raise LoginRejected(self._server.name, why)


async def machine_token(server: McpServer, store: OAuthStore, clock: Clock) -> StoredToken:
    """Get and store a token; raise LoginRejected or IssuerFailed. The secret is only sent to the
    authorization server of the first token unless the settings name another."""
    old = store.token()
    known = old.issuer if old is not None and old.is_for(server.url) else ""
    memory = LoginMemory(None)
    try:
        provider = await asyncio.to_thread(_provider, server, memory, server.oauth.issuer or known)
        await trigger_login(server, provider)
    except IssuerFailed:
        raise
    except httpx2.TransportError as error:
        raise IssuerFailed(server.name, str(error) or type(error).__name__) from error
    except (OAuthFlowError, HermesError, httpx2.HTTPError, OSError, ValueError) as error:
        raise LoginRejected(server.name, f"{error}") from error
    if memory.tokens is None:
        raise LoginRejected(
            server.name, "it accepts requests without a login; remove `auth` from its settings."
        )
    token = token_of(memory.tokens, provider, clock)
    store.put_token(token)
    return token


def _provider(server: McpServer, memory: LoginMemory, issuer: str) -> OAuthClientProvider:
    own = server.oauth
    more: dict[str, Any] = {"scope": own.scope or None, "issuer": issuer or None}
    with warnings.catch_warnings():
        # Without a configured issuer the discovered one is used and pinned.
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        if not own.private_key_file:
            return ClientCredentialsOAuthProvider(
                server.url, memory, own.client_id, own.client_secret, **more
            )
        signed = SignedJWTParameters(
            issuer=own.client_id,
            subject=own.client_id,
            signing_key=Path(own.private_key_file).expanduser().read_text(),
            signing_algorithm=own.signing_algorithm,
        )
        return PrivateKeyJWTOAuthProvider(
            server.url, memory, own.client_id, signed.create_assertion_provider(), **more
        )
