"""`hermes mcp`: MCP servers whose tools Hermes uses, and Hermes as an MCP server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hermes.commands.formatting import one_line
from hermes.config.extension_settings import McpOauthSettings, McpServerSettings, McpToolSettings
from hermes.core.errors import UsageError
from hermes.mcp.admin import McpAdmin
from hermes.surfaces.cli.command_context import apply_style, load_command, mark, with_app
from hermes.surfaces.cli.commands.auth import TerminalScreen, browser_option
from hermes.surfaces.cli.output import CommandGroup, Output, confirm, table, yes_option

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.mcp.installation import ServerCatalogue
    from hermes.mcp.listing import ToolListing

untrusted_option = click.option(
    "--untrusted", is_flag=True, help="Ask before every tool call that may change something."
)
SERVE = "hermes.surfaces.mcp.command:command"

with_admin = with_app.part(lambda app: McpAdmin(app.context))


class McpGroup(CommandGroup):
    """Loads `serve` when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted((*super().list_commands(ctx), "serve"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(SERVE) if cmd_name == "serve" else super().get_command(ctx, cmd_name)


command = McpGroup(
    help="Use MCP servers, and run Hermes as one. Without a command, list the servers.",
    default="list",
)


def _catalogue(app: App) -> ServerCatalogue:
    # Loads the HTTP client, which most commands do not need.
    from hermes.mcp.installation import ServerCatalogue

    return ServerCatalogue(app.context.settings, app.models.http)


with_catalogue = with_app.part(_catalogue)


@command.json("List all servers and the number of their tools.", with_admin)
def list_(admin: McpAdmin) -> Output:
    rows = admin.rows()
    if not rows:
        hint = "There is no MCP server yet; `hermes mcp catalog` lists servers to install."
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


@command.text("Connect to a server, and save it if the connection works.")
@click.option("--url", default="", help="Use the running server at this URL.")
@click.option("--command", "program", default="", help="Start this program as the server.")
@click.option("--args", "args", multiple=True, help="Pass an argument to the program (repeatable).")
@click.option("--env", "env", multiple=True, metavar="K=V", help="Set an environment variable.")
@click.option("--cwd", default="", help="Start the program in this folder.")
@click.option(
    "--transport", type=click.Choice(["http", "sse"]), default="http", help="Set the transport."
)
@click.option("--auth", type=click.Choice(["oauth", "header"]), help="Set how to authenticate.")
@click.option("--client-id", default="", help="Set the OAuth client id instead of registering.")
@click.option("--client-secret", default="", help="Set the OAuth client secret.")
@click.option("--private-key", default="", metavar="FILE", help="Sign with this PEM private key.")
@click.option("--scope", default="", help="Request this OAuth scope.")
@click.option("--unattended", is_flag=True, help="Log in with the client credentials alone.")
@click.option("--header", "headers", multiple=True, metavar="K:V", help="Send a header.")
@click.option("--include", multiple=True, help="Use only these tools (names or patterns).")
@click.option("--exclude", multiple=True, help="Do not use these tools.")
@untrusted_option
@click.option(
    "--connect-timeout",
    metavar="SECONDS",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Stop connecting after this time.",
)
@browser_option
@yes_option
def add(ctx: click.Context, /, name: str, rest: tuple[str, ...] = (), **given: Any) -> list[str]:
    if rest and not given["program"]:
        raise UsageError("Words after `--` are arguments of a program; name it with --command.")
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
        command_line = " ".join((own.command, *own.args))
        confirm(f"This starts  {command_line}  with your permissions. Continue?", yes=given["yes"])
    screen = TerminalScreen(browser=not given["no_browser"])
    listing = with_admin(ctx, lambda admin: admin.add(name, own, screen=screen))
    tools = (f"  {tool.name:<32} {one_line(tool.description, 60)}" for tool in listing.tools)
    return [_added(name, listing), *tools]


def _added(name: str, listing: ToolListing) -> str:
    return f"{mark('ok')} {name}: {len(listing.tools)} tools ({listing.title or 'unnamed'})"


def _pair(text: str, sign: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise UsageError(f"{text!r} is invalid; write NAME{sign}VALUE.")
    return name.strip(), value.strip()


@command.text("Remove a server and its login.", with_admin)
def remove(admin: McpAdmin, name: str) -> str:
    admin.remove(name)
    return f"{mark('ok')} {name} is removed."


@command.json("Connect to a server and show what it offers; exit with 1 on failure.", with_admin)
async def test(admin: McpAdmin, name: str) -> Output:
    trial = await admin.test(name)
    lines = [
        f"{mark('ok')} {name}: {trial.title or 'unnamed'}, protocol {trial.protocol}",
        f"  connected in {trial.milliseconds} ms",
        f"  {trial.tools} tools, {trial.resources} resources, {trial.prompts} prompts",
        *(
            f"{mark('warn')} ${{{variable}}} is not set, so it was passed unchanged"
            for variable in trial.unset
        ),
    ]
    return Output(trial, lines)


@command.json("List the tools that a server last reported.", with_admin)
def tools(admin: McpAdmin, name: str) -> Output:
    rows = admin.tools(name)

    def lines() -> Iterator[str]:
        if not rows:
            yield f"{name} has never been connected; `hermes mcp test {name}` connects to it."
        for row in rows:
            sign = mark("ok") if row.offered else apply_style("-", "dim")
            note = f" {mark('warn')} {row.finding}" if row.finding else ""
            yield f"{sign} {row.name:<40} {row.description[:60]}{note}"

    return Output(rows, lines())


@command.text("Choose which tools of a server to use.")
@click.option("--include", multiple=True, help="Use only these tools (names or patterns).")
@click.option("--exclude", multiple=True, help="Do not use these tools.")
@click.option("--all", "everything", is_flag=True, help="Use all tools.")
def configure(
    ctx: click.Context,
    name: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    everything: bool,
) -> str:
    if sum(map(bool, (include, exclude, everything))) > 1:
        raise UsageError("Give only one of --include, --exclude and --all.")
    if not (include or exclude or everything):
        include = _pick_tools(ctx, name)
    with_admin(ctx, lambda admin: admin.choose(name, include, exclude))
    return f"{mark('ok')} {name} is configured for new sessions."


def _pick_tools(ctx: click.Context, name: str) -> tuple[str, ...]:
    if not sys.stdin.isatty():
        raise UsageError("Give --include, --exclude or --all.")

    rows = with_admin(ctx, lambda admin: admin.tools(name))
    for number, row in enumerate(rows, 1):
        print(f"{number:>3} {'x' if row.offered else ' '} {row.tool:<32} {row.description[:50]}")
    numbers = input("Numbers of the tools to use, separated by spaces (empty: all): ").split()
    if not all(each.isdecimal() and 0 < int(each) <= len(rows) for each in numbers):
        raise UsageError("This is not a list of these numbers; nothing was changed.")
    return tuple(rows[int(each) - 1].tool for each in numbers)


@command.text("Log in to a server.", with_admin)
@browser_option
async def login(admin: McpAdmin, name: str, no_browser: bool) -> str:
    await admin.log_in(name, TerminalScreen(browser=not no_browser))
    return f"{mark('ok')} Logged in to {name}."


@command.text("Log out of a server.", with_admin)
def logout(admin: McpAdmin, name: str) -> str:
    return f"Logged out of {name}." if admin.log_out(name) else f"There is no login at {name}."


@command.text("Log in again to one server, or with --all to every server that needs a login.")
@click.option("--all", "everything", is_flag=True, help="Log in to every server that needs it.")
@browser_option
def reauth(ctx: click.Context, *, name: str = "", everything: bool, no_browser: bool) -> None:
    if bool(name) == everything:
        raise UsageError("Name one server, or give --all.")

    rows = with_admin(ctx, lambda admin: admin.rows()) if everything else ()
    for each in [row.name for row in rows if row.auth == "oauth"] if everything else [name]:
        ctx.invoke(login, name=each, no_browser=no_browser)


@command.text("Use a disabled server again.", with_admin)
def enable(admin: McpAdmin, name: str) -> str:
    admin.enable(name, True)
    return f"{mark('ok')} {name} is on in new sessions."


@command.text("Stop using a server, but keep it in the settings.", with_admin)
def disable(admin: McpAdmin, name: str) -> str:
    admin.enable(name, False)
    return f"{mark('ok')} {name} is off in new sessions."


@command.json("List servers that can be installed by name, or search for WORDS.", with_catalogue)
@click.option("--online", is_flag=True, help="Search the online registry instead.")
async def catalog(
    catalogue: ServerCatalogue, *, words: tuple[str, ...] = (), online: bool
) -> Output:
    from hermes.mcp.installation import catalogue_row

    wanted = " ".join(words)
    rows = await catalogue.search_registry(wanted) if online else catalogue.list_shipped(wanted)
    matches = [catalogue_row(each) for each in rows]

    def lines() -> Iterator[str]:
        if not matches:
            yield "No server matches" + ("." if online else "; --online searches the registry.")
            return
        cells = [(each.name, each.how, each.description) for each in matches]
        width = max(len(each.name) for each in matches)
        yield from table([("Server", "How", "What"), *cells], (width, 8))
        yield "\n`hermes mcp install NAME` installs one of them."

    return Output(matches, lines())


@command.text("Install a server: NAME is in the catalogue or registry, or a server.json file.")
@click.option("--as", "called", default="", metavar="NAME", help="Give the server this name.")
@click.option("--set", "pairs", multiple=True, metavar="K=V", help="Set an input of the server.")
@click.option("--remote", is_flag=True, help="Use the hosted server instead of a local process.")
@untrusted_option
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
    from hermes.mcp.installation import install_settings, plan_install

    server = with_catalogue(ctx, lambda catalogue: catalogue.find(name))
    plan, values = plan_install(server, remote=remote), dict[str, list[str]]()
    for key, value in (_pair(each, "=") for each in pairs):
        values.setdefault(key, []).append(value)
    if sys.stdin.isatty():
        for need in plan.missing(values):
            label = f"{need.name} ({need.description})" if need.description else need.name
            values[need.name] = [click.prompt(label, hide_input=need.is_secret)]
    own = install_settings(plan, values, untrusted=untrusted)
    if own.command:
        # The user sees which third-party program starts.
        label = " ".join((own.command, *own.args))
        confirm(f"This downloads and starts  {label}  with your permissions. Continue?", yes=yes)
    title, secrets = called or plan.description.short_name, plan.secrets()
    screen = TerminalScreen(browser=not no_browser)
    listing = with_admin(ctx, lambda admin: admin.add(title, own, screen=screen, secrets=secrets))
    return _added(title, listing)
