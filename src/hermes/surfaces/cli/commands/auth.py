"""`hermes auth`, `login` and `logout`: API keys and logins of providers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from getpass import getpass
from typing import TYPE_CHECKING

import click

from hermes.commands.formatting import plural
from hermes.config.diagnostics import Level
from hermes.config.environment import process_environment
from hermes.core.errors import NotFound, UsageError
from hermes.credentials.accounts import Accounts, open_accounts
from hermes.credentials.key_pool import format_duration
from hermes.surfaces.cli.command_context import Opener, apply_style, config_of, mark
from hermes.surfaces.cli.output import CommandGroup, Output, table, text_command

if TYPE_CHECKING:
    from hermes.credentials.admin import AccountRow

with_accounts = Opener(lambda ctx: open_accounts(config_of(ctx), env=process_environment()))

named_option = click.option(
    "--provider",
    "named",
    default="",
    metavar="NAME",
    help="Use this provider (instead of the argument).",
)
browser_option = click.option(
    "--no-browser", is_flag=True, help="Print the URL instead of opening a browser."
)


class TerminalScreen:
    """Prints the login URL, and opens a browser if there is one."""

    def __init__(self, *, browser: bool) -> None:
        env = process_environment()
        # Over a remote shell, or without a display, only a text browser could open.
        remote = bool(env.get("SSH_CONNECTION") or env.get("SSH_TTY"))
        display = sys.platform == "darwin" or env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")
        self._browser = browser and not remote and bool(display)

    def show_code(self, url: str, code: str, *, whole_url: str, seconds: float) -> None:
        print(f"Open  {apply_style(whole_url or url, 'bold')}")
        print(f"and {'check' if whole_url else 'type in'} the code  {apply_style(code, 'bold')}")
        print(f"Waiting for up to {max(1, round(seconds / 60))} min; Ctrl+C stops.", flush=True)
        self._open(whole_url or url)

    def show_page(self, url: str, *, paste: bool) -> None:
        print(f"Open  {apply_style(url, 'bold')}")
        if paste:
            print("If the browser does not return here, paste the code that it shows:")
        sys.stdout.flush()
        self._open(url)

    async def read_pasted(self) -> str:
        """A line of stdin. Not read in a thread, which could not be cancelled when the browser
        returns first."""
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            text = sys.stdin.readline()
            if text.strip() and not line.done():
                line.set_result(text)
            elif not text:
                loop.remove_reader(sys.stdin)

        with suppress(OSError, ValueError):
            loop.add_reader(sys.stdin, read)
        try:
            return await line
        finally:
            with suppress(OSError, ValueError):
                loop.remove_reader(sys.stdin)

    def reject_pasted(self, why: str) -> None:
        print(f"This was not accepted: {why}. Paste the code or the URL of the last page again:")
        sys.stdout.flush()

    def _open(self, url: str) -> None:
        if self._browser:
            import webbrowser

            webbrowser.open(url)


@text_command("Log in to a provider (default: the provider in the settings).")
@named_option
@browser_option
@click.option("--label", default="", help="Name a second login at the same provider.")
def login_command(
    ctx: click.Context, *, provider: str = "", named: str, no_browser: bool, label: str
) -> list[str]:
    provider = provider or named
    chosen = provider or config_of(ctx).settings.model.provider

    async def work(accounts: Accounts) -> list[str]:
        if not chosen or (not provider and accounts.known_name(chosen) not in accounts.logins()):
            raise UsageError(f"Name one of these providers: {', '.join(accounts.logins())}.")
        row = await accounts.admin(chosen).log_in(
            TerminalScreen(browser=not no_browser), label=label
        )
        return [
            f"{mark('ok')} Logged in to {row.provider} ({row.label}).",
            f"`hermes config set model.provider {row.provider}` makes it the default provider.",
        ]

    return with_accounts(ctx, work)


@text_command("Log out of a provider (default: the most recent login).", with_accounts)
@named_option
async def logout_command(accounts: Accounts, *, provider: str = "", named: str) -> list[str]:
    provider = provider or named or accounts.active_provider()
    removed = await accounts.admin(provider).log_out() if provider else ()
    if not removed:
        what = f"There is no login at {provider}" if provider else "There is no login"
        raise NotFound(f"{what}; `hermes auth list` lists all keys and logins.")
    ending = {True: "on this machine", False: "and the provider revoked the token"}
    return [
        f"Logged out of {row.provider} ({row.label}), {ending[bool(row.why)]}." for row in removed
    ]


WIDTHS = (3, 22, 8, 26)
WHY = {"rate_limit": "rate limit", "billing": "no credit", "auth": "refused"}


command = CommandGroup(
    help="Manage API keys and logins of providers. Without a command, show their state.",
    default="status",
)
command.add_command(logout_command, "logout")


@command.json("List all keys and logins, or those of one provider.", with_accounts)
async def list_(accounts: Accounts, provider: str = "") -> Output:
    rows = await accounts.rows(provider)

    def lines() -> Iterator[str]:
        if not rows:
            whose = f"{provider} has no key" if provider else "There is no key or login yet"
            yield f"{whose}; `hermes auth add {provider or 'PROVIDER'}` adds one."
        for name in dict.fromkeys(row.provider for row in rows):
            yield apply_style(name, "bold")
            cells = [("#", "Label", "Type", "Source", "Status")]
            for row in rows:
                if row.provider == name:
                    source = f"{row.source} ({row.kept_in})" if row.kept_in else row.source
                    kind = "login" if row.type == "oauth" else "key"
                    label = row.label or row.id
                    cells.append((str(row.index), label, kind, source, _condition(row)))
            yield from table(cells, WIDTHS)
            yield ""

    return Output(rows, lines())


def _condition(row: AccountRow) -> str:
    if row.status == "resting":
        state = f"paused for {format_duration(row.left_seconds)} ({WHY.get(row.why, row.why)})"
    elif row.status == "ok":
        state = "ok"
    else:
        state = f"{row.status}: {row.why}" if row.why else row.status
    return f"{state} ←" if row.current else state


@command.json("Show the state of the keys and logins of each provider.", with_accounts)
async def status(accounts: Accounts) -> Output:
    rows, active = await accounts.rows(), accounts.active_provider()
    data = {"active_provider": active, "keyring": accounts.has_keyring(), "accounts": rows}

    def lines() -> Iterator[str]:
        if not rows:
            yield "There is no key or login yet; `hermes auth add PROVIDER` adds one."
        for name in dict.fromkeys(row.provider for row in rows):
            own = [row for row in rows if row.provider == name]
            healthy = sum(row.status == "ok" for row in own)
            level: Level = "ok" if healthy == len(own) else "warn" if healthy else "error"
            state = f"{healthy} of {len(own)} ready" if len(own) > 1 else _condition(own[0])
            login = apply_style("  (last login)", "dim") if active == name else ""
            yield f"{mark(level)} {name:<18} {state.rstrip(' ←')}{login}"
            for row in own:
                if advice := _advice(row):
                    yield f"    {row.label or row.id}: {advice}"

    return Output(data, lines())


def _advice(row: AccountRow) -> str:
    if row.status == "dead" and row.type == "oauth":
        return f"the login has ended ({row.why}); run `hermes login {row.provider}`"
    if row.status in ("dead", "expired"):
        return f"cannot be used ({row.why or row.status})"
    if row.status == "resting" and row.why == "auth":
        remedy = f"`hermes auth remove {row.provider} {row.index}`"
        return f"was refused; check it, or remove it with {remedy}"
    if row.status == "resting" and row.why == "billing":
        return f"has no credit; add some, then `hermes auth reset {row.provider}`"
    return ""


@command.text("Add a key or a login; the key is read from a prompt or from stdin.")
@click.option(
    "--type", "kind", type=click.Choice(["api-key", "oauth"]), help="Add a key or a login."
)
@click.option("--api-key", metavar="KEY", help="Add this key (the prompt is safer).")
@click.option("--label", default="", help="Give the key or login this name.")
@browser_option
def add(
    ctx: click.Context,
    provider: str,
    kind: str | None,
    api_key: str | None,
    label: str,
    no_browser: bool,
) -> str:
    if kind == "oauth" and api_key is not None:
        raise UsageError("Give --api-key or --type oauth, not both.")
    if kind is None and api_key is None:
        takes_keys = with_accounts(ctx, lambda accounts: accounts.takes_keys(provider))
        kind = "api-key" if takes_keys else "oauth"
    if kind == "api-key" and api_key is None:
        # Prompt outside the event loop, so that Ctrl+C works at once.
        if sys.stdin.isatty():
            api_key = getpass(f"Key for {provider} (hidden): ")
        else:
            api_key = sys.stdin.readline().strip()

    async def work(accounts: Accounts) -> AccountRow:
        if api_key is not None:
            return await accounts.admin(provider).add_key(api_key, label=label)
        screen = TerminalScreen(browser=not no_browser)
        return await accounts.admin(provider).log_in(screen, label=label)

    row = with_accounts(ctx, work)
    storage = f" (in the {row.kept_in})" if row.kept_in else ""
    return (
        f"{mark('ok')} {row.provider}: added {row.label or row.id} as number {row.index}{storage}."
    )


@command.text("Remove a key or login.", with_accounts)
@click.argument("provider")
@click.argument("which", metavar="NUMBER|ID|LABEL")
async def remove(accounts: Accounts, provider: str, which: str) -> str:
    row = await accounts.admin(provider).remove(which)
    kind, _, name = row.source.partition(":")
    if kind in ("env", "config"):
        where = "variable" if kind == "env" else "setting"
        return f"{row.provider} no longer uses {name}; the {where} itself is unchanged."
    if kind in ("manual", "device_code", "hermes_pkce"):
        return f"{row.label or row.id} is removed from {row.provider}."
    return f"{row.provider} no longer uses the login of {row.label}, which stays unchanged."


@command.text("Use the paused keys of a provider again.", with_accounts)
async def reset(accounts: Accounts, provider: str) -> str:
    count = await accounts.admin(provider).reset()
    return f"{plural(count, 'paused key')} of {provider} can be used again."
