"""`hermes auth`: the keys and logins of each provider, and how they are doing."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import TYPE_CHECKING

import click

from hermes.config.findings import Level
from hermes.core.errors import UsageError
from hermes.credentials.accounts import Accounts
from hermes.surfaces.cli.accounts import TerminalScreen, with_accounts
from hermes.surfaces.cli.commands.logout import log_out
from hermes.surfaces.cli.output import as_json_option, columns, print_json, print_table
from hermes.surfaces.cli.style import mark, styled

if TYPE_CHECKING:
    from hermes.credentials.desk import AccountRow

WIDTHS = (3, 22, 8, 26)
WHY = {"rate_limit": "rate limit", "billing": "no credit", "auth": "refused"}


@click.group(
    help="Keys and logins of providers. Without a command: status.", invoke_without_command=True
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        ctx.invoke(status, as_json=False)


@command.command("list", help="All keys and logins, or those of one provider.")
@click.argument("provider", required=False, default="")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, provider: str, as_json: bool) -> None:
    rows = with_accounts(ctx, lambda accounts: accounts.rows(provider))
    if as_json:
        print_json(columns(rows))
        return
    if not rows:
        whose = f"{provider} has no key" if provider else "There is no key or login yet"
        print(f"{whose}; `hermes auth add {provider or 'PROVIDER'}` adds one.")
    for name in dict.fromkeys(row.provider for row in rows):
        print(styled(name, "bold"))
        table = [("#", "Label", "Type", "Source", "Status")]
        table += [_cells(row) for row in rows if row.provider == name]
        print_table(table, WIDTHS)
        print()


def _cells(row: AccountRow) -> tuple[str, str, str, str, str]:
    kept = f"{row.source} ({row.kept_in})" if row.kept_in else row.source
    kind = "login" if row.type == "oauth" else "key"
    return (str(row.index), row.label or row.id, kind, kept, _condition(row))


def _condition(row: AccountRow) -> str:
    if row.status == "resting":
        words = f"rests for {_span(row.left_seconds)} ({WHY.get(row.why, row.why)})"
    elif row.status == "ok":
        words = "ok"
    else:
        words = f"{row.status}: {row.why}" if row.why else row.status
    return f"{words} ←" if row.current else words


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} s"


@command.command(help="How the keys of each provider are doing, and what needs attention.")
@as_json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    async def work(accounts: Accounts) -> tuple[tuple[AccountRow, ...], str, bool]:
        return await accounts.rows(), accounts.active_provider(), accounts.has_keyring()

    rows, active, keyring = with_accounts(ctx, work)
    if as_json:
        print_json({"active_provider": active, "keyring": keyring, "accounts": columns(rows)})
        return
    if not rows:
        print("There is no key or login yet; `hermes auth add PROVIDER` or `hermes login`.")
    for name in dict.fromkeys(row.provider for row in rows):
        _print_provider(name, [row for row in rows if row.provider == name], active == name)


def _print_provider(name: str, rows: list[AccountRow], active: bool) -> None:
    healthy = sum(row.status == "ok" for row in rows)
    level: Level = "ok" if healthy == len(rows) else "warn" if healthy else "error"
    words = f"{healthy} of {len(rows)} ready" if len(rows) > 1 else _condition(rows[0]).rstrip(" ←")
    login = styled("  (last login)", "dim") if active else ""
    print(f"{mark(level)} {name:<18} {words}{login}")
    for row in rows:
        if advice := _advice(row):
            print(f"    {row.label or row.id}: {advice}")


def _advice(row: AccountRow) -> str:
    if row.status == "dead" and row.type == "oauth":
        return f"the login is over ({row.why}); run `hermes login {row.provider}`"
    if row.status in ("dead", "expired"):
        return f"cannot be used ({row.why or row.status})"
    if row.status == "resting" and row.why == "auth":
        remedy = f"`hermes auth remove {row.provider} {row.index}`"
        return f"was refused; check it, or remove it with {remedy}"
    if row.status == "resting" and row.why == "billing":
        return "has no credit; add some, then `hermes auth reset " + row.provider + "`"
    return ""


@command.command(help="Add a key (asked for, or from stdin) or a login to a provider.")
@click.argument("provider")
@click.option("--type", "kind", type=click.Choice(["api-key", "oauth"]), help="What to add.")
@click.option("--api-key", metavar="KEY", help="The key; better typed in when asked.")
@click.option("--label", default="", help="A name to know it by.")
@click.option("--no-browser", is_flag=True, help="Only show the address to open.")
@click.pass_context
def add(
    ctx: click.Context,
    provider: str,
    kind: str | None,
    api_key: str | None,
    label: str,
    no_browser: bool,
) -> None:
    if kind == "oauth" and api_key is not None:
        raise UsageError("--api-key and --type oauth exclude each other; give one of them.")

    async def wants_key(accounts: Accounts) -> bool:
        return kind == "api-key" or (kind is None and accounts.takes_keys(provider))

    # Asked for outside of the loop: whoever types Ctrl+C here is heard at once.
    if api_key is None and with_accounts(ctx, wants_key):
        api_key = _asked_key(provider)

    async def work(accounts: Accounts) -> AccountRow:
        if api_key is not None:
            return await accounts.add_key(provider, api_key, label=label)
        screen = TerminalScreen(browser=not no_browser)
        return await accounts.log_in(provider, screen, label=label)

    row = with_accounts(ctx, work)
    kept = f" (in the {row.kept_in})" if row.kept_in else ""
    print(f"{mark('ok')} {row.provider}: {row.label or row.id} is number {row.index}{kept}")


def _asked_key(provider: str) -> str:
    if sys.stdin.isatty():
        return getpass(f"Key for {provider} (not shown): ")
    return sys.stdin.readline().strip()


@command.command(help="Remove a key or login, by its number, id or label.")
@click.argument("provider")
@click.argument("which")
@click.pass_context
def remove(ctx: click.Context, provider: str, which: str) -> None:
    row = with_accounts(ctx, lambda accounts: accounts.remove(provider, which))
    place, _, name = row.source.partition(":")
    if place in ("env", "config"):
        where = "variable" if place == "env" else "setting"
        print(f"{row.provider} no longer uses {name}; the {where} itself is unchanged")
    elif place in ("manual", "device_code", "hermes_pkce"):
        print(f"removed {row.label or row.id} from {row.provider}")
    else:
        print(f"{row.provider} no longer uses the login of {row.label}; it is unchanged")


@command.command(help="Use resting keys of a provider again at once.")
@click.argument("provider")
@click.pass_context
def reset(ctx: click.Context, provider: str) -> None:
    count = with_accounts(ctx, lambda accounts: accounts.reset(provider))
    print(f"{count} of the keys of {provider} rested; all can be used again")


@command.command("logout", help="Log out of a provider, as `hermes logout` does.")
@click.argument("provider", required=False, default="")
@click.pass_context
def logout_(ctx: click.Context, provider: str) -> None:
    log_out(ctx, provider)
