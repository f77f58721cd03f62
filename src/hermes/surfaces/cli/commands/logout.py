"""`hermes logout`: give a login back and forget it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hermes.core.errors import NotFound
from hermes.credentials.accounts import Accounts
from hermes.surfaces.cli.accounts import with_accounts

if TYPE_CHECKING:
    from hermes.credentials.desk import AccountRow


@click.command(help="Log out of a provider; without one: of the last that was logged in to.")
@click.argument("provider", required=False, default="")
@click.option("--provider", "named", default="", metavar="NAME", help="The same as the argument.")
@click.pass_context
def command(ctx: click.Context, provider: str, named: str) -> None:
    log_out(ctx, provider or named)


def log_out(ctx: click.Context, provider: str) -> None:
    async def work(accounts: Accounts) -> tuple[AccountRow, ...]:
        chosen = provider or accounts.active_provider()
        gone = await accounts.log_out(chosen) if chosen else ()
        if not gone:
            whose = f"There is no login at {chosen}" if chosen else "Nobody is logged in anywhere"
            raise NotFound(f"{whose}; `hermes auth list` shows what there is.")
        return gone

    for row in with_accounts(ctx, work):
        done = "and the provider has taken the token back" if not row.why else "on this machine"
        print(f"logged out of {row.provider} ({row.label}), {done}")
