"""`hermes config explain model`: which model answers, and which choices it overrides."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hermes.commands.amounts import format_count
from hermes.config.load import Config
from hermes.models.explaining import NOTHING, CandidateReason, ChoiceExplanation, explain_choice
from hermes.models.models import Models
from hermes.surfaces.cli.output import Output
from hermes.surfaces.cli.shelf import with_models
from hermes.surfaces.cli.style import apply_style, mark


def explain_model(ctx: click.Context) -> Output:
    async def work(models: Models, config: Config) -> ChoiceExplanation:
        return explain_choice(models, config)

    why = with_models(ctx, work)
    return Output(why, _lines(why))


def _lines(why: ChoiceExplanation) -> Iterator[str]:
    if why.winner is None:
        yield NOTHING
    else:
        yield from _winner_lines(why.winner)
    for reason in why.shadowed:
        yield apply_style(f"  hides    {_name(reason)}  ({reason.why})", "dim")
    for key, value, source in why.said:
        yield apply_style(f"  {key} = {value}  ({source})", "dim")


def _winner_lines(reason: CandidateReason) -> Iterator[str]:
    yield apply_style(_name(reason), "bold")
    yield f"  from     {reason.why}"
    if reason.problem:
        yield f"  {mark('error')} {reason.problem}"
    elif reason.host:
        key = "with a key" if reason.has_key else "without a key"
        window = format_count(reason.window)
        yield f"  asks     {reason.host} ({reason.wire}) {key}, window {window}"


def _name(reason: CandidateReason) -> str:
    return f"{reason.model or 'its usual model'} ({reason.provider})"
