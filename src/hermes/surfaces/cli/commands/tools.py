"""`hermes tools`: the toolsets of new sessions and the image provider."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import click

from hermes.app.app import App
from hermes.config.edit import set_from_text, write_settings
from hermes.core.errors import UsageError
from hermes.homes.toolsets import PLATFORMS, ToolsetState, changes, toolset_states
from hermes.images.registry import ImageRow, image_row, image_rows, settings_for_choice
from hermes.surfaces.cli.command_context import apply_style, config_of, home_of, mark
from hermes.surfaces.cli.output import (
    Output,
    as_json_option,
    columns,
    json_output,
    print_json,
    text_output,
    with_app,
)
from hermes.tools.catalogue import declarations
from hermes.tools.toolbox import wanted_names


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


# A row of the picker that is not a toolset.
IMAGES = ":images"
platform_option = click.option(
    "--platform", type=click.Choice(PLATFORMS), default=None, help="Only on this surface."
)


@click.group(
    help="Choose the toolsets of new sessions. Without a command: choose in the terminal.",
    invoke_without_command=True,
)
@click.option("--summary", is_flag=True, help="Print the tools of each surface and exit.")
@click.pass_context
def command(ctx: click.Context, summary: bool) -> None:
    if ctx.invoked_subcommand is not None:
        if summary:
            raise UsageError("--summary takes no command; leave it out.")
        return
    if summary:
        _summarize(ctx)
    elif sys.stdin.isatty() and sys.stdout.isatty():
        choose(ctx)
    else:
        print("There is no terminal to choose in. Use instead:", file=sys.stderr)
        print("  hermes tools enable NAME\n  hermes tools disable NAME", file=sys.stderr)
        ctx.invoke(list_)


def _summarize(ctx: click.Context) -> None:
    config = config_of(ctx)
    for platform in PLATFORMS:
        found = toolset_states(config.settings, platform, home=config.home)
        names = [_line(each).strip("✓ ") for each in found if each.enabled or each.partly]
        wanted = wanted_names(config.settings, platform=platform)
        count = sum(not declarations()[name].conditional for name in wanted)
        later = f" and {len(wanted) - count} once a provider is set up" if wanted[count:] else ""
        words = f"{count} tools{later}: {', '.join(names) or 'none'}"
        print(f"{apply_style(f'{platform:<4}', 'bold')} {words}")


def choose(ctx: click.Context) -> None:
    """Enter switches the selected toolset; each change is saved at once."""
    # The picker loads a large library.
    from hermes.surfaces.cli.picker import Picker, PickerRow

    chosen = ""
    while True:
        config = config_of(ctx)
        found = toolset_states(config.settings, home=config.home)
        rows = [
            PickerRow(text=_line(each), value=each.name, note=", ".join(each.tools))
            for each in found
        ]
        rows.append(PickerRow(text="  Image generation …", value=IMAGES, note="the image provider"))
        picked = asyncio.run(Picker("Toolsets (Enter switches)", rows, chosen=chosen).run())
        if picked is None:
            return
        if picked == IMAGES:
            choose_images(ctx)
            continue
        chosen = picked
        print(_switch(ctx, (picked,), on=not _is_on(found, picked), platform=""))


def _is_on(found: tuple[ToolsetState, ...], name: str) -> bool:
    return any(each.name == name and (each.enabled or each.partly) for each in found)


def _line(state: ToolsetState) -> str:
    return f"{'✓' if state.enabled else '~' if state.partly else ' '} {state.name}"


@command.command("list", help="List all toolsets, whether they are on, and their tools.")
@platform_option
@json_output()
def list_(ctx: click.Context, platform: str | None) -> Output:
    config = config_of(ctx)
    found = toolset_states(config.settings, platform or "", home=config.home)

    def lines() -> Iterator[str]:
        for each in found:
            line = f"{_line(each):<20} {', '.join(each.tools)}"
            yield line if each.enabled or each.partly else apply_style(line, "dim")

    return Output(found, lines())


@command.command(help="Switch toolsets on for new sessions.")
@click.argument("names", nargs=-1, required=True)
@platform_option
@text_output()
def enable(ctx: click.Context, names: tuple[str, ...], platform: str | None) -> str:
    return _switch(ctx, names, on=True, platform=platform or "")


@command.command(help="Switch toolsets off for new sessions.")
@click.argument("names", nargs=-1, required=True)
@platform_option
@text_output()
def disable(ctx: click.Context, names: tuple[str, ...], platform: str | None) -> str:
    return _switch(ctx, names, on=False, platform=platform or "")


def _switch(ctx: click.Context, names: tuple[str, ...], *, on: bool, platform: str) -> str:
    config = config_of(ctx)
    wanted = changes(config.settings, names, on=on, platform=platform)
    words = f"{', '.join(names)} {'on' if on else 'off'}"
    where = f" for {platform}" if platform else ""
    if not wanted:
        return f"{mark('ok')} {words}{where} already."
    write_settings(config.home, wanted)
    return f"{mark('ok')} {words}{where} in new sessions."


command.add_command(images)
