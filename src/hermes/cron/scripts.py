"""Runs the script of a job, in a process group of its own and without the secrets of Hermes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hermes.codec.values import Value

OUTPUT_BYTES = 100_000
TAIL_CHARS = 2_000
_SHELL = (".sh", ".bash")


class ScriptResult(Value):
    """What a script wrote, and why it failed; "" if it did not."""

    output: str
    error: str = ""


async def run_script(
    script: Path, *, cwd: str, env: Mapping[str, str], timeout_seconds: float
) -> ScriptResult:
    program = "bash" if script.suffix in _SHELL else sys.executable
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            str(script),
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return ScriptResult(output="", error=f"{script.name} cannot be run: {error.strerror}")
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(timeout_seconds):
            output, errors = await asyncio.gather(
                _read(process.stdout, OUTPUT_BYTES), _read(process.stderr, OUTPUT_BYTES)
            )
            code = await process.wait()
    except TimeoutError:
        message = f"{script.name} was stopped after {timeout_seconds:.0f} seconds"
        return ScriptResult(output="", error=message)
    finally:
        # Also what the script left running.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if code:
        tail = errors.strip()[-TAIL_CHARS:] or output.strip()[-TAIL_CHARS:]
        message = f"{script.name} exited with {code}" + (f":\n{tail}" if tail else "")
        return ScriptResult(output=output, error=message)
    return ScriptResult(output=output)


async def _read(stream: asyncio.StreamReader, most: int) -> str:
    """The beginning of a stream; the rest is read and dropped, so that the script can end."""
    kept = bytearray()
    while piece := await stream.read(65_536):
        kept += piece[: most - len(kept)]
    return kept.decode("utf-8", "replace")


def wants_agent(output: str) -> bool:
    """Whether the last line of a script lets the agent run; `{"wakeAgent": false}` does not."""
    lines = output.strip().splitlines()
    try:
        last = json.loads(lines[-1]) if lines else None
    except ValueError:
        return True
    return not (isinstance(last, dict) and last.get("wakeAgent") is False)
