"""`hermes moa`: the presets of the mixture of agents."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hermes.codec.json import plain
from hermes.codec.values import replace
from hermes.commands.formatting import plural
from hermes.config.moa_settings import MoaPresetSettings
from hermes.config.provider_settings import FallbackSettings
from hermes.core.errors import UsageError
from hermes.moa.presets import (
    ModelStatus,
    PresetStatus,
    delete_preset,
    inspect_preset,
    save_preset,
)
from hermes.models.models import Models
from hermes.surfaces.cli.command_context import apply_style, config_of, mark
from hermes.surfaces.cli.commands.model_lookup import find_model, with_models
from hermes.surfaces.cli.output import CommandGroup, Output

command = CommandGroup(help="Manage the presets of the mixture of agents.", default="list")


@command.json("List the presets, their models and what a question costs.")
def list_(ctx: click.Context) -> Output:
    settings = config_of(ctx).settings.moa
    rows = with_models(
        ctx,
        lambda models: [inspect_preset(models, *each) for each in settings.presets.items()],
    )

    def lines() -> Iterator[str]:
        if not rows:
            yield "There is no preset; `hermes moa configure` creates one."
        for row in rows:
            yield from _describe(row, is_default=row.name == settings.default_preset)

    data = [{**plain(row), "usable": row.usable, "cost": row.cost} for row in rows]
    return Output(data, lines())


def _describe(preset: PresetStatus, *, is_default: bool) -> Iterator[str]:
    sign = mark("ok") if preset.usable else mark("warn")
    cost = "" if preset.cost is None else f", about ${preset.cost:.3f} for a typical question"
    yield f"{sign} {preset.name}{', used by default' if is_default else ''}{cost}"
    for each in preset.references:
        yield from _describe_model("reference", each)
    yield from _describe_model("aggregator", preset.aggregator)
    if preset.needed > 1:
        yield f"     at least {preset.needed} references must answer"


def _describe_model(kind: str, model: ModelStatus) -> Iterator[str]:
    yield f"     {kind}: {model.model} ({model.provider})"
    if model.problem:
        yield apply_style(f"       cannot be used: {model.problem}", "dim")


@command.text("Create or change a preset.")
@click.argument("name", default="default")
@click.option(
    "--reference", "references", multiple=True, metavar="MODEL", help="Ask this model (repeat it)."
)
@click.option("--aggregator", default="", metavar="MODEL", help="Let this model combine answers.")
@click.option(
    "--min-success",
    type=click.IntRange(min=1),
    metavar="N",
    help="Require answers of N reference models.",
)
def configure(
    ctx: click.Context,
    name: str,
    references: tuple[str, ...],
    aggregator: str,
    min_success: int | None,
) -> str:
    config = config_of(ctx)
    preset = config.settings.moa.presets.get(name, MoaPresetSettings())
    if not (references or aggregator or min_success):
        raise UsageError(
            "Name the models: `hermes moa configure --reference MODEL --reference MODEL "
            "--aggregator MODEL`."
        )

    async def change(models: Models) -> MoaPresetSettings:
        changed = preset
        if references:
            found = [await _find(models, each) for each in references]
            changed = replace(changed, reference_models=tuple(found))
        if aggregator:
            changed = replace(changed, aggregator=await _find(models, aggregator))
        least = min_success or preset.min_successful_references
        return replace(changed, min_successful_references=least)

    changed = with_models(ctx, change)
    save_preset(config, name, changed)
    count = plural(len(changed.reference_models), "reference model")
    return (
        f"The preset {name} has {count}; ask it with /moa QUESTION, or add the toolset `moa` to "
        "`toolsets` to let the agent ask it."
    )


async def _find(models: Models, name: str) -> FallbackSettings:
    card = (await find_model(models, name, "")).card
    return FallbackSettings(provider=card.provider, model=card.model)


@command.text("Delete a preset.")
@click.argument("name")
def delete(ctx: click.Context, name: str) -> str:
    delete_preset(config_of(ctx), name)
    return f"The preset {name} is deleted."
