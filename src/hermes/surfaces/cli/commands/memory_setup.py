"""`hermes memory setup`, `status` and `off`: what models the user besides the two files."""

from __future__ import annotations

import click

from hermes.config.edit import set_from_text
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app
from hermes.surfaces.cli.place import home_of

PROVIDERS = ("local", "honcho")


@click.command(help="Choose what models the user besides the files: local needs nothing.")
@click.argument("provider", type=click.Choice(PROVIDERS))
@click.pass_context
def setup(ctx: click.Context, provider: str) -> None:
    set_from_text(home_of(ctx), "memory.provider", provider)
    print(f"New sessions use {provider}.")
    if provider == "honcho":
        print("Give it a key with `hermes config set HONCHO_API_KEY …`, or HONCHO_BASE_URL.")


@click.command(help="Only the files MEMORY.md and USER.md.")
@click.pass_context
def off(ctx: click.Context) -> None:
    set_from_text(home_of(ctx), "memory.provider", "")
    print("New sessions use the two files only.")


@click.command(help="How full memory is, what waits, and what else is used.")
@as_json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    found = with_app(ctx, lambda app: app.memory.status())
    if as_json:
        print_json({**columns(found), "parts": {k: columns(v) for k, v in found.parts.items()}})
        return
    for target, part in found.parts.items():
        state = "" if part.is_on else "  (off)"
        print(f"{target:8} {part.entries} entries, {part.usage}{state}")
    print(f"waiting  {found.pending}; not shown to models: {found.hidden}")
    print(f"approval {'all changes wait' if found.write_approval else 'what is suspicious waits'}")
    print(f"provider {found.provider or 'none'}")
