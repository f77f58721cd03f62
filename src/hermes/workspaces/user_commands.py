"""Commands that a person runs in the place of a session: no model sees them, the policy does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.codec.values import Value, replace
from hermes.core.effects import Deny, RunCommand
from hermes.core.errors import EffectDenied
from hermes.core.gate import ANYWHERE
from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

MOST_BYTES = 50_000


class Ran(Value):
    """What a command said and how it ended; `refused` says why it was not run."""

    output: str = ""
    ending: str = ""
    refused: str = ""


async def run_by_hand(
    run: RunContext,
    session: Session,
    script: str,
    *,
    seconds: float,
    stop: asyncio.Event,
    on_output: Callable[[str], None] | None = None,
) -> Ran:
    """In the folder where the session's shell is. What it shows is free of secrets."""
    effect = RunCommand(script=script, cwd=session.workspace.cwd)
    if isinstance(no := session.judge(effect), Deny):
        return Ran(refused=f"Not run: {no.reason}")
    try:
        if await session.permit(effect, stop):
            effect = replace(effect, grants=ANYWHERE)
    except EffectDenied:
        return Ran(refused="Not run.")
    done = await session.workspace.run(
        effect, timeout=seconds, stop=stop, max_bytes=MOST_BYTES, on_output=on_output
    )
    if done.timed_out:
        ending = f"stopped after {seconds:g} s"
    elif done.interrupted:
        ending = "stopped"
    else:
        ending = f"exit {done.exit_code}" if done.exit_code else ""
    return Ran(output=run.redactor.text(done.output), ending=ending)
