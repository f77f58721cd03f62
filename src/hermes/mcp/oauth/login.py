"""OAuth login at a server: the protocol of the official library, in the person's browser."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from hermes.core.errors import HermesError
from hermes.core.world import Clock
from hermes.credentials.oauth.redirect import BrowserScreen, listen_for_redirect
from hermes.mcp.oauth.store import OAuthStore, StoredToken
from hermes.mcp.server import IssuerFailed, McpServer
from hermes.mcp.transport import http_client_factory

VERSION = "2025-11-25"
PROBE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "hermes-agent", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "Mcp-Protocol-Version": VERSION,
}


async def log_in(
    server: McpServer, store: OAuthStore, screen: BrowserScreen, clock: Clock
) -> StoredToken:
    """Log in and store the token; raise HermesError. Concurrent logins wait for each other."""
    own = server.oauth
    async with (
        store.lock(),
        listen_for_redirect(host=own.redirect_host, port=own.redirect_port) as listener,
    ):

        async def show_page(url: str) -> None:
            listener.state = parse_qs(urlsplit(url).query).get("state", [""])[0]
            screen.show_page(url, paste=True)

        async def wait_for_code() -> AuthorizationCodeResult:
            try:
                found = await listener.wait(screen, own.timeout)
            except TimeoutError:
                raise HermesError(f"No login within {own.timeout:g} s; try again.") from None
            if found.error:
                raise HermesError(f"The login was refused: {found.error.rstrip('.')}; try again.")
            return AuthorizationCodeResult(
                code=found.code, state=found.state or None, iss=found.issuer or None
            )

        redirect = own.redirect_uri or listener.url
        memory = LoginMemory(_configured_client(server, redirect))
        metadata = OAuthClientMetadata.model_validate(
            {
                "client_name": "Hermes",
                "redirect_uris": [redirect],
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "token_endpoint_auth_method": "none",
                "scope": own.scope or None,
            }
        )
        provider = _Provider(
            server.url,
            metadata,
            memory,
            redirect_handler=show_page,
            callback_handler=wait_for_code,
            client_metadata_url=own.client_metadata_url or None,
        )
        # Keeps the granted scopes when a scope is added.
        old = store.token()
        scopes = [own.scope, *((old.scope, old.wanted) if old and old.wanted else ())]
        provider.asks_for = " ".join(dict.fromkeys(" ".join(scopes).split()))
        try:
            await trigger_login(server, provider)
        except (OAuthFlowError, httpx2.HTTPError) as error:
            raise HermesError(f"The login at {server.name} failed ({error}); try again.") from error
        if memory.tokens is None:
            raise HermesError(
                f"{server.name} accepts requests without a login; remove `auth` from its settings."
            )
        token = token_of(memory.tokens, provider, clock)
        if memory.client is not None:
            store.put_client(memory.client.model_dump(mode="json", exclude_none=True))
        store.put_token(token)
        return token


async def trigger_login(server: McpServer, provider: OAuthClientProvider) -> None:
    """Send requests until the server asks for a login; some do so only for tools/list."""

    async def check(response: httpx2.Response) -> None:
        request = response.request
        is_token_request = request.method == "POST" and str(request.url) != server.url
        if is_token_request and response.status_code >= 500:
            raise IssuerFailed(server.name, f"HTTP {response.status_code}")

    timeout = httpx2.Timeout(server.connect_timeout)
    async with http_client_factory(server)(auth=provider, timeout=timeout) as client:
        client.event_hooks = {"response": [check]}
        headers = {**HEADERS, **server.headers}
        for body in (PROBE, READY, LIST):
            request = client.build_request("POST", server.url, json=body, headers=headers)
            response = await client.send(request, stream=True)
            await response.aclose()
            if response.status_code in (401, 403):
                raise HermesError(f"{server.name} rejects the new login; try again.")
            if provider.context.current_tokens is not None:
                return
            if session := response.headers.get("mcp-session-id"):
                headers["mcp-session-id"] = session


class _Provider(OAuthClientProvider):
    """Requests the scopes of the settings and of earlier refusals."""

    asks_for = ""

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        about = self.context.client_metadata
        about.scope = union_scopes(about.scope, self.asks_for)
        return await super()._perform_authorization_code_grant()


class LoginMemory:
    """Holds the library's results until the login is complete."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def _configured_client(server: McpServer, redirect: str) -> OAuthClientInformationFull | None:
    """Return the configured client registration, if any."""
    own = server.oauth
    if not own.client_id:
        return None
    method = "client_secret_basic" if own.client_secret else "none"
    return OAuthClientInformationFull.model_validate(
        {
            "client_id": own.client_id,
            "client_secret": own.client_secret or None,
            "redirect_uris": [redirect],
            "token_endpoint_auth_method": method,
        }
    )


def token_of(tokens: OAuthToken, provider: OAuthClientProvider, clock: Clock) -> StoredToken:
    context: Any = provider.context
    metadata = context.oauth_metadata
    endpoint = str(metadata.token_endpoint) if metadata else ""
    return StoredToken(
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token or "",
        expires_at=clock.now() + tokens.expires_in if tokens.expires_in else 0.0,
        scope=tokens.scope or "",
        issuer=str(metadata.issuer) if metadata else "",
        token_endpoint=endpoint
        or context.get_authorization_base_url(context.server_url) + "/token",
        resource=context.get_resource_url(),
    )
