"""`hermes tools`: the toolsets of new sessions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import click

from hermes.config.edit import write_settings
from hermes.core.errors import UsageError
from hermes.homes.toolsets import PLATFORMS, ToolsetState, changes, toolset_states
from hermes.surfaces.cli.commands.tools_images import choose_images, images
from hermes.surfaces.cli.output import Output, json_output, text_output
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.style import apply_style, mark
from hermes.tools.catalogue import declarations
from hermes.tools.toolbox import wanted_names

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
