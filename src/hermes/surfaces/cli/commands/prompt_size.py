"""`hermes prompt-size`: the parts of the fixed prompt and their sizes."""

from __future__ import annotations

import click

from hermes.app.prompt_size import prompt_sizes
from hermes.core.session_request import SessionRequest
from hermes.surfaces.cli.output import Output, json_output, table, with_app


@click.command(help="Estimate the tokens of the system prompt, layer by layer, and of each tool.")
@click.option("--platform", default="cli", show_default=True, help="For this surface.")
@json_output()
def prompt_size_command(ctx: click.Context, platform: str) -> Output:
    rules = not (ctx.find_root().obj or {}).get("ignore_rules")
    opening = SessionRequest(source="cli", attended=True, platform=platform, rules=rules)
    sizes = with_app(ctx, lambda app: prompt_sizes(app, opening))
    tokens, size = sum(each.tokens for each in sizes), sum(each.bytes for each in sizes)
    rows = [(each.part, each.name, str(each.bytes), str(each.tokens)) for each in sizes]
    total = ("", "total", str(size), str(tokens))
    return Output(
        {"parts": sizes, "tokens": tokens, "bytes": size, "estimated": True},
        table([("Part", "Name", "Bytes", "Tokens (about)"), *rows, total], (8, 20, 8)),
    )
