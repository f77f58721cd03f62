"""`hermes acp`: serves an editor over stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import stat
from importlib.util import find_spec
from typing import Any, cast

import click

from hermes.app.start import start
from hermes.config.extras import need_extra
from hermes.core.errors import HermesError, UsageError
from hermes.version import __version__

MISSING = need_extra("Editors", "acp")
# Images arrive as one line.
BUFFER_BYTES = 50 * 1024 * 1024
NO_EDITOR = (
    "No editor is connected to stdin and stdout; configure `hermes acp` as an agent in the "
    "editor, or test it with `hermes acp --check`."
)


@click.command(help="Serve an editor by the Agent Client Protocol, on stdin and stdout.")
@click.option("--check", is_flag=True, help="Check the configuration and exit.")
@click.option("--setup", is_flag=True, help="Choose a provider and a model, then exit.")
@click.version_option(__version__, prog_name="hermes-acp")
@click.pass_context
def command(ctx: click.Context, check: bool, setup: bool) -> None:
    if setup:
        root = ctx.find_root()
        assert isinstance(root.command, click.Group)
        ctx.exit(root.command.main(["setup"], standalone_mode=False) or 0)
    if find_spec("acp") is None:
        raise UsageError(MISSING)
    if not (check or all(map(_is_open_line, (0, 1)))):
        raise UsageError(NO_EDITOR)
    options = dict(ctx.obj)
    ctx.exit(asyncio.run(_check(options) if check else _serve(options)))


def _is_open_line(descriptor: int) -> bool:
    """Whether the descriptor is a pipe, a socket or a terminal."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


async def _serve(options: dict[str, Any]) -> int:
    from acp import Agent, run_agent
    from acp.stdio import stdio_streams

    from hermes.surfaces.acp.server import EditorAgent
    from hermes.surfaces.acp.transport import EditorTransport

    async with start(options) as app:
        agent = EditorAgent(app)
        try:
            transport = EditorTransport(*await stdio_streams(limit=BUFFER_BYTES))
            await run_agent(cast(Agent, agent), transport, use_unstable_protocol=True)
        finally:
            await agent.close()
    return 0


async def _check(options: dict[str, Any]) -> int:
    async with start(options) as app:
        for finding in app.context.config.diagnostics:
            if finding.level == "error":
                click.echo(f"warning: {finding.text}; {finding.fix}.", err=True)
        try:
            choice = await app.models.choose()
        except HermesError as error:
            click.echo(f"Not ready: {error}")
            return 1
    click.echo(f"Ready: {choice.model} ({choice.provider}) answers.")
    return 0
