"""`hermes memory setup`, `status` and `off`: the user-model provider beside the two files."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hermes.app.build import App
from hermes.config.edit import set_from_text
from hermes.surfaces.cli.output import Output, json_output, text_output, with_app
from hermes.surfaces.cli.place import home_of

PROVIDERS = ("local", "honcho")


@click.command(
    "setup", help="Choose a user-model provider beside the files; `local` needs no setup."
)
@click.argument("provider", type=click.Choice(PROVIDERS))
@text_output()
def memory_setup(ctx: click.Context, provider: str) -> Iterator[str]:
    set_from_text(home_of(ctx), "memory.provider", provider)
    yield f"New sessions use {provider}."
    if provider == "honcho":
        yield "Set its key with `hermes config set HONCHO_API_KEY …`, or set HONCHO_BASE_URL."


@click.command("off", help="Use only the files MEMORY.md and USER.md.")
@text_output()
def memory_off(ctx: click.Context) -> str:
    set_from_text(home_of(ctx), "memory.provider", "")
    return "New sessions use the two files only."


@click.command(
    "status", help="Show how full memory is, what is pending and which provider is used."
)
@json_output(with_app)
async def memory_status(app: App) -> Output:
    found = await app.memory.status()
    lines = [
        f"{target:8} {part.entries} entries, {part.usage}{'' if part.is_on else '  (off)'}"
        for target, part in found.parts.items()
    ]
    waiting = "all changes" if found.write_approval else "suspicious changes"
    lines += [
        f"pending  {found.pending}; not shown to models: {found.hidden}",
        f"approval {waiting} need approval",
        f"provider {found.provider or 'none'}",
    ]
    return Output(found, lines)
