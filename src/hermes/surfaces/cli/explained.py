"""`hermes config explain model`: who answers, and whom that hides."""

from __future__ import annotations

import click

from hermes.commands.amounts import short_count
from hermes.config.load import Config
from hermes.models.explaining import NOTHING, Reason, Why, explain_choice
from hermes.models.models import Models
from hermes.surfaces.cli.output import columns, print_json
from hermes.surfaces.cli.shelf import with_models
from hermes.surfaces.cli.style import mark, styled


def explain_model(ctx: click.Context, *, as_json: bool) -> None:
    async def work(models: Models, config: Config) -> Why:
        return explain_choice(models, config)

    why = with_models(ctx, work)
    if as_json:
        print_json(columns(why))
        return
    if why.winner is None:
        print(NOTHING)
    else:
        _print_winner(why.winner)
    for reason in why.shadowed:
        print(styled(f"  hides    {_named(reason)}  ({reason.why})", "dim"))
    for key, value, source in why.said:
        print(styled(f"  {key} = {value}  ({source})", "dim"))


def _print_winner(reason: Reason) -> None:
    print(styled(_named(reason), "bold"))
    print(f"  from     {reason.why}")
    if reason.problem:
        print(f"  {mark('error')} {reason.problem}")
    elif reason.host:
        key = "with a key" if reason.has_key else "without a key"
        window = short_count(reason.window)
        print(f"  asks     {reason.host} ({reason.wire}) {key}, window {window}")


def _named(reason: Reason) -> str:
    return f"{reason.model or 'its usual model'} ({reason.provider})"
