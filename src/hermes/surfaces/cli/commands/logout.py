"""`hermes logout`: revoke and delete a login."""

from __future__ import annotations

import click

from hermes.core.errors import NotFound
from hermes.credentials.accounts import Accounts
from hermes.surfaces.cli.accounts import with_accounts
from hermes.surfaces.cli.output import text_output


@click.command(help="Log out of a provider; the default is the most recent login.")
@click.argument("provider", required=False, default="")
@click.option("--provider", "named", default="", metavar="NAME", help="The same as the argument.")
@text_output(with_accounts)
async def logout_command(accounts: Accounts, provider: str, named: str) -> list[str]:
    return await log_out(accounts, provider or named)


async def log_out(accounts: Accounts, provider: str) -> list[str]:
    provider = provider or accounts.active_provider()
    removed = await accounts.log_out(provider) if provider else ()
    if not removed:
        what = f"There is no login at {provider}" if provider else "There is no login"
        raise NotFound(f"{what}; `hermes auth list` shows all keys and logins.")
    return [
        f"logged out of {row.provider} ({row.label}), "
        + ("on this machine" if row.why else "and the provider revoked the token")
        for row in removed
    ]
