"""`hermes mcp catalog` and `install`: servers that are known, and one of them among ours."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import click

from hermes.app.build import App
from hermes.app.mcp.desk import Desk
from hermes.app.mcp.shelf import Shelf
from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject
from hermes.config.mcp_settings import McpServerSettings
from hermes.core.errors import UsageError
from hermes.mcp.catalogue.description import Blank, Description
from hermes.mcp.catalogue.plan import ADVICE, Plan, plan_of
from hermes.mcp.listing import Listing
from hermes.surfaces.cli.accounts import TerminalScreen
from hermes.surfaces.cli.output import as_json_option, print_json, print_table, with_app
from hermes.surfaces.cli.style import mark


@click.command(help="Servers that can be installed by name, all or those with these words.")
@click.argument("words", nargs=-1)
@click.option("--online", is_flag=True, help="Look in the registry instead.")
@as_json_option
@click.pass_context
def catalog(ctx: click.Context, words: tuple[str, ...], online: bool, as_json: bool) -> None:
    async def work(app: App) -> list[Description]:
        shelf = Shelf(app)
        return await shelf.online(" ".join(words)) if online else shelf.known(" ".join(words))

    found = with_app(ctx, work)
    if as_json:
        print_json([_row(each) for each in found])
        return
    if not found:
        hint = "" if online else " here; `--online` looks in the registry"
        print(f"There is no such server{hint}.")
        return
    table = [("Server", "How", "What")]
    table += [(each.name, _way(each), each.description) for each in found]
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
    async def find(app: App) -> Description:
        return await Shelf(app).find(name)

    plan = plan_of(with_app(ctx, find), remote=remote)
    given = _given(pairs)
    if sys.stdin.isatty():
        given = _asked(plan, given)
    own = _settings(plan, given, untrusted=untrusted)
    _agree(own, yes=yes)
    title = called or plan.description.short_name
    screen = TerminalScreen(browser=not no_browser)

    async def add(app: App) -> Listing:
        return await Desk(app).add(title, own, screen=screen, secrets=plan.secrets())

    listing = with_app(ctx, add)
    print(f"{mark('ok')} {title}: {len(listing.tools)} tools ({listing.title or 'unnamed'})")


def _row(each: Description) -> JsonObject:
    try:
        plan = plan_of(each)
    except UsageError:
        needs: list[str] = []
    else:
        needs = [blank.name for blank in plan.missing({})]
    return {
        "name": each.name,
        "title": each.title,
        "description": each.description,
        "version": each.version or next((p.version for p in each.packages), ""),
        "how": _way(each),
        "needs": needs,
    }


def _way(each: Description) -> str:
    """How it would be used, in a word."""
    try:
        plan = plan_of(each)
    except UsageError:
        return "-"
    return plan.runner or "address"


def _given(pairs: Sequence[str]) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    for pair in pairs:
        name, found, value = pair.partition("=")
        if not found or not name:
            raise UsageError(f"{pair!r} is not NAME=VALUE.")
        given.setdefault(name, []).append(value)
    return given


def _asked(plan: Plan, given: dict[str, list[str]]) -> dict[str, list[str]]:
    """With what a person at the terminal says about the rest."""

    def answer(blank: Blank) -> str:
        words = f"{blank.name} ({blank.description})" if blank.description else blank.name
        said: str = click.prompt(words, hide_input=blank.is_secret)
        return said

    return {**given, **{each.name: [answer(each)] for each in plan.missing(given)}}


def _settings(plan: Plan, given: dict[str, list[str]], *, untrusted: bool) -> McpServerSettings:
    told = plan.settings(given)
    if plan.runner and shutil.which(plan.runner) is None:
        raise UsageError(f"This needs `{plan.runner}`, which is not here: {ADVICE[plan.runner]}.")
    try:
        return convert(McpServerSettings, told | ({"trust": "untrusted"} if untrusted else {}))
    except DecodeError as error:
        raise UsageError(f"This server cannot be described here: {error}.") from error


def _agree(own: McpServerSettings, *, yes: bool) -> None:
    """Whoever starts a program of others sees which, unless they have said yes before."""
    if not own.command or yes:
        return
    words = " ".join((own.command, *own.args))
    if not sys.stdin.isatty():
        raise UsageError(f"This fetches and starts  {words}  with your rights; give --yes.")
    click.confirm(f"This fetches and starts  {words}  with your rights. Go on?", abort=True)
