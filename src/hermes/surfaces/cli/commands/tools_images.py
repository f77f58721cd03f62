"""`hermes tools images`: choose the image generation provider and its model."""

from __future__ import annotations

import asyncio
import sys

import click

from hermes.app.build import App
from hermes.config.edit import set_from_text, write_settings
from hermes.images.setup import ImageRow, image_row, image_rows, settings_for_choice
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app
from hermes.surfaces.cli.place import home_of
from hermes.surfaces.cli.style import apply_style, mark


@click.command(help="List the image providers, or use PROVIDER in new sessions.")
@click.argument("provider", required=False)
@click.option("--model", default="", help="Which of its models to use.")
@as_json_option
@click.pass_context
def images(ctx: click.Context, provider: str | None, model: str, as_json: bool) -> None:
    if provider:
        take(ctx, provider, model)
    elif as_json:
        print_json(columns(_rows(ctx)))
    elif sys.stdin.isatty() and sys.stdout.isatty():
        choose_images(ctx)
    else:
        for row in _rows(ctx):
            line = f"{'✓' if row.used else ' '} {row.name:<18} {_state(row)}"
            print(line if row.available else apply_style(line, "dim"))


def choose_images(ctx: click.Context) -> None:
    """Pick a provider and a model; ask for missing variables."""
    # The picker loads a large library.
    from hermes.surfaces.cli.picker import Picker, PickerRow

    rows = _rows(ctx)
    now = next((row.name for row in rows if row.used), "")
    lines = [
        PickerRow(text=each.label, value=each.name, note=_state(each), faint=not each.available)
        for each in rows
    ]
    picked = asyncio.run(Picker("Image generation", lines, chosen=now).run())
    if picked is None:
        return
    row = next(each for each in rows if each.name == picked)
    _ask_variables(ctx, row)
    model = ""
    if len(row.models) > 1:
        choices = [
            PickerRow(text=str(each["id"]), value=str(each["id"]), note=_about(each))
            for each in row.models
        ]
        model = asyncio.run(Picker(f"{row.label}: model", choices, chosen=row.model).run()) or ""
    take(ctx, picked, model)


def take(ctx: click.Context, provider: str, model: str) -> None:
    async def work(app: App) -> ImageRow:
        return image_row(app.images, provider)

    row = with_app(ctx, work)
    write_settings(home_of(ctx), settings_for_choice(row, model))
    words = f"{row.label} generates images" + (f" with {model}" if model else "")
    print(f"{mark('ok')} {words} in new sessions.")
    for variable in row.variables:
        if variable.required and not variable.known:
            print(f"{mark('warn')} It needs {variable.key}: `hermes config set {variable.key} …`.")


def _ask_variables(ctx: click.Context, row: ImageRow) -> None:
    for variable in row.variables:
        if variable.known:
            continue
        where = apply_style(f" ({variable.url})", "dim") if variable.url else ""
        print(f"{variable.prompt}{where}")
        text = click.prompt(
            f"  {variable.key}", default="", show_default=False, hide_input=variable.secret
        )
        if text.strip():
            set_from_text(home_of(ctx), variable.key, text.strip())


def _rows(ctx: click.Context) -> tuple[ImageRow, ...]:
    async def work(app: App) -> tuple[ImageRow, ...]:
        return image_rows(app.images)

    return with_app(ctx, work)


def _state(row: ImageRow) -> str:
    need = f"needs {', '.join(row.missing)}" if row.missing else ""
    state = row.model or "ready" if row.available else need or row.badge
    source = "" if row.source == "bundled" else row.source
    return " · ".join(each for each in (state, row.tag, source) if each)


def _about(model: dict[str, object]) -> str:
    return " · ".join(str(model[key]) for key in ("speed", "strengths", "price") if model.get(key))
