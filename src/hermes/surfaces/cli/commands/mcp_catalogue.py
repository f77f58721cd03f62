"""`hermes mcp catalog` and `install`: known MCP servers, and installing one."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from hermes.core.errors import UsageError
from hermes.mcp.admin import McpAdmin
from hermes.mcp.installation import ServerCatalogue, catalogue_row, install_settings, plan_install
from hermes.surfaces.cli.command_context import mark, with_app
from hermes.surfaces.cli.commands.auth import TerminalScreen, browser_option
from hermes.surfaces.cli.output import (
    Output,
    confirm,
    json_command,
    table,
    text_command,
    yes_option,
)

with_catalogue = with_app.part(lambda app: ServerCatalogue(app.run.settings, app.models.http))


@json_command(
    "List servers that can be installed by name, optionally matching words.", with_catalogue
)
@click.option("--online", is_flag=True, help="Search the registry instead.")
async def catalog(
    catalogue: ServerCatalogue, *, words: tuple[str, ...] = (), online: bool
) -> Output:
    wanted = " ".join(words)
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


@text_command("Install a server by its name in the catalogue or registry, or a server.json.")
@click.option("--as", "called", default="", help="Its name here.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A value that it needs.")
@click.option("--remote", is_flag=True, help="Prefer the hosted server to a local process.")
@click.option("--untrusted", is_flag=True, help="Ask before every tool that may change things.")
@browser_option
@yes_option
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
    server = with_catalogue(ctx, lambda catalogue: catalogue.find(name))
    plan, given = plan_install(server, remote=remote), dict[str, list[str]]()
    for pair in pairs:
        key, found, value = pair.partition("=")
        if not found or not key:
            raise UsageError(f"{pair!r} is not NAME=VALUE.")
        given.setdefault(key, []).append(value)
    if sys.stdin.isatty():
        for need in plan.missing(given):
            words = f"{need.name} ({need.description})" if need.description else need.name
            given[need.name] = [click.prompt(words, hide_input=need.is_secret)]
    own = install_settings(plan, given, untrusted=untrusted)
    if own.command:
        # The user sees which program of somebody else is started.
        words = " ".join((own.command, *own.args))
        confirm(f"This downloads and starts  {words}  with your permissions. Continue?", yes=yes)
    title, secrets = called or plan.description.short_name, plan.secrets()
    screen = TerminalScreen(browser=not no_browser)
    listing = with_app(
        ctx, lambda app: McpAdmin(app.run).add(title, own, screen=screen, secrets=secrets)
    )
    return f"{mark('ok')} {title}: {len(listing.tools)} tools ({listing.title or 'unnamed'})"
