"""`hermes serve`: runs the HTTP server and manages client tokens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.app.app import App
from hermes.app.start import start
from hermes.codec.json import encode
from hermes.codec.values import JsonValue
from hermes.homes.token_claims import hold_claim
from hermes.surfaces.api.tokens import (
    SCOPES,
    TokenScope,
    TokenStore,
    create_local_token,
    local_token,
)

if TYPE_CHECKING:
    from hermes.surfaces.api.listener import ListenAddress


@click.group(
    help="Serve the HTTP API (OpenAI-compatible). Without a command: listen until stopped.",
    invoke_without_command=True,
)
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port; 0 picks a free one.")
@click.option("--public", is_flag=True, help="Confirm that other machines may reach this address.")
@click.option("--cert", type=click.Path(exists=True, dir_okay=False), help="TLS certificate.")
@click.option("--key", type=click.Path(exists=True, dir_okay=False), help="TLS key.")
@click.option("--behind-proxy", is_flag=True, help="A proxy in front terminates TLS.")
@click.option("--name", "names", multiple=True, help="Allowed host name; repeatable.")
@click.option("--origin", "origins", multiple=True, help="Web origin allowed to call the API.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    if ctx.invoked_subcommand is None:
        ctx.exit(asyncio.run(_serve(ctx, options)))


@command.group("token", help="Manage client tokens.")
def token() -> None:
    pass


@token.command("add", help="Create a client token; it is shown once.")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    help="Scope to grant; repeatable. Default: chat.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def add(ctx: click.Context, name: str, scopes: tuple[TokenScope, ...], as_json: bool) -> None:
    given = scopes or ("chat",)
    made = _tokens(ctx).add(name, given, time.time())
    if as_json:
        _print_json({"name": name, "scopes": list(given), "token": made})
    else:
        click.echo(made)


@token.command("list", help="List client tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    known = _tokens(ctx).all()
    if as_json:
        _print_json(
            [
                {"name": each.name, "scopes": list(each.scopes), "created_at": each.created_at}
                for each in known
            ]
        )
        return
    if not known:
        click.echo("There are no tokens; create one with `hermes serve token add NAME`.")
    for each in known:
        day = time.strftime("%Y-%m-%d", time.localtime(each.created_at))
        click.echo(f"{each.name:<24} {day}  {', '.join(each.scopes)}")


@token.command("remove", help="Revoke a token.")
@click.argument("name")
@click.pass_context
def remove(ctx: click.Context, name: str) -> None:
    _tokens(ctx).remove(name)
    click.echo(f"The token of {name} is revoked.")


def _tokens(ctx: click.Context) -> TokenStore:
    app = start(ctx.find_root().obj or {})
    for line in app.run.notices:
        click.echo(f"warning: {line}", err=True)
    return TokenStore(app.run.home)


def _print_json(value: JsonValue) -> None:
    click.echo(encode(value).decode())


async def _serve(ctx: click.Context, options: dict[str, Any]) -> int:
    # Token commands do not load the server.
    from hermes.surfaces.api.listener import ListenAddress, check_address, listen, serve

    async with start(ctx.find_root().obj or {}) as app:
        settings = app.run.settings.api_server
        port = settings.port if options["port"] is None else options["port"]
        place = ListenAddress(
            host=options["host"] or settings.host,
            port=port,
            public=options["public"],
            certificate=options["cert"] or "",
            key=options["key"] or "",
            proxied=options["behind_proxy"],
            hosts=(*settings.hosts, *options["names"]),
            origins=(*settings.cors_origins, *options["origins"]),
        )
        check_address(place)
        tokens = TokenStore(app.run.home, key=app.run.config.secrets.get("API_SERVER_KEY"))
        made = create_local_token(app.run.home, tokens, app.run.world.clock.now())
        if held := local_token(app.run.home):
            # The agent must never output its own API token.
            app.run.redactor.know(held)
        with _claims(app):
            listening = listen(place)
            _tell(app.run.notices, made, place.origins)
            address = _address(place, listening.getsockname()[1])
            ready = f"Listening at {address}/v1"
            await serve(app, tokens, place, listening, lambda: click.echo(ready))
    return 0


def _address(place: ListenAddress, port: int) -> str:
    scheme = "https" if place.certificate else "http"
    name = f"[{place.host}]" if ":" in place.host else place.host
    return f"{scheme}://{name}:{port}"


@contextmanager
def _claims(app: App) -> Iterator[None]:
    """A token identifies one home, so no two homes may share it."""
    own = f" -p {app.run.home.profile}" if app.run.home.profile != "default" else ""
    remedies = {
        app.run.config.secrets.get("API_SERVER_KEY"): f"`hermes{own} config set API_SERVER_KEY …`",
        local_token(app.run.home): f"`hermes{own} serve token remove local`",
    }
    with ExitStack() as held:
        for token, command in remedies.items():
            remedy = f"give this home its own with {command}"
            if token:
                held.enter_context(
                    hold_claim("api", token, remedy=remedy, home=app.run.home, env=app.run.env)
                )
        yield


def _tell(news: list[str], made: str, origins: tuple[str, ...]) -> None:
    for line in news:
        click.echo(line, err=True)
    if made:
        click.echo(f"A token for clients on this machine is in {Path(made)}", err=True)
    if "*" in origins:
        click.echo("Web pages of any origin may call this server.", err=True)
