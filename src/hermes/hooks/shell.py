"""Runs allowed programs as hooks: JSON on stdin, answer on stdout, no shell."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import re
import shlex
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path

from hermes.codec.atomic_files import PRIVATE, replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError

FILE = "shell-hooks-allowlist.json"


class AllowedHook(Value):
    """A hook program that the user allowed."""

    event: str
    command: str
    files: dict[str, str] = {}  # the files that the command names, with their SHA-256
    at: float = 0.0


class _List(Value):
    version: int = 1
    allowed: tuple[AllowedHook, ...] = ()


class HookAllowlist:
    """The allowlist file. It is reread every time, because other processes may change it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> tuple[AllowedHook, ...]:
        """Return the allowed hooks. Raise ConfigError when the file is invalid; nothing is allowed
        then."""
        try:
            return decode(_List, self._path.read_bytes()).allowed
        except FileNotFoundError:
            return ()
        except (DecodeError, OSError) as error:
            raise ConfigError(
                f"{self._path} is not valid ({error}); fix or remove it and allow hooks again."
            ) from error

    def find(self, event: str, command: str) -> AllowedHook | None:
        """Return the entry, even if its files have changed."""
        found = (each for each in self.all() if (each.event, each.command) == (event, command))
        return next(found, None)

    def allow(self, event: str, command: str, *, at: float) -> None:
        known = [each for each in self.all() if (each.event, each.command) != (event, command)]
        new = AllowedHook(event=event, command=command, files=hash_files(command), at=at)
        self._write((*known, new))

    def revoke(self, command: str) -> int:
        """Return how many hooks were revoked."""
        known = self.all()
        kept = tuple(each for each in known if each.command != command)
        if len(kept) < len(known):
            self._write(kept)
        return len(known) - len(kept)

    def _write(self, allowed: tuple[AllowedHook, ...]) -> None:
        replace_file(self._path, encode(_List(allowed=allowed)) + b"\n", mode=PRIVATE)


def split_command(command: str) -> list[str]:
    """Split a command without a shell. Raise ConfigError for an open quote."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"The command {command!r} is not valid ({error}); correct it.") from error
    if not words:
        raise ConfigError("A hook has an empty command; name a program.")
    return [str(Path(word).expanduser()) if word.startswith("~") else word for word in words]


def hash_files(command: str) -> dict[str, str]:
    """Return hashes of the files that the command names. Programs named without a path belong to
    the system."""
    found = {}
    for word in split_command(command):
        path = Path(word)
        if "/" in word and path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


log = logging.getLogger(__name__)

MOST_SECONDS = 300.0
MOST_BYTES = 1_000_000
BLOCKING_CODE = 2
END_SECONDS = 2.0
OWN_KEYS = ("tool_name", "args", "session_id", "cwd")


class ShellHook(Value):
    """A program that the settings register for an event."""

    event: str
    command: str
    matcher: str = ""  # empty matches every tool
    timeout: float = 60.0
    fail_closed: bool = False  # a call is blocked unless the program allows it

    @property
    def seconds(self) -> float:
        return min(self.timeout, MOST_SECONDS)

    def matches(self, tool_name: str) -> bool:
        """Return whether the hook runs for this tool. Raise ConfigError for an invalid pattern."""
        if not self.matcher:
            return True
        try:
            return re.fullmatch(self.matcher, tool_name) is not None
        except re.error as error:
            raise ConfigError(
                f"The matcher {self.matcher!r} is not a valid pattern ({error})."
            ) from error


class HookRun(Value):
    """Result of a run. `answer` is the return value for the hook, or None."""

    code: int | None
    output: str
    errors: str
    seconds: float
    answer: JsonObject | str | None = None


class ShellCallback:
    """A program as a callback. `env` is its environment. Its files are compared with the allowed
    hashes before every run."""

    def __init__(self, hook: ShellHook, consents: HookAllowlist, *, env: Mapping[str, str]) -> None:
        self._hook = hook
        self._consents = consents
        self._env = env

    async def __call__(self, **payload: object) -> object:
        hook = self._hook
        tool = payload.get("tool_name")
        if isinstance(tool, str) and not hook.matches(tool):
            return None
        if not await asyncio.to_thread(is_allowed, hook, self._consents):
            raise ConfigError(
                f"The hook {hook.command} is not allowed, or its files changed after you allowed "
                "it; start a chat to review it, or use --accept-hooks."
            )
        ran = await run_hook(hook, payload, env=self._env)
        if ran.code is None:
            raise TimeoutError(f"no exit within {hook.seconds:g} s")
        if ran.answer is None and hook.fail_closed and ran.code != 0:
            raise OSError(f"exit code {ran.code}: {ran.errors[:200]}")
        return ran.answer


def is_allowed(hook: ShellHook, consents: HookAllowlist) -> bool:
    """Return whether the program is allowed for this hook and its files are unchanged."""
    known = consents.find(hook.event, hook.command)
    return known is not None and known.files == hash_files(hook.command)


async def run_hook(
    hook: ShellHook, payload: Mapping[str, object], *, env: Mapping[str, str]
) -> HookRun:
    """Run the program until it exits or times out, and kill its process group. Raise OSError when
    it cannot start."""
    loop, cwd = asyncio.get_running_loop(), str(payload.get("cwd", ""))
    began = loop.time()
    process = await _start(hook, env, cwd)
    try:
        async with asyncio.timeout(hook.seconds):
            output, errors, _ = await asyncio.gather(
                _read(process.stdout),
                _read(process.stderr),
                _write_stdin(process, encode_payload(hook, payload)),
            )
            await process.wait()
    except TimeoutError:
        return HookRun(code=None, output="", errors="", seconds=loop.time() - began)
    finally:
        await _end(process)
    return HookRun(
        code=process.returncode,
        output=output,
        errors=errors,
        seconds=loop.time() - began,
        answer=parse_answer(hook.event, process.returncode or 0, output, errors),
    )


def encode_payload(hook: ShellHook, payload: Mapping[str, object]) -> bytes:
    """Encode the JSON on stdin."""
    message = {
        "hook_event_name": hook.event,
        "tool_name": payload.get("tool_name", ""),
        "tool_input": payload.get("args", {}),
        "session_id": payload.get("session_id", ""),
        "cwd": payload.get("cwd", ""),
        "extra": {name: value for name, value in payload.items() if name not in OWN_KEYS},
    }
    return encode(message) + b"\n"


def parse_answer(event: str, code: int, output: str, errors: str) -> JsonObject | str | None:
    """Translate exit code and output to a callback's return value."""
    if code == BLOCKING_CODE:
        return {"action": "block", "message": errors.strip() or output.strip()}
    try:
        reply = decode(dict, output) if code == 0 and output.strip() else {}
    except DecodeError:
        return None
    match reply:
        case {"decision": "block"}:
            return {"action": "block", "message": reply.get("reason", "")}
        case {"action": "block" | "approve" | "modify"}:
            return reply
        case {"context": str()} if event == "pre_llm_call":
            return reply
        case {"text": str() as text} if event.startswith("transform_"):
            return text
        case _:
            return None


async def _start(hook: ShellHook, env: Mapping[str, str], cwd: str) -> Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *split_command(hook.command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(env),
            cwd=cwd if os.path.isdir(cwd) else None,  # noqa: ASYNC240, PTH112
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Otherwise only the program would end, not its children.
        with contextlib.suppress(OSError):
            await _end(await starting)
        raise


async def _read(stream: asyncio.StreamReader | None) -> str:
    """Read everything but keep MOST_BYTES, so that the program never blocks on a full pipe."""
    assert stream is not None
    kept = b""
    while chunk := await stream.read(65_536):
        kept += chunk[: MOST_BYTES - len(kept)]
    return kept.decode("utf-8", "replace")


async def _write_stdin(process: Process, data: bytes) -> None:
    """Write stdin; the program may ignore it."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(data)
        await process.stdin.drain()
    with contextlib.suppress(OSError):
        process.stdin.close()


async def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    # A process outside the group may hold the pipes, which `wait` would wait for.
    waiting = asyncio.ensure_future(process.wait())
    await asyncio.wait((waiting,), timeout=END_SECONDS)
    waiting.cancel()
