"""`hermes login`: log in to a provider, by device code or in the browser."""

from __future__ import annotations

import click

from hermes.core.errors import UsageError
from hermes.credentials.accounts import Accounts
from hermes.surfaces.cli.accounts import TerminalScreen, with_accounts
from hermes.surfaces.cli.output import text_output
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.style import mark


@click.command(help="Log in to a provider; the default is the one in the settings.")
@click.argument("provider", required=False, default="")
@click.option("--provider", "named", default="", metavar="NAME", help="The same as the argument.")
@click.option("--no-browser", is_flag=True, help="Print the URL instead of opening a browser.")
@click.option("--label", default="", help="A name for a second login at the same provider.")
@text_output()
def login_command(
    ctx: click.Context, provider: str, named: str, no_browser: bool, label: str
) -> list[str]:
    provider = provider or named
    chosen = provider or config_of(ctx).settings.model.provider

    async def work(accounts: Accounts) -> list[str]:
        if not chosen or (not provider and accounts.known_name(chosen) not in accounts.logins()):
            raise UsageError(f"Name a provider: {', '.join(accounts.logins())}.")
        row = await accounts.log_in(chosen, TerminalScreen(browser=not no_browser), label=label)
        choose = f"`hermes config set model.provider {row.provider}` or `hermes -m`"
        return [
            f"{mark('ok')} logged in to {row.provider} ({row.label})",
            f"Choose a model with {choose}.",
        ]

    return with_accounts(ctx, work)
