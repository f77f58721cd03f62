"""`hermes mcp`: foreign servers whose tools Hermes uses, and Hermes as a server for others."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from hermes.app.build import App
from hermes.config.mcp_settings import McpOauthSettings, McpServerSettings, McpToolSettings
from hermes.core.errors import UsageError
from hermes.mcp.admin import Desk, Row
from hermes.surfaces.cli.accounts import TerminalScreen
from hermes.surfaces.cli.output import as_json_option, columns, print_json, print_table, with_app
from hermes.surfaces.cli.style import mark, styled

T = TypeVar("T")
# Subcommands that are loaded when they are called.
ELSEWHERE = {
    "catalog": "hermes.surfaces.cli.commands.mcp_catalogue:catalog",
    "install": "hermes.surfaces.cli.commands.mcp_catalogue:install",
    "serve": "hermes.surfaces.mcp.command:command",
}


class Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted((*super().list_commands(ctx), *ELSEWHERE))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, _, name = ELSEWHERE[cmd_name].partition(":")
        found: click.Command = getattr(importlib.import_module(module), name)
        return found


@click.group(
    cls=Group,
    help="Foreign servers (MCP). Without a command: list.",
    invoke_without_command=True,
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


def _desk(ctx: click.Context, work: Callable[[Desk], Coroutine[Any, Any, T]]) -> T:
    async def whole(app: App) -> T:
        return await work(Desk(app.run))

    return with_app(ctx, whole)


@command.command("list", help="All servers, and how many tools each was last seen to have.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    async def work(desk: Desk) -> list[Row]:
        return desk.rows()

    rows = _desk(ctx, work)
    if as_json:
        print_json(columns(rows))
        return
    if not rows:
        print("There is no MCP server yet; `hermes mcp catalog` shows some to install.")
        return
    table = [("Server", "Tools", "State", "Where")]
    for row in rows:
        tools = "?" if row.tools is None else str(row.tools)
        table.append((row.name, tools, _state(row), row.place))
    print_table(table, (20, 6, 18))


def _state(row: Row) -> str:
    if row.fault:
        return "unusable"
    if not row.enabled:
        return "off"
    if row.auth == "oauth":
        return "logged in" if row.logged_in else "needs login"
    return "on"


@command.command(help="Meet a server, and add it to the settings when that works.")
@click.argument("name")
@click.option("--url", default="", help="The address of a running server.")
@click.option("--command", "program", default="", help="The program to start.")
@click.option("--args", "args", multiple=True, help="An argument of it; may be repeated.")
@click.option("--env", "env", multiple=True, metavar="K=V", help="A variable for it.")
@click.option("--cwd", default="", help="The folder that it starts in.")
@click.option("--transport", type=click.Choice(["http", "sse"]), default="http")
@click.option("--auth", type=click.Choice(["oauth", "header"]), default=None)
@click.option("--client-id", default="", help="Who we are, at a server that registers nobody.")
@click.option("--client-secret", default="", help="The secret that goes with it.")
@click.option("--private-key", default="", help="A PEM file to sign with instead.")
@click.option("--scope", default="", help="What to ask for when logging in.")
@click.option("--unattended", is_flag=True, help="Log in by these alone, without a person.")
@click.option("--header", "headers", multiple=True, metavar="K:V", help="A header to send.")
@click.option("--include", multiple=True, help="Take only these tools (names or patterns).")
@click.option("--exclude", multiple=True, help="Leave these tools out.")
@click.option("--untrusted", is_flag=True, help="Ask before every tool that may change things.")
@click.option("--connect-timeout", type=click.IntRange(min=1), default=60, show_default=True)
@click.option("--no-browser", is_flag=True, help="Only show the address to open.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.argument("rest", nargs=-1)
@click.pass_context
def add(ctx: click.Context, /, name: str, rest: tuple[str, ...], **given: Any) -> None:
    if rest and not given["program"]:
        raise UsageError("Words after `--` are arguments of --command; give one.")
    own = McpServerSettings(
        command=given["program"],
        args=(*given["args"], *rest),
        env=dict(_pair(each, "=") for each in given["env"]),
        cwd=given["cwd"],
        url=given["url"],
        transport=given["transport"],
        headers=dict(_pair(each, ":") for each in given["headers"]),
        auth=given["auth"] or ("oauth" if given["client_id"] else ""),
        oauth=McpOauthSettings(
            grant="client_credentials" if given["unattended"] else "authorization_code",
            client_id=given["client_id"],
            client_secret=given["client_secret"],
            private_key_file=given["private_key"],
            scope=given["scope"],
        ),
        connect_timeout=given["connect_timeout"],
        trust="untrusted" if given["untrusted"] else "full",
        tools=McpToolSettings(include=given["include"], exclude=given["exclude"]),
    )
    if own.command and sys.stdin.isatty() and not given["yes"]:
        words = " ".join((own.command, *own.args))
        click.confirm(f"This starts  {words}  with your rights. Go on?", abort=True)
    screen = TerminalScreen(browser=not given["no_browser"])
    listing = _desk(ctx, lambda desk: desk.add(name, own, screen=screen))
    print(f"{mark('ok')} {name}: {len(listing.tools)} tools ({listing.title or 'unnamed'})")
    for tool in listing.tools:
        print(f"  {tool.name:<32} {tool.description.partition(chr(10))[0][:60]}")


def _pair(text: str, sign: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise UsageError(f"{text!r} is not NAME{sign}VALUE.")
    return name.strip(), value.strip()


@command.command(help="Remove a server, with its login.")
@click.argument("name")
@click.pass_context
def remove(ctx: click.Context, name: str) -> None:
    async def work(desk: Desk) -> None:
        desk.remove(name)

    _desk(ctx, work)
    print(f"{name} is removed")


@command.command(help="Connect to a server and say what it has; exit code 1 when that fails.")
@click.argument("name")
@as_json_option
@click.pass_context
def test(ctx: click.Context, name: str, as_json: bool) -> None:
    trial = _desk(ctx, lambda desk: desk.test(name))
    if as_json:
        print_json(columns(trial))
        return
    print(f"{mark('ok')} {name}: {trial.title or 'unnamed'}, protocol {trial.protocol}")
    print(f"  connected in {trial.milliseconds} ms")
    print(f"  {trial.tools} tools, {trial.resources} resources, {trial.prompts} prompts")
    for variable in trial.unset:
        print(f"{mark('warn')} ${{{variable}}} is not set and was passed on as it is written")


@command.command(help="The tools of a server, as it was last seen.")
@click.argument("name")
@as_json_option
@click.pass_context
def tools(ctx: click.Context, name: str, as_json: bool) -> None:
    async def work(desk: Desk) -> list[Any]:
        return list(desk.tools(name))

    rows = _desk(ctx, work)
    if as_json:
        print_json(columns(rows))
        return
    if not rows:
        print(f"{name} was never seen; `hermes mcp test {name}` meets it.")
    for row in rows:
        sign = mark("ok") if row.offered else styled("-", "dim")
        note = f" {mark('warn')} {row.finding}" if row.finding else ""
        print(f"{sign} {row.name:<40} {row.description[:60]}{note}")


@command.command(help="Choose which tools of a server are taken.")
@click.argument("name")
@click.option("--include", multiple=True, help="Take only these (names or patterns).")
@click.option("--exclude", multiple=True, help="Leave these out.")
@click.option("--all", "everything", is_flag=True, help="Take all.")
@click.pass_context
def configure(
    ctx: click.Context,
    name: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    everything: bool,
) -> None:
    if sum(map(bool, (include, exclude, everything))) > 1:
        raise UsageError("Give one of --include, --exclude and --all.")
    if not (include or exclude or everything):
        include = _picked(ctx, name)

    async def work(desk: Desk) -> None:
        desk.choose(name, include, exclude)

    _desk(ctx, work)
    print(f"{mark('ok')} {name} is configured; sessions that are open go on as they are")


def _picked(ctx: click.Context, name: str) -> tuple[str, ...]:
    if not sys.stdin.isatty():
        raise UsageError("Give --include, --exclude or --all.")

    async def work(desk: Desk) -> list[Any]:
        return list(desk.tools(name))

    rows = _desk(ctx, work)
    for number, row in enumerate(rows, 1):
        print(f"{number:>3} {'x' if row.offered else ' '} {row.tool:<32} {row.description[:50]}")
    words = input("Numbers to take, with spaces between them (empty for all): ").split()
    if not all(word.isdecimal() and 0 < int(word) <= len(rows) for word in words):
        raise UsageError("That is not a list of these numbers; nothing was changed.")
    return tuple(rows[int(word) - 1].tool for word in words)


@command.command(help="Log in at a server.")
@click.argument("name")
@click.option("--no-browser", is_flag=True, help="Only show the address to open.")
@click.pass_context
def login(ctx: click.Context, name: str, no_browser: bool) -> None:
    screen = TerminalScreen(browser=not no_browser)
    _desk(ctx, lambda desk: desk.log_in(name, screen))
    print(f"{mark('ok')} logged in at {name}")


@command.command(help="Log out of a server.")
@click.argument("name")
@click.pass_context
def logout(ctx: click.Context, name: str) -> None:
    async def work(desk: Desk) -> bool:
        return desk.log_out(name)

    print(f"logged out of {name}" if _desk(ctx, work) else f"there was no login at {name}")


@command.command(help="Log in anew, at one server or at all that need a login.")
@click.argument("name", required=False, default="")
@click.option("--all", "everything", is_flag=True, help="At all servers that need a login.")
@click.option("--no-browser", is_flag=True, help="Only show the address to open.")
@click.pass_context
def reauth(ctx: click.Context, name: str, everything: bool, no_browser: bool) -> None:
    if bool(name) == everything:
        raise UsageError("Name a server, or give --all.")

    async def wanted(desk: Desk) -> list[str]:
        return [row.name for row in desk.rows() if row.auth == "oauth"]

    for each in _desk(ctx, wanted) if everything else [name]:
        ctx.invoke(login, name=each, no_browser=no_browser)


def _switch(ctx: click.Context, name: str, enabled: bool) -> None:
    async def work(desk: Desk) -> None:
        desk.enable(name, enabled)

    _desk(ctx, work)
    print(f"{name} is {'on' if enabled else 'off'}")


@command.command(help="Use a server again.")
@click.argument("name")
@click.pass_context
def enable(ctx: click.Context, name: str) -> None:
    _switch(ctx, name, True)


@command.command(help="Keep a server in the settings, but do not use it.")
@click.argument("name")
@click.pass_context
def disable(ctx: click.Context, name: str) -> None:
    _switch(ctx, name, False)
