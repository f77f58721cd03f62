"""`hermes mcp`: MCP servers whose tools Hermes uses, and Hermes as an MCP server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from hermes.config.extension_settings import McpOauthSettings, McpServerSettings, McpToolSettings
from hermes.core.errors import UsageError
from hermes.mcp.admin import McpAdmin
from hermes.surfaces.cli.command_context import apply_style, load_command, mark, with_app
from hermes.surfaces.cli.commands.auth import TerminalScreen, browser_option
from hermes.surfaces.cli.output import CommandGroup, Output, confirm, table, yes_option

# Subcommands that are loaded when they are called.
ELSEWHERE = {
    "catalog": "mcp_catalogue:catalog",
    "install": "mcp_catalogue:install",
    "serve": "hermes.surfaces.mcp.command:command",
}

with_admin = with_app.part(lambda app: McpAdmin(app.run))


class LazyGroup(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted((*super().list_commands(ctx), *ELSEWHERE))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        return load_command(ELSEWHERE[cmd_name])


command = LazyGroup(help="MCP servers. Without a command: list.", default="list")


@command.json("List all servers, with the number of tools each last reported.", with_admin)
def list_(admin: McpAdmin) -> Output:
    rows = admin.rows()
    if not rows:
        hint = "There is no MCP server yet; `hermes mcp catalog` lists some to install."
        return Output(rows, hint)
    cells = [("Server", "Tools", "State", "Where")]
    for row in rows:
        state = "on" if row.enabled else "off"
        if row.fault:
            state = "unusable"
        elif row.enabled and row.auth == "oauth":
            state = "logged in" if row.logged_in else "needs login"
        cells.append((row.name, "?" if row.tools is None else str(row.tools), state, row.place))
    return Output(rows, table(cells, (20, 6, 18)))


@command.text("Connect to a server, and add it to the settings if that works.")
@click.option("--url", default="", help="The URL of a running server.")
@click.option("--command", "program", default="", help="The program to start.")
@click.option("--args", "args", multiple=True, help="An argument for it (repeatable).")
@click.option("--env", "env", multiple=True, metavar="K=V", help="An environment variable for it.")
@click.option("--cwd", default="", help="Its working directory.")
@click.option("--transport", type=click.Choice(["http", "sse"]), default="http")
@click.option("--auth", type=click.Choice(["oauth", "header"]), default=None)
@click.option("--client-id", default="", help="OAuth client id, if there is no registration.")
@click.option("--client-secret", default="", help="OAuth client secret.")
@click.option("--private-key", default="", help="A PEM file to sign with instead.")
@click.option("--scope", default="", help="OAuth scope to request.")
@click.option("--unattended", is_flag=True, help="Log in with the client credentials alone.")
@click.option("--header", "headers", multiple=True, metavar="K:V", help="A header to send.")
@click.option("--include", multiple=True, help="Use only these tools (names or patterns).")
@click.option("--exclude", multiple=True, help="Leave these tools out.")
@click.option("--untrusted", is_flag=True, help="Ask before every tool that may change things.")
@click.option("--connect-timeout", type=click.IntRange(min=1), default=60, show_default=True)
@browser_option
@yes_option
def add(ctx: click.Context, /, name: str, rest: tuple[str, ...] = (), **given: Any) -> list[str]:
    if rest and not given["program"]:
        raise UsageError("Words after `--` are arguments of --command; add it.")
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
    if own.command and sys.stdin.isatty():
        words = " ".join((own.command, *own.args))
        confirm(f"This starts  {words}  with your permissions. Continue?", yes=given["yes"])
    screen = TerminalScreen(browser=not given["no_browser"])
    listing = with_admin(ctx, lambda admin: admin.add(name, own, screen=screen))
    return [
        f"{mark('ok')} {name}: {len(listing.tools)} tools ({listing.title or 'unnamed'})",
        *(
            f"  {tool.name:<32} {tool.description.partition(chr(10))[0][:60]}"
            for tool in listing.tools
        ),
    ]


def _pair(text: str, sign: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise UsageError(f"{text!r} is not NAME{sign}VALUE.")
    return name.strip(), value.strip()


@command.text("Remove a server and its login.", with_admin)
def remove(admin: McpAdmin, name: str) -> str:
    admin.remove(name)
    return f"{name} is removed"


@command.json("Connect to a server and show what it offers; exit code 1 on failure.", with_admin)
async def test(admin: McpAdmin, name: str) -> Output:
    trial = await admin.test(name)
    lines = [
        f"{mark('ok')} {name}: {trial.title or 'unnamed'}, protocol {trial.protocol}",
        f"  connected in {trial.milliseconds} ms",
        f"  {trial.tools} tools, {trial.resources} resources, {trial.prompts} prompts",
        *(
            f"{mark('warn')} ${{{variable}}} is not set and was passed literally"
            for variable in trial.unset
        ),
    ]
    return Output(trial, lines)


@command.json("List the tools that a server last reported.", with_admin)
def tools(admin: McpAdmin, name: str) -> Output:
    rows = admin.tools(name)

    def lines() -> Iterator[str]:
        if not rows:
            yield f"{name} was never connected; `hermes mcp test {name}` connects to it."
        for row in rows:
            sign = mark("ok") if row.offered else apply_style("-", "dim")
            note = f" {mark('warn')} {row.finding}" if row.finding else ""
            yield f"{sign} {row.name:<40} {row.description[:60]}{note}"

    return Output(rows, lines())


@command.text("Choose which tools of a server to use.")
@click.option("--include", multiple=True, help="Use only these (names or patterns).")
@click.option("--exclude", multiple=True, help="Leave these out.")
@click.option("--all", "everything", is_flag=True, help="Use all.")
def configure(
    ctx: click.Context,
    name: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    everything: bool,
) -> str:
    if sum(map(bool, (include, exclude, everything))) > 1:
        raise UsageError("Give one of --include, --exclude and --all.")
    if not (include or exclude or everything):
        include = _pick_tools(ctx, name)
    with_admin(ctx, lambda admin: admin.choose(name, include, exclude))
    return f"{mark('ok')} {name} is configured; open sessions keep their tools"


def _pick_tools(ctx: click.Context, name: str) -> tuple[str, ...]:
    if not sys.stdin.isatty():
        raise UsageError("Give --include, --exclude or --all.")

    rows = with_admin(ctx, lambda admin: admin.tools(name))
    for number, row in enumerate(rows, 1):
        print(f"{number:>3} {'x' if row.offered else ' '} {row.tool:<32} {row.description[:50]}")
    words = input("Numbers to use, separated by spaces (empty for all): ").split()
    if not all(word.isdecimal() and 0 < int(word) <= len(rows) for word in words):
        raise UsageError("That is not a list of these numbers; nothing was changed.")
    return tuple(rows[int(word) - 1].tool for word in words)


@command.text("Log in to a server.", with_admin)
@browser_option
async def login(admin: McpAdmin, name: str, no_browser: bool) -> str:
    await admin.log_in(name, TerminalScreen(browser=not no_browser))
    return f"{mark('ok')} logged in to {name}"


@command.text("Log out of a server.", with_admin)
def logout(admin: McpAdmin, name: str) -> str:
    return f"logged out of {name}" if admin.log_out(name) else f"there was no login at {name}"


@command.text("Log in again, at one server or at all that need a login.")
@click.option("--all", "everything", is_flag=True, help="At all servers that need a login.")
@browser_option
def reauth(ctx: click.Context, *, name: str = "", everything: bool, no_browser: bool) -> None:
    if bool(name) == everything:
        raise UsageError("Name a server, or give --all.")

    rows = with_admin(ctx, lambda admin: admin.rows()) if everything else ()
    for each in [row.name for row in rows if row.auth == "oauth"] if everything else [name]:
        ctx.invoke(login, name=each, no_browser=no_browser)


@command.text("Use a server again.", with_admin)
def enable(admin: McpAdmin, name: str) -> str:
    admin.enable(name, True)
    return f"{name} is on"


@command.text("Keep a server in the settings, but do not use it.", with_admin)
def disable(admin: McpAdmin, name: str) -> str:
    admin.enable(name, False)
    return f"{name} is off"
