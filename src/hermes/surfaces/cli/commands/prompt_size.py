"""`hermes prompt-size`: what the fixed part of every request consists of and what it weighs."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.app.prompt_size import Size, prompt_sizes
from hermes.core.session_request import Opening
from hermes.surfaces.cli.output import as_json_option, columns, print_json, print_table, with_app


@click.command(help="About how many tokens the system text takes, layer by layer, and each tool.")
@click.option("--platform", default="cli", show_default=True, help="For this kind of surface.")
@as_json_option
@click.pass_context
def command(ctx: click.Context, platform: str, as_json: bool) -> None:
    rules = not (ctx.find_root().obj or {}).get("ignore_rules")

    async def work(app: App) -> tuple[Size, ...]:
        opening = Opening(source="cli", attended=True, platform=platform, rules=rules)
        return await prompt_sizes(app, opening)

    sizes = with_app(ctx, work)
    tokens, size = sum(each.tokens for each in sizes), sum(each.bytes for each in sizes)
    if as_json:
        print_json({"parts": columns(sizes), "tokens": tokens, "bytes": size, "estimated": True})
        return
    rows = [(each.part, each.name, str(each.bytes), str(each.tokens)) for each in sizes]
    total = ("", "total", str(size), str(tokens))
    print_table([("Part", "Name", "Bytes", "Tokens (about)"), *rows, total], (8, 20, 8))
