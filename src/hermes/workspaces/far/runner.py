"""Runs scripts on a remote machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from hermes.config.child_environment import child_environment
from hermes.core.errors import ToolError
from hermes.workspaces import shell_state
from hermes.workspaces.bash_text import record_state, shell_quote, start_code
from hermes.workspaces.child import Sink, wait_for_first
from hermes.workspaces.far.bash import (
    HOME_FOLDER,
    end_tree_code,
    restore_variables_code,
    set_variables_code,
    supervise_code,
)
from hermes.workspaces.far.calls import LOST, RemoteCall, RemoteCalls
from hermes.workspaces.runner import CommandOutcome
from hermes.workspaces.shell_state import ShellState, SnapshotReader

GRACE_SECONDS = 0.3
PREPARE_SECONDS = 60.0


class RemoteRunner:
    """`key` names the session on the remote side; `extra_env` are variables for all commands,
    `secret_env` those that each command gets anew; `made` is a folder to create if missing."""

    def __init__(
        self,
        calls: RemoteCalls,
        *,
        key: str,
        extra_env: Mapping[str, str],
        passthrough: Sequence[str] = (),
        sudo_works: bool = True,
        made: Callable[[], str] | None = None,
        secret_env: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._calls = calls
        self._key = key
        self._extra_env = extra_env
        self._passthrough = passthrough
        self._sudo_works = sudo_works
        self._made = made
        self.secret_env = secret_env
        self._numbers = count()
        self._reader = SnapshotReader()
        self._leftovers: set[int] = set()
        self._preparing = asyncio.Lock()
        self.folder = ""
        self.start: dict[str, str] = {}

    def can_use_sudo(self, *, unconfined: bool) -> bool:
        return self._sudo_works

    async def prepare(self) -> Mapping[str, str]:
        """Read the remote environment; secrets in it are hidden from commands."""
        async with self._preparing:
            if not self.folder:
                await self._read_environment()
        return self.start

    async def _read_environment(self) -> None:
        make = f"mkdir -p -- {shell_quote(self._made())} || builtin exit 8; " if self._made else ""
        body = (
            f'{make}{HOME_FOLDER}__base="$__base/"{shell_quote(self._key)}; '
            'mkdir -p "$__base/notes"; '
            'builtin printf "%s\\0" "$__base"; builtin export -p'
        )
        answer = await self._calls.answer(body, timeout=PREPARE_SECONDS)
        if answer.code:
            raise ToolError(f"The machine cannot create a session folder: {answer.errors}")
        folder, exports = answer.out.split(b"\0", 1)
        found = shell_state.parse_exports(exports) | dict(self._extra_env)
        found.pop("OLDPWD", None)
        visible = child_environment(found, self._passthrough)
        self.start = {**visible, "PAGER": "cat", "GIT_PAGER": "cat"}
        kept = restore_variables_code(self.start).encode("utf-8", "surrogateescape")
        await self._calls.answer(f"umask 077; cat >{shell_quote(folder.decode())}/env.sh", kept)
        self.folder = folder.decode()

    async def is_folder(self, path: str) -> bool:
        return (await self._calls.answer(f"[[ -d {shell_quote(path)} ]]")).code == 0

    def start_files(self, names: Sequence[str]) -> Sequence[str]:
        home = self.start.get("HOME", "/")
        return [f"{home}/{name.removeprefix('~/')}" for name in names]

    def opening(self, cwd: str, state: ShellState, preface: str) -> str:
        around = set_variables_code(state, f"{self.folder}/env.sh")
        return around + start_code(cwd, state.changed.get("OLDPWD"), state.definitions, preface)

    async def run(
        self,
        script: str,
        cwd: str,
        state: ShellState,
        sinks: Sequence[Sink],
        *,
        timeout: float,
        stop: asyncio.Event,
        pty: bool,
        preface: str = "",
        password: bytes = b"",
        unconfined: bool = False,
    ) -> CommandOutcome:
        await self.prepare()
        secret_env, reports = self.secret_env(), bytearray()
        note = f"{self.folder}/notes/{next(self._numbers)}-{self._calls.new_mark()}"
        line = self.opening(cwd, state, preface) + record_state(script, note, secret_env)

        def out(data: bytes) -> None:
            for sink in sinks:
                sink(data)

        call = await self._calls.stream(
            lambda mark: supervise_code(line, cwd, note, mark, pty=pty, secret_env=secret_env),
            password,
            out,
            reports.extend,
        )
        try:
            how = await wait_for_first(call.final, timeout=timeout, stop=stop)
            if how != "ended":
                await self._end(call, reports)
        except BaseException:
            await self._end(call, reports)
            raise
        finally:
            call.close()
        if how != "ended":
            return CommandOutcome(how=how, code=124 if how == "timeout" else 130)
        return self._read_outcome(call, bytes(reports))

    def _read_outcome(self, call: RemoteCall, reports: bytes) -> CommandOutcome:
        final = call.final.result()
        if final is None:
            raise ToolError(f"{LOST} {call.connection_error}".strip())
        how, code, left = final.split()
        if how == b"nowhere":
            return CommandOutcome(how="nowhere", code=1)
        first, _, note = reports.partition(b"\n")
        if left == b"1":
            self._leftovers.add(int(first.split()[1]))
        return CommandOutcome(how="ended", code=int(code), after=self._reader.read(note))

    async def _end(self, call: RemoteCall, reports: bytearray) -> None:
        """End the remote process tree, once its pid is known."""
        for _ in range(50):
            if b";" in reports or call.final.done():
                break
            await asyncio.sleep(0.02)
        if call.final.done() or b";" not in reports:
            return
        pid = int(reports.split()[1])
        await self._calls.answer(end_tree_code(pid, grace_seconds=GRACE_SECONDS))

    async def close(self) -> None:
        for pid in self._leftovers:
            await self._calls.answer(end_tree_code(pid, grace_seconds=GRACE_SECONDS))
        self._leftovers.clear()
