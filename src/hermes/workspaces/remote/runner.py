"""Runs scripts on a remote machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from hermes.config.child_environment import child_environment
from hermes.core.concurrency import wait_for_first
from hermes.core.errors import ToolError
from hermes.workspaces import shell_state
from hermes.workspaces.child import PASSWORD_FD, Sink
from hermes.workspaces.remote.calls import LOST, RemoteCall, RemoteCalls, report_code
from hermes.workspaces.remote.process_tree import (
    end_command_code,
    end_tree_code,
    record_command_code,
)
from hermes.workspaces.runner import CommandOutcome, CommandRequest, interrupted_outcome
from hermes.workspaces.shell_state import (
    MARKER,
    ShellState,
    SnapshotReader,
    is_name,
    record_state,
    shell_quote,
    start_code,
)
from hermes.workspaces.survivors import CommandRecord, CommandRecords, RemoteCommand

_LONGEST_ARGUMENT = 100_000
# Secrets travel under unique names, so that they are in the environment of a command and never in
# the arguments of a process or in a file.
_PREFIX = "__lent_"
_EXPORT_SECRETS = (
    f'for __n in "${{!{_PREFIX}@}}"; do export "${{__n#{_PREFIX}}}=${{!__n}}"; unset "$__n"; done; '
)

# A folder of this session that nobody else can have prepared.
HOME_FOLDER = (
    '__base="${HOME:-/}/.cache/hermes/far"; builtin umask 077; '
    'mkdir -p "$__base" 2>/dev/null || { __base="/tmp/hermes-far-$UID"; mkdir -p "$__base"; '
    "[[ -O $__base ]] || builtin exit 9; }; "
)


def restore_variables_code(start: Mapping[str, str]) -> str:
    """Return bash that makes the environment exactly this one."""
    kept = "".join(f"export {name}={shell_quote(value)}\n" for name, value in start.items())
    spared = f'[[ $__n == {_PREFIX}* || $__n == {MARKER} ]] || unset "$__n"'
    return f"for __n in $(compgen -e); do {spared}; done 2>/dev/null\n{kept}"


def pass_secrets_code(values: Mapping[str, str]) -> str:
    """Return bash that passes these variables to whatever it starts; `variables` reads them
    there."""
    return "".join(
        f"export {_PREFIX}{name}={shell_quote(value)}; "
        for name, value in values.items()
        if is_name(name)
    )


def set_variables_code(state: ShellState, file: str) -> str:
    """Return bash that replaces the remote environment, by way of `file`, with the session's
    variables and secrets."""
    unset = "".join(f"unset {name}; " for name in state.removed)
    changed = (f"export {name}={shell_quote(value)}; " for name, value in state.changed.items())
    return f"builtin . {shell_quote(file)}; {unset}{''.join(changed)}{_EXPORT_SECRETS}"


def supervise_code(
    command: CommandRequest,
    line: str,
    note: str,
    mark: str,
    *,
    token: str,
    file: str,
    secret_env: Mapping[str, str],
) -> str:
    """Run the line of a command in its own process group. Report on the side channel: its pid at
    once, at the end the content of the file `note`, and last its exit code, marked when leftovers
    still run. Until it ends, `file` has its pid, and its processes have `token` in their
    environment. Job messages of bash itself are dropped."""
    word, prepare = shell_quote(line), ""
    if len(line) > _LONGEST_ARGUMENT:
        file = shell_quote(f"{note}.sh")
        word, prepare = (
            shell_quote(f"builtin . {file}"),
            f"builtin printf %s {shell_quote(line)} >{file}; ",
        )
    inner = f"bash --norc --noprofile -c {word}"
    inner = terminal_code(inner) if command.pty else f"{inner} </dev/null"
    nowhere = report_code(mark, "nowhere 1 0", out=4, side=3)
    return f"""exec 3>&2 4>&1 2>&1
builtin cd -- {shell_quote(command.cwd)} 2>/dev/null || {{ {nowhere}; builtin exit; }}
{prepare}{pass_secrets_code(secret_env)}export {MARKER}={token}; set -m
exec >/dev/null 2>&1
{inner} {PASSWORD_FD}<&0 >&4 2>&1 3>&- 4>&- &
__pid=$!
{record_command_code("$__pid", file)}
builtin printf 'pid %s ;\\n' $__pid >&3
exec </dev/null
builtin wait $__pid; __code=$?
if builtin kill -0 -- -$__pid; then __left=1; else rm -f {shell_quote(file)}; fi
cat {shell_quote(note)} >&3; rm -f {shell_quote(note)} {shell_quote(note)}.sh
{report_code(mark, "ended $__code ${__left:-0}", out=4, side=3)}"""


def terminal_code(inner: str) -> str:
    """Return a line that runs on a pseudo-terminal with end-of-file at once, or when its input
    ends."""
    shell = 'SHELL="$(type -P bash)"'
    settings = "stty cols 120 rows 40 2>/dev/null; "
    line = f"[[ ${{TERM:-dumb}} == dumb ]] && export TERM=xterm-256color; {settings}exec {inner}"
    return f"{shell} script -qefc {shell_quote(line)} /dev/null </dev/null"


GRACE_SECONDS = 0.3
PREPARE_SECONDS = 60.0


class RemoteRunner:
    """Runs commands on another machine."""

    def __init__(
        self,
        calls: RemoteCalls,
        *,
        key: str,
        extra_env: Mapping[str, str],
        passthrough: Sequence[str] = (),
        sudo_works: bool = True,
        new_folder: Callable[[], str] | None = None,
        secret_env: Callable[[], Mapping[str, str]] = dict,
        records: CommandRecords,
        direct: Callable[[], tuple[tuple[str, ...], dict[str, str]]],
    ) -> None:
        self._calls = calls
        self._records = records
        # The program and environment by which another process reaches the machine, should this
        # one die.
        self._direct = direct
        self._reports: list[str] = []
        # Names the session on the remote side.
        self._key = key
        # Variables for all commands.
        self._extra_env = extra_env
        self._passthrough = passthrough
        self._sudo_works = sudo_works
        # Returns a folder to create if it is missing.
        self._new_folder = new_folder
        # Variables that each command gets anew.
        self.secret_env = secret_env
        self._numbers = count()
        self._reader = SnapshotReader()
        self._leftovers: list[CommandRecord] = []
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
                await self._end_survivors()
        return self.start

    async def _end_survivors(self) -> None:
        """End the commands of this session whose Hermes was killed."""
        for record in self._records.find_abandoned_remote():
            self._records.set_ended(record, await self._end_command(record))
        self._reports = self._records.take_reports()

    def take_reports(self) -> Sequence[str]:
        reports, self._reports = self._reports, []
        return reports

    async def _end_command(self, record: CommandRecord) -> int:
        code = end_command_code(record.token, self._pid_file(record.token))
        return int((await self._calls.answer(code)).out or 0)

    def _describe(self, token: str) -> RemoteCommand:
        argv, env = self._direct()
        line = end_command_code(token, self._pid_file(token))
        return RemoteCommand(line=line, argv=argv, env=env)

    def _pid_file(self, token: str) -> str:
        return f"{self.folder}/notes/{token}.pid"

    async def _read_environment(self) -> None:
        make = ""
        if self._new_folder:
            make = f"mkdir -p -- {shell_quote(self._new_folder())} || builtin exit 8; "
        body = (
            f'{make}{HOME_FOLDER}__base="$__base/"{shell_quote(self._key)}; '
            'mkdir -p "$__base/notes"; '
            'builtin printf "%s\\0" "$__base"; builtin export -p'
        )
        answer = await self._calls.answer(body, timeout=PREPARE_SECONDS)
        if answer.code:
            raise ToolError(f"The remote machine cannot create a session folder: {answer.errors}")
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

    def opening(self, cwd: str, state: ShellState, preface: str = "") -> str:
        return set_variables_code(state, f"{self.folder}/env.sh") + start_code(cwd, state, preface)

    async def run(
        self,
        command: CommandRequest,
        state: ShellState,
        sinks: Sequence[Sink],
        *,
        stop: asyncio.Event,
        password: bytes = b"",
    ) -> CommandOutcome:
        await self.prepare()
        secret_env, reports = {**self.secret_env(), **command.env}, bytearray()
        note = f"{self.folder}/notes/{next(self._numbers)}-{self._calls.new_mark()}"
        line = self.opening(command.cwd, state, command.preface)
        line += record_state(command.script, note, secret_env)

        def out(data: bytes) -> None:
            for sink in sinks:
                sink(data)

        record = self._records.add(command.script, self._describe)

        def supervise(mark: str) -> str:
            file = self._pid_file(record.token)
            return supervise_code(
                command, line, note, mark, token=record.token, file=file, secret_env=secret_env
            )

        try:
            call = await self._calls.stream(supervise, password, out, reports.extend)
        except BaseException:
            self._records.remove(record)
            raise
        try:
            how = await wait_for_first(call.final, timeout=command.timeout, stop=stop)
            if how != "ended":
                await self._end(call, reports)
        except BaseException:
            await self._end(call, reports)
            raise
        finally:
            call.close()
            self._finish(record, call)
        if how != "ended":
            return interrupted_outcome(how)
        return self._read_outcome(call, bytes(reports))

    def _finish(self, record: CommandRecord, call: RemoteCall) -> None:
        """Forget an ended command, unless something of it may still run."""
        final = call.final.result() if call.final.done() else None
        if final is None or final.split()[2] == b"1":
            self._leftovers.append(record)
        else:
            self._records.remove(record)

    def _read_outcome(self, call: RemoteCall, reports: bytes) -> CommandOutcome:
        final = call.final.result()
        if final is None:
            raise ToolError(f"{LOST} {call.connection_error}".strip())
        how, code, _left = final.split()
        if how == b"nowhere":
            return CommandOutcome(how="nowhere", code=1)
        _pid, _, note = reports.partition(b"\n")
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
        """End what commands left running, also those whose connection was lost."""
        for record in self._leftovers:
            await self._end_command(record)
            self._records.remove(record)
        self._leftovers.clear()
