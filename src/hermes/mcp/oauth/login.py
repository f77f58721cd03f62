"""OAuth login at a server, with the redirect to a local page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol
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

from hermes.codec.values import Value
from hermes.core.errors import HermesError, UsageError
from hermes.core.world import Clock
from hermes.mcp.oauth.store import StoredToken, TokenStore
from hermes.mcp.server import McpServer

PATH = "/callback"


class AuthorizationReply(Value):
    """The authorization code with state and issuer."""

    code: str
    state: str = ""
    issuer: str = ""


class LoginCallback:
    """A pending login. Replies with another state are rejected and the wait continues."""

    def __init__(self) -> None:
        self.state = ""
        self._returned: asyncio.Future[AuthorizationReply] = (
            asyncio.get_running_loop().create_future()
        )

    async def wait(
        self, read_pasted: Callable[[], Awaitable[str]], seconds: float
    ) -> AuthorizationReply:
        """Waits for the browser or the pasted URL; HermesError."""
        reading = asyncio.ensure_future(self._read(read_pasted))
        try:
            async with asyncio.timeout(seconds):
                return await self._returned
        except TimeoutError:
            raise HermesError(f"No login within {seconds:g} s; try again.") from None
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def receive(self, query: str) -> str:
        """Handles a reply; returns the error or ""."""
        given = {name: values[0] for name, values in parse_qs(query).items()}
        if self.state and given.get("state", "") != self.state:
            return "This reply belongs to another login."
        if error := given.get("error"):
            words = given.get("error_description") or error
            self._settle(HermesError(f"The login was refused: {words}."))
            return f"The login was refused: {words}."
        if "code" not in given:
            return "This reply contains no code."
        self._settle(
            AuthorizationReply(
                code=given["code"], state=given.get("state", ""), issuer=given.get("iss", "")
            )
        )
        return ""

    def _settle(self, outcome: AuthorizationReply | HermesError) -> None:
        if self._returned.done():
            return
        if isinstance(outcome, HermesError):
            self._returned.set_exception(outcome)
        else:
            self._returned.set_result(outcome)

    async def _read(self, read_pasted: Callable[[], Awaitable[str]]) -> None:
        while True:
            line = (await read_pasted()).strip()
            query = urlsplit(line).query if "://" in line else line
            if wrong := self.receive(query):
                self._settle(UsageError(wrong)) if "code" in query else None


@asynccontextmanager
async def listening(host: str, port: int) -> AsyncIterator[tuple[LoginCallback, int]]:
    """Starts the local page; yields callback and port."""
    callback = LoginCallback()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            line = (await reader.readline()).decode("latin-1").split()
            while (await reader.readline()).strip():
                pass
            status, words = _answer(callback, line)
            body = words.encode()
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, host, port)
    async with server:
        yield callback, int(server.sockets[0].getsockname()[1])


def _answer(callback: LoginCallback, line: list[str]) -> tuple[str, str]:
    if len(line) < 2 or line[0] != "GET":
        return "405 Method Not Allowed", "Only GET."
    parts = urlsplit(line[1])
    if parts.path != PATH:
        return "404 Not Found", "Nothing here."
    if wrong := callback.receive(parts.query):
        return "400 Bad Request", wrong
    return "200 OK", "Logged in. You can close this page and go back to Hermes."


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


class LoginScreen(Protocol):
    """Shows the page to open and reads a pasted redirect URL."""

    def show_page(self, url: str, *, paste: bool) -> None: ...

    async def read_pasted(self) -> str: ...


async def log_in(
    server: McpServer, store: TokenStore, screen: LoginScreen, clock: Clock
) -> StoredToken:
    """Logs in and stores the token; HermesError. Concurrent logins wait for each other."""
    own = server.oauth
    async with store.lock(), listening(own.redirect_host, own.redirect_port) as (callback, port):
        redirect = own.redirect_uri or f"http://{own.redirect_host}:{port}{PATH}"
        old = store.token()
        memory = LoginMemory(_configured_client(server, redirect))
        provider = _Provider(
            server.url,
            _metadata(server, redirect),
            memory,
            redirect_handler=_redirect(callback, screen),
            callback_handler=_callback(callback, screen, own.timeout),
            client_metadata_url=own.client_metadata_url or None,
        )
        provider.asks_for = _scope(server, old)
        try:
            await trigger_login(server, provider)
        except (OAuthFlowError, httpx2.HTTPError) as error:
            raise HermesError(f"The login at {server.name} failed: {error}.") from error
        if memory.tokens is None:
            raise HermesError(f"{server.name} accepts requests without a login; remove `auth`.")
        token = token_of(memory.tokens, provider, clock)
        if memory.client is not None:
            store.put_client(memory.client.model_dump(mode="json", exclude_none=True))
        store.put_token(token)
        return token


async def trigger_login(server: McpServer, provider: OAuthClientProvider) -> None:
    """Sends requests until the server asks for a login; some do so only for tools/list."""
    async with httpx2.AsyncClient(auth=provider, timeout=server.connect_timeout) as client:
        headers = {**HEADERS, **server.headers}
        for body in (PROBE, READY, LIST):
            request = client.build_request("POST", server.url, json=body, headers=headers)
            response = await client.send(request, stream=True)
            await response.aclose()
            if response.status_code in (401, 403):
                raise HermesError(f"{server.name} rejects the new login.")
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


def _scope(server: McpServer, old: StoredToken | None) -> str:
    """Keeps the granted scopes when a scope is added."""
    parts = [server.oauth.scope]
    if old is not None and old.wanted:
        parts += (old.scope, old.wanted)
    return " ".join(dict.fromkeys(" ".join(parts).split()))


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
    """Returns the configured client registration, if any."""
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


def _metadata(server: McpServer, redirect: str) -> OAuthClientMetadata:
    return OAuthClientMetadata.model_validate(
        {
            "client_name": "Hermes",
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "scope": server.oauth.scope or None,
        }
    )


def _redirect(callback: LoginCallback, screen: LoginScreen) -> Callable[[str], Awaitable[None]]:
    async def show(url: str) -> None:
        callback.state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        screen.show_page(url, paste=True)

    return show


def _callback(
    callback: LoginCallback, screen: LoginScreen, seconds: float
) -> Callable[[], Awaitable[AuthorizationCodeResult]]:
    async def wait() -> AuthorizationCodeResult:
        returned = await callback.wait(screen.read_pasted, seconds)
        return AuthorizationCodeResult(
            code=returned.code, state=returned.state or None, iss=returned.issuer or None
        )

    return wait


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
