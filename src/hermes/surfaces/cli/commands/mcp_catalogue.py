"""`hermes mcp catalog` and `install`: known MCP servers, and installing one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import click

from hermes.app.app import App
from hermes.config.extension_settings import McpServerSettings
from hermes.core.errors import UsageError
from hermes.mcp.installation import Installation, RequiredValue, ServerCatalogue, catalogue_row
from hermes.surfaces.cli.command_context import mark
from hermes.surfaces.cli.commands.auth import TerminalScreen
from hermes.surfaces.cli.output import Output, json_output, table, text_output, with_app


@click.command(help="List servers that can be installed by name, optionally matching words.")
@click.argument("words", nargs=-1)
@click.option("--online", is_flag=True, help="Search the registry instead.")
@json_output(with_app)
async def catalog(app: App, words: tuple[str, ...], online: bool) -> Output:
    catalogue, wanted = ServerCatalogue(app.run.settings, app.models.http), " ".join(words)
    rows = await catalogue.search_registry(wanted) if online else catalogue.list_shipped(wanted)
    found = [catalogue_row(each) for each in rows]

    def lines() -> Iterator[str]:
        if not found:
            hint = "" if online else " here; `--online` searches the registry"
            yield f"There is no such server{hint}."
            return
        cells = [(each.name, each.how, each.description) for each in found]
        width = max(len(each.name) for each in found)
        yield from table([("Server", "How", "What"), *cells], (width, 8))
        yield "\n`hermes mcp install NAME` installs one of them."

    return Output(found, lines())


@click.command(help="Install a server by its name in the catalogue or registry, or a server.json.")
@click.argument("name")
@click.option("--as", "called", default="", help="Its name here.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A value that it needs.")
@click.option("--remote", is_flag=True, help="Prefer the hosted server to a local process.")
@click.option("--untrusted", is_flag=True, help="Ask before every tool that may change things.")
@click.option("--no-browser", is_flag=True, help="Print the URL instead of opening a browser.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@text_output()
def install(
    ctx: click.Context,
    name: str,
    called: str,
    pairs: tuple[str, ...],
    remote: bool,
    untrusted: bool,
    no_browser: bool,
    yes: bool,
) -> str:
    async def find(app: App) -> Installation:
        return Installation(
            await ServerCatalogue(app.run.settings, app.models.http).find(name), remote=remote
        )

    wanted = with_app(ctx, find)
    given = _parse_pairs(pairs)
    if sys.stdin.isatty():
        given = _prompt_missing(wanted, given)
    own = wanted.settings(given, untrusted=untrusted)
    _confirm_program(own, yes=yes)
    title = called or wanted.name
    screen = TerminalScreen(browser=not no_browser)
    listing = with_app(ctx, lambda app: wanted.add(app.run, title, own, screen))
    return f"{mark('ok')} {title}: {len(listing.tools)} tools ({listing.title or 'unnamed'})"


def _parse_pairs(pairs: Sequence[str]) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    for pair in pairs:
        name, found, value = pair.partition("=")
        if not found or not name:
            raise UsageError(f"{pair!r} is not NAME=VALUE.")
        given.setdefault(name, []).append(value)
    return given


def _prompt_missing(wanted: Installation, given: dict[str, list[str]]) -> dict[str, list[str]]:
    def answer(need: RequiredValue) -> str:
        words = f"{need.name} ({need.description})" if need.description else need.name
        text: str = click.prompt(words, hide_input=need.secret)
        return text

    return {**given, **{each.name: [answer(each)] for each in wanted.needs(given)}}


def _confirm_program(own: McpServerSettings, *, yes: bool) -> None:
    """The user sees which foreign program is started, unless --yes was given."""
    if not own.command or yes:
        return
    words = " ".join((own.command, *own.args))
    if not sys.stdin.isatty():
        raise UsageError(f"This downloads and starts  {words}  with your permissions; add --yes.")
    click.confirm(f"This downloads and starts  {words}  with your permissions. Go on?", abort=True)
