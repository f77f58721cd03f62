"""`hermes acp`: serve an editor on standard input and output."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any, cast

import click

from hermes.app.start import start
from hermes.core.errors import HermesError, UsageError

MISSING = (
    "Editors need the official protocol library: install it with `pip install hermes-agent[acp]`."
)


@click.command(help="Serve an editor by the Agent Client Protocol, on stdin and stdout.")
@click.option("--check", is_flag=True, help="Say whether it would work, and leave.")
@click.pass_context
def command(ctx: click.Context, check: bool) -> None:
    if find_spec("acp") is None:
        raise UsageError(MISSING)
    options = dict(ctx.obj)
    ctx.exit(asyncio.run(_check(options) if check else _serve(options)))


async def _serve(options: dict[str, Any]) -> int:
    from acp import Agent, run_agent

    from hermes.surfaces.acp.server import EditorAgent

    async with start(options) as app:
        await run_agent(cast(Agent, EditorAgent(app)), use_unstable_protocol=True)
    return 0


async def _check(options: dict[str, Any]) -> int:
    async with start(options) as app:
        for finding in app.config.findings:
            if finding.level == "error":
                click.echo(f"warning: {finding.text}; {finding.fix}.", err=True)
        try:
            choice = await app.models.choose()
        except HermesError as error:
            click.echo(f"Not ready: {error}")
            return 1
    click.echo(f"Ready: {choice.model} ({choice.provider}) answers.")
    return 0
