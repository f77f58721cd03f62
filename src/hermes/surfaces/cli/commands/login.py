"""`hermes login`: log in at a provider, by a code or by the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hermes.core.errors import UsageError
from hermes.credentials.accounts import Accounts
from hermes.surfaces.cli.accounts import TerminalScreen, with_accounts
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.style import mark

if TYPE_CHECKING:
    from hermes.credentials.desk import AccountRow


@click.command(help="Log in at a provider; without one: at the one in the settings.")
@click.argument("provider", required=False, default="")
@click.option("--provider", "named", default="", metavar="NAME", help="The same as the argument.")
@click.option("--no-browser", is_flag=True, help="Only show the address to open.")
@click.option("--label", default="", help="A name for a second login at the same provider.")
@click.pass_context
def command(ctx: click.Context, provider: str, named: str, no_browser: bool, label: str) -> None:
    provider = provider or named
    chosen = provider or config_of(ctx).settings.model.provider

    async def work(accounts: Accounts) -> AccountRow:
        if not chosen or (not provider and accounts.known_name(chosen) not in accounts.logins()):
            raise UsageError(f"Say where to log in: {', '.join(accounts.logins())}.")
        screen = TerminalScreen(browser=not no_browser)
        return await accounts.log_in(chosen, screen, label=label)

    row = with_accounts(ctx, work)
    print(f"{mark('ok')} logged in at {row.provider} ({row.label})")
    print(f"Choose a model with `hermes config set model.provider {row.provider}` or `hermes -m`.")
