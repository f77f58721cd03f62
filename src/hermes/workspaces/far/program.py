"""Runs local programs that manage remote machines."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.child import Child


class ProgramResult(Value):
    code: int
    out: str
    errors: str


async def run_local_program(
    words: tuple[str, ...], env: Mapping[str, str], *, timeout: float
) -> ProgramResult:
    """Return all output of a program; ToolError when it cannot be started or takes too long."""
    out, errors = bytearray(), bytearray()
    try:
        child = Child(words[0], words, env, out.extend, errors=errors.extend)
    except OSError as error:
        raise ToolError(f"{words[0]} cannot be started: {error.strerror}.") from error
    try:
        how = await child.wait(timeout=timeout)
    finally:
        if not child.ended.done():
            await child.end(grace_seconds=0)
        child.close()
    if how != "ended":
        raise ToolError(f"{' '.join(words[:3])} did not finish within {timeout:g} seconds.")
    return ProgramResult(
        code=child.ended.result(),
        out=out.decode("utf-8", "replace").strip(),
        errors=errors.decode("utf-8", "replace").strip(),
    )
