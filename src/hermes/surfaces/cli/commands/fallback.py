"""`hermes fallback`: the models to use, in order, when the first one fails."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hermes.codec.values import Value
from hermes.commands.formatting import plural
from hermes.config.provider_settings import FallbackSettings
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.models.models import Models, ref_of
from hermes.models.saved_choice import save_chain
from hermes.surfaces.cli.command_context import apply_style, config_of, mark
from hermes.surfaces.cli.commands.model_lookup import find_model, with_models
from hermes.surfaces.cli.output import CommandGroup, Output

command = CommandGroup(
    help="Choose the models to use, in order, when the first one fails.",
    default="list",
)


class ChainRow(Value):
    """An entry of the chain; `problem` says why it is skipped at present."""

    place: int
    model: str
    provider: str
    base_url: str = ""
    usable: bool = True
    problem: str = ""


@command.json("List the fallback models and whether they can be used.")
def list_(ctx: click.Context) -> Output:
    chain = enumerate(config_of(ctx).settings.fallback_providers, start=1)
    rows = with_models(ctx, lambda models: [_row(models, index, entry) for index, entry in chain])

    def lines() -> Iterator[str]:
        if not rows:
            yield "There is no fallback model; `hermes fallback add NAME` adds one."
        for row in rows:
            sign = mark("ok") if row.usable else mark("warn")
            where = f" at {row.base_url}" if row.base_url else ""
            yield f"{sign} {row.place}. {row.model} ({row.provider}){where}"
            if row.problem:
                yield apply_style(f"     skipped: {row.problem}", "dim")

    return Output(rows, lines())


def _row(models: Models, place: int, entry: FallbackSettings) -> ChainRow:
    problem = ""
    try:
        models.check(ref_of(entry))
    except HermesError as error:
        problem = str(error)
    return ChainRow(
        place=place,
        model=entry.model,
        provider=ref_of(entry).provider,
        base_url=entry.base_url,
        usable=not problem,
        problem=problem,
    )


@command.text("Add a fallback model, or move it to another position.")
@click.option("--provider", default="", help="Use this provider.")
@click.option("--base-url", default="", help="Use the custom endpoint at this URL.")
@click.option("--key-env", default="", help="Read the key of the endpoint from this variable.")
@click.option(
    "--place", type=click.IntRange(min=1), metavar="N", help="Use this position (default: last)."
)
def add(
    ctx: click.Context, name: str, provider: str, base_url: str, key_env: str, place: int | None
) -> list[str]:
    async def make_entry(models: Models) -> FallbackSettings:
        if not base_url:
            card = (await find_model(models, name, provider)).card
            return FallbackSettings(provider=card.provider, model=card.model)
        entry = FallbackSettings(
            provider=provider or "custom", model=name, base_url=base_url, key_env=key_env
        )
        models.check(ref_of(entry))
        return entry

    config = config_of(ctx)
    entry = with_models(ctx, make_entry)
    chain = insert_entry(config.settings.fallback_providers, entry, place)
    save_chain(config, chain)
    return [f"{number}. {each.model} ({each.provider})" for number, each in enumerate(chain, 1)]


def insert_entry(
    chain: tuple[FallbackSettings, ...], entry: FallbackSettings, place: int | None = None
) -> tuple[FallbackSettings, ...]:
    """Add the entry; an existing entry moves to the new position."""

    def key(each: FallbackSettings) -> tuple[str, str, str]:
        return each.provider, each.model, each.base_url

    rest = [each for each in chain if key(each) != key(entry)]
    rest.insert(len(rest) if place is None else place - 1, entry)
    return tuple(rest)


@command.text("Remove a fallback model.")
@click.argument("which", metavar="POSITION|NAME")
def remove(ctx: click.Context, which: str) -> str:
    config = config_of(ctx)
    chain = config.settings.fallback_providers
    names = [f"{each.provider}:{each.model}" for each in chain]
    matches = [
        index
        for index, each in enumerate(chain)
        if which in (str(index + 1), each.model, names[index])
    ]
    if not matches:
        raise NotFound(f"There is no fallback model {which!r}; see `hermes fallback list`.")
    if len(matches) > 1:
        raise UsageError(f"{which!r} is in the list {len(matches)} times; give its position.")
    save_chain(config, tuple(each for n, each in enumerate(chain) if n != matches[0]))
    return f"{names[matches[0]]} is removed."


@command.text("Remove all fallback models.")
def clear(ctx: click.Context) -> str:
    config = config_of(ctx)
    count = len(config.settings.fallback_providers)
    if count:
        save_chain(config, ())
    return f"{plural(count, 'fallback model')} removed."
