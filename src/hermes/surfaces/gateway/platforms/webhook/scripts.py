"""Runs the programs of webhooks: the script of a route, and `gh` for comments."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject
from hermes.config.child_environment import child_environment
from hermes.config.environment import process_environment
from hermes.core.errors import ConfigError, PlatformUnreachable, PostRejected

log = logging.getLogger(__name__)

SCRIPT_SECONDS = 30.0
GH_SECONDS = 60.0
SILENT = "[SILENT]"
# `gh` needs its login.
_GH_VARIABLES = ("GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "GH_CONFIG_DIR")


async def run_program(
    command: Sequence[str], stdin: bytes, seconds: float, passthrough: Sequence[str] = ()
) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors. TimeoutError when it takes too long, OSError when it cannot
    start."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=child_environment(process_environment(), passthrough),
    )
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate(stdin)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    return process.returncode or 0, output, errors


def script_path(folder: Path, name: str) -> Path:
    """The script of a route. ConfigError when it is outside of the folder for scripts."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise ConfigError(f"The script {name!r} is not in {folder}; put it there.")
    return path


async def transform(path: Path, payload: object) -> object | None:
    """The payload as the script of a route changes it; None when the script drops it."""
    command = ["python3", str(path)] if path.suffix == ".py" else [str(path)]
    try:
        code, output, errors = await run_program(command, encode(payload), SCRIPT_SECONDS)
    except (OSError, TimeoutError) as error:
        log.warning("the script of a webhook failed", extra={"script": path.name, "why": error})
        return None
    text = output.decode("utf-8", "replace").strip()
    if code or not text or text == SILENT:
        tail = errors.decode("utf-8", "replace")[-500:]
        log.info("a script dropped a delivery", extra={"script": path.name, "stderr": tail})
        return None
    try:
        return decode(dict[str, object], text)
    except DecodeError:
        merged: JsonObject = dict(payload) if isinstance(payload, dict) else {"payload": payload}
        return merged | {"script_output": text}


async def comment_on_github(repository: str, number: str, text: str, key: str) -> str:
    """Comment on an issue or pull request, once for each key: a hidden mark in the comment says
    that it is there."""
    mark = f"<!-- hermes {key} -->"
    listing = f"repos/{repository}/issues/{number}/comments"
    found = await _gh("api", listing, "--paginate", "--jq", ".[].body")
    if mark in found:
        return mark
    await _gh("api", listing, "-F", "body=@-", "--silent", stdin=f"{text}\n\n{mark}")
    return mark


async def _gh(*arguments: str, stdin: str = "") -> str:
    try:
        code, output, errors = await run_program(
            ("gh", *arguments), stdin.encode(), GH_SECONDS, _GH_VARIABLES
        )
    except FileNotFoundError:
        raise PostRejected("`gh` is not installed; it writes comments on GitHub.") from None
    except (OSError, TimeoutError) as error:
        raise PlatformUnreachable(f"`gh` failed: {error}") from error
    if code:
        reason = errors.decode("utf-8", "replace").strip()[-300:]
        raise PlatformUnreachable(f"`gh` failed: {reason}")
    return output.decode("utf-8", "replace")
