"""Runs a command of the user in the workspace of a session. The policy judges it; no model sees
it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.codec.values import Value, replace
from hermes.core.effects import Deny, RunCommand
from hermes.core.errors import EffectDenied
from hermes.core.gate import ANYWHERE
from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

MOST_BYTES = 50_000


class UserCommandResult(Value):
    """The output of a command and how it ended; `refused` says why it was not run."""

    output: str = ""
    ending: str = ""
    refused: str = ""


async def run_user_command(
    run: RunContext,
    session: Session,
    script: str,
    *,
    seconds: float,
    stop: asyncio.Event,
) -> UserCommandResult:
    """Run a script in the current folder of the session's shell. Secrets in the output are
    redacted."""
    effect = RunCommand(script=script, cwd=session.workspace.cwd)
    if isinstance(no := session.judge(effect), Deny):
        return UserCommandResult(refused=f"Not run: {no.reason}")
    try:
        if await session.permit(effect, stop):
            effect = replace(effect, grants=ANYWHERE)
    except EffectDenied:
        return UserCommandResult(refused="Not run.")
    done = await session.workspace.run(effect, timeout=seconds, stop=stop, max_bytes=MOST_BYTES)
    if done.timed_out:
        ending = f"stopped after {seconds:g} s"
    elif done.interrupted:
        ending = "stopped"
    else:
        ending = f"exit {done.exit_code}" if done.exit_code else ""
    return UserCommandResult(output=run.redactor.text(done.output), ending=ending)
