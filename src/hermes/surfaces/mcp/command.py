"""`hermes mcp serve`: serves the conversations of this home over MCP."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from hermes.app.start import start
from hermes.config.extras import need_extra
from hermes.core.errors import UsageError
from hermes.homes.token_claims import hold_claim

MISSING = need_extra("MCP clients", "mcp")
TOKEN_FILE = "mcp-token"
MIN_TOKEN_CHARS = 16


@click.command("serve", help="Serve the conversations of this home to other agents.")
@click.option("--http", is_flag=True, help="Serve over HTTP instead of stdin and stdout.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8765,
    show_default=True,
    help="Listen on this port (0: a free one).",
)
@click.option(
    "--token",
    default="",
    envvar="HERMES_MCP_TOKEN",
    help="Require this bearer token of HTTP clients.",
)
@click.option("--cert", default="", help="Use this TLS certificate.")
@click.option("--key", default="", help="Use this TLS key.")
@click.option(
    "--behind-proxy", is_flag=True, help="Serve without TLS, behind a proxy that adds it."
)
@click.option(
    "--read-only", is_flag=True, help="Offer no tools that send messages or answer approvals."
)
@click.option("-v", "--verbose", is_flag=True, help="Log more to stderr.")
@click.pass_context
def command(ctx: click.Context, /, http: bool, verbose: bool, **server_options: Any) -> None:
    if find_spec("mcp") is None:
        raise UsageError(MISSING)
    behind_proxy = server_options.pop("behind_proxy")
    if http:
        _check_address(
            server_options["host"], server_options["cert"], server_options["key"], behind_proxy
        )
    options = {**(ctx.find_root().obj or {}), "verbose": verbose}
    ctx.exit(asyncio.run(_serve(options, http=http, **server_options)))


def _check_address(host: str, cert: str, key: str, behind_proxy: bool) -> None:
    """Raise UsageError for a public address without TLS."""
    if bool(cert) != bool(key):
        raise UsageError("TLS needs both --cert and --key.")
    if not (cert or behind_proxy or _is_loopback(host)):
        raise UsageError(
            f"{host} can be reached from other machines: use --cert and --key, or "
            "--behind-proxy if a proxy in front terminates TLS."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _serve(
    options: dict[str, Any],
    *,
    http: bool,
    host: str,
    port: int,
    token: str,
    cert: str,
    key: str,
    read_only: bool,
) -> int:
    from hermes.surfaces.mcp.conversations import Conversations
    from hermes.surfaces.mcp.server import make_server

    async with start(options) as app:
        for line in app.context.notices:
            click.echo(f"warning: {line}", err=True)
        conversations = Conversations(app)
        server = make_server(conversations, read_only=read_only)
        try:
            if http:
                from hermes.surfaces.mcp.server import HTTP_PATH, serve_http

                token, token_source = _token(app.context.home.root, token)
                scheme = "https" if cert else "http"
                click.echo(
                    f"{scheme}://{host}:{port}{HTTP_PATH} (token in {token_source})", err=True
                )
                remedy = f"give this home a token of its own instead of {token_source}"
                with hold_claim(
                    "mcp", token, remedy=remedy, home=app.context.home, env=app.context.env
                ):
                    await serve_http(server, token=token, host=host, port=port, cert=cert, key=key)
            else:
                await server.run_stdio_async()
        finally:
            await conversations.close()
    return 0


def _token(root: Path, token: str) -> tuple[str, str]:
    """The bearer token and where it is stored; created on first use."""
    if token:
        if len(token) < MIN_TOKEN_CHARS:
            raise UsageError(f"The token is too short; give at least {MIN_TOKEN_CHARS} characters.")
        return token, "HERMES_MCP_TOKEN or --token"
    file = root / TOKEN_FILE
    try:
        return file.read_text(encoding="utf-8").strip(), str(file)
    except FileNotFoundError:
        pass
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = secrets.token_urlsafe(32)
    file.touch(mode=0o600)
    file.write_text(fresh + "\n", encoding="utf-8")
    return fresh, str(file)
