"""`hermes tools`: the toolsets of new sessions and the image provider."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click

from hermes.config.edit import set_from_text, write_settings
from hermes.core.errors import UsageError
from hermes.homes.toolsets import PLATFORMS, ToolsetState, changes, toolset_states
from hermes.images.registry import ImageRow, image_row, image_rows, settings_for_choice
from hermes.surfaces.cli.command_context import (
    PickerRow,
    apply_style,
    config_of,
    home_of,
    is_terminal,
    mark,
    with_app,
)
from hermes.surfaces.cli.output import CommandGroup, Output, pick
from hermes.tools.catalogue import declarations
from hermes.tools.toolbox import wanted_names

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.images.service import ImageGeneration

# A row of the picker that is not a toolset.
IMAGES = ":images"

T = TypeVar("T")


def with_images(ctx: click.Context, work: Callable[[ImageGeneration], T]) -> T:
    """Call the function with image generation, including the providers of plugins."""

    async def call(app: App) -> T:
        await app.plugins.offer()
        return work(app.shared.images)

    return with_app(ctx, call)


platform_option = click.option(
    "--platform", type=click.Choice(PLATFORMS), default=None, help="Apply only to this surface."
)


@click.group(
    cls=CommandGroup,
    help="Choose the toolsets of new sessions. Without a command, choose in the terminal.",
    invoke_without_command=True,
)
@click.option("--summary", is_flag=True, help="Print the tools of each surface.")
@click.pass_context
def command(ctx: click.Context, summary: bool) -> None:
    if ctx.invoked_subcommand is not None:
        if summary:
            raise UsageError("--summary takes no command; leave the command out.")
        return
    if summary:
        _summarize(ctx)
    elif is_terminal():
        choose(ctx)
    else:
        print("Choosing needs a terminal. Use instead:", file=sys.stderr)
        print("  hermes tools enable NAME\n  hermes tools disable NAME", file=sys.stderr)
        ctx.invoke(list_)


@command.json("List image providers, or choose one for new sessions.")
@click.option("--model", default="", help="Use this model of the provider.")
def images(ctx: click.Context, *, provider: str | None = None, model: str) -> Output:
    if provider:
        row = with_images(ctx, lambda images: image_row(images, provider))
        return Output(row, _use(ctx, row, model))
    rows = with_images(ctx, image_rows)

    def lines() -> Iterator[str]:
        if is_terminal():
            yield from _choose_images(ctx)
            return
        for row in rows:
            line = f"{'✓' if row.used else ' '} {row.name:<18} {_state(row)}"
            yield line if row.available else apply_style(line, "dim")

    return Output(rows, lines())


def _choose_images(ctx: click.Context) -> list[str]:
    """Pick a provider and a model; ask for missing variables."""
    rows = with_images(ctx, image_rows)
    now = next((row.name for row in rows if row.used), "")
    lines = [
        PickerRow(text=each.label, value=each.name, note=_state(each), faint=not each.available)
        for each in rows
    ]
    picked = pick("Image generation", lines, chosen=now)
    if picked is None:
        return []
    row = next(each for each in rows if each.name == picked)
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
    model = ""
    if len(row.models) > 1:
        choices = [
            PickerRow(
                text=str(each["id"]),
                value=str(each["id"]),
                note=" · ".join(
                    str(each[key]) for key in ("speed", "strengths", "price") if each.get(key)
                ),
            )
            for each in row.models
        ]
        model = pick(f"{row.label}: model", choices, chosen=row.model) or ""
    # The variables may be known by now.
    return _use(ctx, with_images(ctx, lambda images: image_row(images, picked)), model)


def _use(ctx: click.Context, row: ImageRow, model: str) -> list[str]:
    write_settings(home_of(ctx), settings_for_choice(row, model))
    description = f"{row.label} generates images" + (f" with {model}" if model else "")
    missing = [each.key for each in row.variables if each.required and not each.known]
    return [
        f"{mark('ok')} {description} in new sessions.",
        *(
            f"{mark('warn')} It needs {key}; set it with `hermes config set {key} …`."
            for key in missing
        ),
    ]


def _state(row: ImageRow) -> str:
    need = f"needs {', '.join(row.missing)}" if row.missing else ""
    state = row.model or "ready" if row.available else need or row.badge
    source = "" if row.source == "bundled" else row.source
    return " · ".join(each for each in (state, row.tag, source) if each)


def _summarize(ctx: click.Context) -> None:
    config = config_of(ctx)
    for platform in PLATFORMS:
        found = toolset_states(config.settings, platform, home=config.home)
        names = [_line(each).strip("✓ ") for each in found if each.enabled or each.partly]
        wanted = wanted_names(config.settings, platform=platform)
        count = sum(not declarations()[name].conditional for name in wanted)
        later = f" and {len(wanted) - count} once a provider is set up" if wanted[count:] else ""
        summary = f"{count} tools{later}: {', '.join(names) or 'none'}"
        print(f"{apply_style(f'{platform:<4}', 'bold')} {summary}")


def choose(ctx: click.Context) -> None:
    """Enter switches the selected toolset; each change is saved at once."""
    chosen: str | None = ""
    while chosen is not None:
        config = config_of(ctx)
        states = toolset_states(config.settings, home=config.home)
        rows = [
            PickerRow(text=_line(each), value=each.name, note=", ".join(each.tools))
            for each in states
        ]
        rows.append(PickerRow(text="  Image generation …", value=IMAGES, note="the image provider"))
        chosen = pick("Toolsets (Enter enables or disables)", rows, chosen=chosen)
        if chosen == IMAGES:
            print("\n".join(_choose_images(ctx)))
        for each in states:
            if each.name == chosen:
                is_on = each.enabled or each.partly
                print(_switch(ctx, (chosen,), on=not is_on, platform=""))


def _line(state: ToolsetState) -> str:
    return f"{'✓' if state.enabled else '~' if state.partly else ' '} {state.name}"


@command.json("List all toolsets, their state and their tools.")
@platform_option
def list_(ctx: click.Context, platform: str | None) -> Output:
    config = config_of(ctx)
    found = toolset_states(config.settings, platform or "", home=config.home)

    def lines() -> Iterator[str]:
        for each in found:
            line = f"{_line(each):<20} {', '.join(each.tools)}"
            yield line if each.enabled or each.partly else apply_style(line, "dim")

    return Output(found, lines())


@command.text("Enable toolsets in new sessions.")
@platform_option
def enable(ctx: click.Context, names: tuple[str, ...], platform: str | None) -> str:
    return _switch(ctx, names, on=True, platform=platform or "")


@command.text("Disable toolsets in new sessions.")
@platform_option
def disable(ctx: click.Context, names: tuple[str, ...], platform: str | None) -> str:
    return _switch(ctx, names, on=False, platform=platform or "")


def _switch(ctx: click.Context, names: tuple[str, ...], *, on: bool, platform: str) -> str:
    config = config_of(ctx)
    wanted = changes(config.settings, names, on=on, platform=platform)
    if wanted:
        write_settings(config.home, wanted)
    where = f" on {platform}" if platform else ""
    when = "in new sessions" if wanted else "already"
    return f"{mark('ok')} {', '.join(names)}: {'on' if on else 'off'}{where} {when}."
