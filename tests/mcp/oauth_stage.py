"""A foreign server behind a login, and the authorization server that gives it, in one process."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Any
from urllib.parse import unquote, urlencode

import jwt
import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send


class Authority:
    """Registers clients, gives codes and tokens, and remembers what it was asked. `lives` is how
    long a token is good; `refuses` makes it say no to whoever logs in."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.lives = 3600
        self.refuses = False
        # What calls of tools need besides a token, and what each token may.
        self.needed = ""
        self.scopes: dict[str, str] = {}
        self.revoked = False
        self.broken = False
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: set[str] = set()
        self.refreshes: dict[str, str] = {}
        self.asked: list[dict[str, str]] = []
        self.scope = ""
        # Clients that log in without a person, by id; where a key is held, it is a public one.
        self.machines: dict[str, str] = {}
        self.issuer = url

    def routes(self) -> list[Route]:
        return [
            Route("/.well-known/oauth-protected-resource/mcp", self.resource),
            Route("/.well-known/oauth-authorization-server", self.metadata),
            Route("/register", self.register, methods=["POST"]),
            Route("/authorize", self.authorize),
            Route("/token", self.token, methods=["POST"]),
        ]

    async def resource(self, _: Request) -> Response:
        return JSONResponse({"resource": f"{self.url}/mcp", "authorization_servers": [self.issuer]})

    async def metadata(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        )

    async def register(self, request: Request) -> Response:
        client = {**await request.json(), "client_id": secrets.token_hex(8)}
        self.clients[client["client_id"]] = client
        return JSONResponse(client, status_code=201)

    async def authorize(self, request: Request) -> Response:
        given = dict(request.query_params)
        assert given["code_challenge_method"] == "S256"
        assert given["redirect_uri"] in self.clients[given["client_id"]]["redirect_uris"]
        back = {"state": given["state"]}
        if self.refuses:
            back["error"] = "access_denied"
        else:
            back["code"] = secrets.token_hex(8)
            self.codes[back["code"]] = given
        return RedirectResponse(f"{given['redirect_uri']}?{urlencode(back)}", status_code=302)

    async def token(self, request: Request) -> Response:
        form = {key: str(value) for key, value in (await request.form()).items()}
        self.asked.append(form)
        if self.broken:
            return Response("Service unavailable", status_code=503)
        if form["grant_type"] == "refresh_token":
            if self.revoked or self.refreshes.pop(form["refresh_token"], "") != form["client_id"]:
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
            return self._granted(form["client_id"], self.scope)
        if form["grant_type"] == "client_credentials":
            return self._machine(request, form)
        code = self.codes.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if challenge != code["code_challenge"]:
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        self.scope = code.get("scope", "")
        return self._granted(form["client_id"], self.scope)

    def _machine(self, request: Request, form: dict[str, str]) -> Response:
        if "client_assertion" in form:
            claims = jwt.decode(form["client_assertion"], options={"verify_signature": False})
            name, key = claims["iss"], self.machines.get(claims["iss"], "")
            try:
                jwt.decode(form["client_assertion"], key, ["ES256"], audience=self.url)
            except jwt.InvalidTokenError:
                return JSONResponse({"error": "invalid_client"}, status_code=401)
        else:
            pair = base64.b64decode(request.headers["authorization"].removeprefix("Basic "))
            name, secret = (unquote(each) for each in pair.decode().split(":"))
            if self.machines.get(name) != secret:
                return JSONResponse({"error": "invalid_client"}, status_code=401)
        access = secrets.token_hex(16)
        self.tokens.add(access)
        answer = {"access_token": access, "token_type": "Bearer", "expires_in": self.lives}
        return JSONResponse(answer)

    def _granted(self, client: str, scope: str) -> Response:
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.tokens.add(access)
        self.scopes[access] = scope
        self.refreshes[refresh] = client
        answer = {
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": self.lives,
            "scope": scope,
        }
        return JSONResponse(answer)


class Locked:
    """Only requests with a good token come in."""

    def __init__(self, inner: ASGIApp, authority: Authority) -> None:
        self._inner = inner
        self._authority = authority

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        token = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
        if scope["type"] == "http" and token not in self._authority.tokens:
            where = f"{self._authority.url}/.well-known/oauth-protected-resource/mcp"
            header = {"WWW-Authenticate": f'Bearer resource_metadata="{where}"'}
            await Response(status_code=401, headers=header)(scope, receive, send)
        elif scope["type"] == "http" and not self._may(token, headers):
            words = f'Bearer error="insufficient_scope", scope="{self._authority.needed}"'
            refusal = Response(status_code=403, headers={"WWW-Authenticate": words})
            await refusal(scope, receive, send)
        else:
            await self._inner(scope, receive, send)

    def _may(self, token: str, headers: dict[bytes, bytes]) -> bool:
        if headers.get(b"mcp-method") != b"tools/call" or not self._authority.needed:
            return True
        return self._authority.needed in self._authority.scopes[token].split()


def locked_server(
    port: int, *, key: str | None = None, certificate: str | None = None
) -> tuple[uvicorn.Server, Authority]:
    """To be served until `should_exit` is set; with a certificate over HTTPS."""
    authority = Authority(f"{'https' if certificate else 'http'}://127.0.0.1:{port}")
    stage: MCPServer[Any] = MCPServer("locked", version="1.0", log_level="ERROR")

    @stage.tool(structured_output=False)
    def treasure() -> str:
        """What the login is for."""
        return "gold"

    inner = stage.streamable_http_app(streamable_http_path="/mcp")
    routes = [*authority.routes(), Mount("/", app=Locked(inner, authority))]
    lifespan: Any = lambda _: inner.router.lifespan_context(inner)  # noqa: E731
    app = Starlette(routes=routes, lifespan=lifespan)
    config = uvicorn.Config(
        app,
        port=port,
        log_level="error",
        lifespan="on",
        ssl_keyfile=key,
        ssl_certfile=certificate,
    )
    return uvicorn.Server(config), authority
