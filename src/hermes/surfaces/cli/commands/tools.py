"""`hermes tools`: which toolsets sessions are offered."""

from __future__ import annotations

import asyncio
import sys

import click

from hermes.config.edit import write_settings
from hermes.core.errors import UsageError
from hermes.homes.toolsets import PLATFORMS, ToolsetState, changes, states
from hermes.surfaces.cli.commands.tools_images import choose as choose_images
from hermes.surfaces.cli.commands.tools_images import command as images
from hermes.surfaces.cli.output import as_json_option, columns, print_json
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.style import mark, styled
from hermes.tools.catalogue import declarations
from hermes.tools.toolbox import wanted_names

# A row of the list that is no toolset.
IMAGES = ":images"
platform_option = click.option(
    "--platform", type=click.Choice(PLATFORMS), default=None, help="Only on this surface."
)


@click.group(
    help="Which toolsets sessions are offered. Without a command: choose.",
    invoke_without_command=True,
)
@click.option("--summary", is_flag=True, help="Say what each surface offers, and end.")
@click.pass_context
def command(ctx: click.Context, summary: bool) -> None:
    if ctx.invoked_subcommand is not None:
        if summary:
            raise UsageError("--summary stands alone; leave out the command behind it.")
        return
    if summary:
        _summarize(ctx)
    elif sys.stdin.isatty() and sys.stdout.isatty():
        choose(ctx)
    else:
        print("There is no terminal to choose in. Use instead:", file=sys.stderr)
        print("  hermes tools enable NAME\n  hermes tools disable NAME", file=sys.stderr)
        ctx.invoke(list_, platform=None, as_json=False)


def _summarize(ctx: click.Context) -> None:
    config = config_of(ctx)
    for platform in PLATFORMS:
        found = states(config.settings, platform, home=config.home)
        names = [_line(each).strip("✓ ") for each in found if each.enabled or each.partly]
        wanted = wanted_names(config.settings, platform=platform)
        count = sum(not declarations()[name].conditional for name in wanted)
        later = f" and {len(wanted) - count} once something provides them" if wanted[count:] else ""
        told = ", ".join(names) or "none"
        print(f"{styled(f'{platform:<4}', 'bold')} {count} tools{later}: {told}")


def choose(ctx: click.Context) -> None:
    """Enter switches the toolset under the cursor; each is written at once."""
    # It brings the whole library for full-screen programs.
    from hermes.surfaces.cli.picker import Picker, Row

    chosen = ""
    while True:
        config = config_of(ctx)
        found = states(config.settings, home=config.home)
        rows = [
            Row(text=_line(each), value=each.name, note=", ".join(each.tools)) for each in found
        ]
        rows.append(Row(text="  Image generation …", value=IMAGES, note="who draws pictures"))
        picked = asyncio.run(Picker("Toolsets (Enter switches)", rows, chosen=chosen).run())
        if picked is None:
            return
        if picked == IMAGES:
            choose_images(ctx)
            continue
        chosen = picked
        _switch(ctx, (picked,), on=not _is_on(found, picked), platform="")


def _is_on(found: tuple[ToolsetState, ...], name: str) -> bool:
    return any(each.name == name and (each.enabled or each.partly) for each in found)


def _line(state: ToolsetState) -> str:
    return f"{'✓' if state.enabled else '~' if state.partly else ' '} {state.name}"


@command.command("list", help="All toolsets, whether they are offered, and their tools.")
@platform_option
@as_json_option
@click.pass_context
def list_(ctx: click.Context, platform: str | None, as_json: bool) -> None:
    config = config_of(ctx)
    found = states(config.settings, platform or "", home=config.home)
    if as_json:
        print_json(columns(found))
        return
    for each in found:
        line = f"{_line(each):<20} {', '.join(each.tools)}"
        print(line if each.enabled or each.partly else styled(line, "dim"))


@command.command(help="Offer toolsets from the next session on.")
@click.argument("names", nargs=-1, required=True)
@platform_option
@click.pass_context
def enable(ctx: click.Context, names: tuple[str, ...], platform: str | None) -> None:
    _switch(ctx, names, on=True, platform=platform or "")


@command.command(help="Offer toolsets no longer, from the next session on.")
@click.argument("names", nargs=-1, required=True)
@platform_option
@click.pass_context
def disable(ctx: click.Context, names: tuple[str, ...], platform: str | None) -> None:
    _switch(ctx, names, on=False, platform=platform or "")


def _switch(ctx: click.Context, names: tuple[str, ...], *, on: bool, platform: str) -> None:
    config = config_of(ctx)
    wanted = changes(config.settings, names, on=on, platform=platform)
    words = f"{', '.join(names)} {'on' if on else 'off'}"
    where = f" for {platform}" if platform else ""
    if not wanted:
        print(f"{mark('ok')} {words}{where} already.")
        return
    write_settings(config.home, wanted)
    print(f"{mark('ok')} {words}{where}, from the next session on.")


command.add_command(images, "images")
