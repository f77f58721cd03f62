"""`hermes mcp catalog` and `install`: servers that are known, and one of them among ours."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from hermes.app.build import App
from hermes.config.mcp_settings import McpServerSettings
from hermes.core.errors import UsageError
from hermes.mcp.installation import Installation, Need, Offer, offer_of
from hermes.mcp.server_catalogue import Shelf
from hermes.surfaces.cli.accounts import TerminalScreen
from hermes.surfaces.cli.output import as_json_option, columns, print_json, print_table, with_app
from hermes.surfaces.cli.style import mark


@click.command(help="Servers that can be installed by name, all or those with these words.")
@click.argument("words", nargs=-1)
@click.option("--online", is_flag=True, help="Look in the registry instead.")
@as_json_option
@click.pass_context
def catalog(ctx: click.Context, words: tuple[str, ...], online: bool, as_json: bool) -> None:
    async def work(app: App) -> list[Offer]:
        shelf, wanted = Shelf(app.settings, app.models.http), " ".join(words)
        rows = await shelf.online(wanted) if online else shelf.known(wanted)
        return [offer_of(each) for each in rows]

    found = with_app(ctx, work)
    if as_json:
        print_json(columns(found))
        return
    if not found:
        hint = "" if online else " here; `--online` looks in the registry"
        print(f"There is no such server{hint}.")
        return
    table = [("Server", "How", "What")]
    table += [(each.name, each.how, each.description) for each in found]
    print_table(table, (max(len(each.name) for each in found), 8))
    print("\n`hermes mcp install NAME` takes one of them.")


@click.command(help="Install a server by its name in the catalogue or registry, or a server.json.")
@click.argument("name")
@click.option("--as", "called", default="", help="What to call it here.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="What it needs to know.")
@click.option("--remote", is_flag=True, help="Use it where it runs, where it can be started too.")
@click.option("--untrusted", is_flag=True, help="Ask before every tool that may change things.")
@click.option("--no-browser", is_flag=True, help="Only show the address to open.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def install(
    ctx: click.Context,
    name: str,
    called: str,
    pairs: tuple[str, ...],
    remote: bool,
    untrusted: bool,
    no_browser: bool,
    yes: bool,
) -> None:
    async def find(app: App) -> Installation:
        return Installation(await Shelf(app.settings, app.models.http).find(name), remote=remote)

    wanted = with_app(ctx, find)
    given = _given(pairs)
    if sys.stdin.isatty():
        given = _asked(wanted, given)
    own = wanted.settings(given, untrusted=untrusted)
    _agree(own, yes=yes)
    title = called or wanted.name
    screen = TerminalScreen(browser=not no_browser)

    async def add(app: App) -> str:
        listing = await wanted.add(app.run, title, own, screen)
        return f"{len(listing.tools)} tools ({listing.title or 'unnamed'})"

    print(f"{mark('ok')} {title}: {with_app(ctx, add)}")


def _given(pairs: Sequence[str]) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    for pair in pairs:
        name, found, value = pair.partition("=")
        if not found or not name:
            raise UsageError(f"{pair!r} is not NAME=VALUE.")
        given.setdefault(name, []).append(value)
    return given


def _asked(wanted: Installation, given: dict[str, list[str]]) -> dict[str, list[str]]:
    """With what a person at the terminal says about the rest."""

    def answer(need: Need) -> str:
        words = f"{need.name} ({need.words})" if need.words else need.name
        said: str = click.prompt(words, hide_input=need.secret)
        return said

    return {**given, **{each.name: [answer(each)] for each in wanted.needs(given)}}


def _agree(own: McpServerSettings, *, yes: bool) -> None:
    """Whoever starts a program of others sees which, unless they have said yes before."""
    if not own.command or yes:
        return
    words = " ".join((own.command, *own.args))
    if not sys.stdin.isatty():
        raise UsageError(f"This fetches and starts  {words}  with your rights; give --yes.")
    click.confirm(f"This fetches and starts  {words}  with your rights. Go on?", abort=True)
