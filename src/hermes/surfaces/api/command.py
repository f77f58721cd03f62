"""`hermes serve`: runs the HTTP server and manages client tokens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from hermes.app.app import App
from hermes.app.start import start
from hermes.codec.json import encode
from hermes.homes.token_claims import hold_claim
from hermes.surfaces.api.tokens import (
    SCOPES,
    TokenScope,
    TokenStore,
    create_local_token,
    local_token,
)


@click.group(
    help="Serve the OpenAI-compatible HTTP API until it is stopped.",
    invoke_without_command=True,
)
@click.option("--host", help="Listen on this address.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Listen on this port (0: a free one).")
@click.option("--public", is_flag=True, help="Confirm that other machines may reach this address.")
@click.option(
    "--cert", type=click.Path(exists=True, dir_okay=False), help="Use this TLS certificate."
)
@click.option("--key", type=click.Path(exists=True, dir_okay=False), help="Use this TLS key.")
@click.option(
    "--behind-proxy", is_flag=True, help="Serve without TLS, behind a proxy that adds it."
)
@click.option("--name", "names", multiple=True, help="Allow this host name (repeatable).")
@click.option("--origin", "origins", multiple=True, help="Allow this web origin (repeatable).")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    if ctx.invoked_subcommand is None:
        ctx.exit(asyncio.run(_serve(ctx, options)))


@command.group("token", help="Manage client tokens.")
def token() -> None:
    pass


@token.command("add", help="Create a client token and show it once.")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    help="Grant this scope (repeatable; default: chat).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def add(ctx: click.Context, name: str, scopes: tuple[TokenScope, ...], as_json: bool) -> None:
    token_scopes = scopes or ("chat",)
    made = _tokens(ctx).add(name, token_scopes, time.time())
    if as_json:
        click.echo(encode({"name": name, "scopes": token_scopes, "token": made}))
    else:
        click.echo(made)


@token.command("list", help="List client tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    known = _tokens(ctx).all()
    if as_json:
        rows = [
            {"name": each.name, "scopes": each.scopes, "created_at": each.created_at}
            for each in known
        ]
        click.echo(encode(rows))
        return
    if not known:
        click.echo("There are no tokens; create one with `hermes serve token add NAME`.")
    for each in known:
        day = time.strftime("%Y-%m-%d", time.localtime(each.created_at))
        click.echo(f"{each.name:<24} {day}  {', '.join(each.scopes)}")


@token.command("remove", help="Revoke a client token.")
@click.argument("name")
@click.pass_context
def remove(ctx: click.Context, name: str) -> None:
    _tokens(ctx).remove(name)
    click.echo(f"The token of {name} is revoked.")


def _tokens(ctx: click.Context) -> TokenStore:
    app = start(ctx.find_root().obj or {})
    for line in app.context.notices:
        click.echo(f"warning: {line}", err=True)
    return TokenStore(app.context.home)


async def _serve(ctx: click.Context, options: dict[str, Any]) -> int:
    # Token commands do not load the server.
    from hermes.surfaces.api.listener import ListenAddress, check_address, listen, serve

    async with start(ctx.find_root().obj or {}) as app:
        settings = app.context.settings.api_server
        port = settings.port if options["port"] is None else options["port"]
        address = ListenAddress(
            host=options["host"] or settings.host,
            port=port,
            public=options["public"],
            certificate=options["cert"] or "",
            key=options["key"] or "",
            proxied=options["behind_proxy"],
            hosts=(*settings.hosts, *options["names"]),
            origins=(*settings.cors_origins, *options["origins"]),
        )
        check_address(address)
        tokens = TokenStore(app.context.home, key=app.context.config.secrets.get("API_SERVER_KEY"))
        made = create_local_token(app.context.home, tokens, app.context.world.clock.now())
        if token := local_token(app.context.home):
            # The agent must never output its own API token.
            app.context.redactor.know(token)
        with _claims(app):
            listening = listen(address)
            for line in app.context.notices:
                click.echo(line, err=True)
            if made:
                click.echo(f"A token for clients on this machine is in {made}", err=True)
            if "*" in address.origins:
                click.echo("Web pages of any origin may call this server.", err=True)
            scheme = "https" if address.certificate else "http"
            name = f"[{address.host}]" if ":" in address.host else address.host
            ready = f"Listening at {scheme}://{name}:{listening.getsockname()[1]}/v1"
            await serve(app, tokens, address, listening, lambda: click.echo(ready))
    return 0


@contextmanager
def _claims(app: App) -> Iterator[None]:
    """A token identifies one home, so no two homes may share it."""
    own = f" -p {app.context.home.profile}" if app.context.home.profile != "default" else ""
    remedies = {
        app.context.config.secrets.get(
            "API_SERVER_KEY"
        ): f"`hermes{own} config set API_SERVER_KEY …`",
        local_token(app.context.home): f"`hermes{own} serve token remove local`",
    }
    with ExitStack() as stack:
        for token, command in remedies.items():
            remedy = f"give this home its own with {command}"
            if token:
                stack.enter_context(
                    hold_claim(
                        "api", token, remedy=remedy, home=app.context.home, env=app.context.env
                    )
                )
        yield
