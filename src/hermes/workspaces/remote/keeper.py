"""Background processes of a remote machine. They run and are logged there. Their output is copied
to a local folder; the copy resumes after a lost connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hermes.codec.values import replace
from hermes.core.concurrency import wait_for_first
from hermes.core.errors import ToolError
from hermes.core.world import Clock
from hermes.workspaces.background import ProcessFolder, ProcessRecord
from hermes.workspaces.keeper import GRACE_SECONDS, KEEPER
from hermes.workspaces.remote.calls import RemoteCalls, report_code
from hermes.workspaces.remote.process_tree import (
    ALIVE,
    IDENTITY,
    end_command_code,
    end_tree_code,
)
from hermes.workspaces.remote.runner import RemoteRunner, pass_secrets_code, terminal_code
from hermes.workspaces.runner import CommandRequest
from hermes.workspaces.shell_state import MARKER, ShellState, shell_quote

log = logging.getLogger(__name__)

RECONNECT_SECONDS = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
INPUT_SECONDS = 4
# The remote log is truncated at this size, once everything has been copied.
REMOTE_LOG_BYTES = 16_000_000


class RemoteKeeper:
    def __init__(self, runner: RemoteRunner, calls: RemoteCalls, clock: Clock) -> None:
        self._runner = runner
        self._calls = calls
        self._clock = clock

    async def _remote_folder(self, record_id: str) -> str:
        """Return its remote folder, quoted."""
        await self._runner.prepare()
        return shell_quote(f"{self._runner.folder}/{record_id}")

    async def start(
        self, command: CommandRequest, state: ShellState, folder: ProcessFolder
    ) -> tuple[int, str]:
        record_id = folder.path.name
        remote_folder = await self._remote_folder(record_id)
        opening = self._runner.opening(command.cwd, state)
        line = shell_quote(f"{opening}builtin eval {shell_quote(command.script)}")
        inner = 'bash --norc --noprofile -c \'. "$0/script.sh"\' "$__d"'
        kept = inner
        if command.pty:
            # The terminal line is shell code; the keeper takes program arguments.
            shown = terminal_code(inner.replace('"$__d"', "$__d")).removesuffix(" </dev/null")
            kept = f"bash --norc --noprofile -c {shell_quote(shown)}"
        body = f"""{IDENTITY}__d={remote_folder}; export __d
mkdir -m 700 -p "$__d" && mkfifo -m 600 "$__d/stdin" && : >"$__d/output.log" || builtin exit 1
builtin printf %s {line} >"$__d/script.sh"
export {MARKER}={record_id}; exec 7<>"$__d/stdin"; {pass_secrets_code(self._runner.secret_env())}
$(type -P setsid) bash --norc --noprofile -c {shell_quote(KEEPER)} bash "$__d" {kept} \
<"$__d/stdin" 8>"$__d/stdin" >>"$__d/output.log" 2>&1 7<&- &
__identity $!; builtin echo "$! $__who" | tee "$__d/pid" """
        answer = await self._calls.answer(body)
        if answer.code or not answer.out.strip():
            raise ToolError(f"The process cannot be started: {answer.errors}.")
        return _parse_pid(answer.out)

    async def find(self, record: ProcessRecord, folder: ProcessFolder) -> ProcessRecord:
        if record.pid or record.ended_at is not None:
            return record
        answer = await self._calls.answer(f"cat {await self._remote_folder(record.id)}/pid")
        if answer.code:
            return record
        pid, identity = _parse_pid(answer.out)
        return replace(record, pid=pid, identity=identity)

    def follow(
        self, record: ProcessRecord, folder: ProcessFolder, ended: Callable[[int | None], None]
    ) -> Callable[[], None]:
        task = asyncio.ensure_future(self._follow(record, folder, ended))

        def forget() -> None:
            task.cancel()

        return forget

    async def _follow(
        self, record: ProcessRecord, folder: ProcessFolder, ended: Callable[[int | None], None]
    ) -> None:
        size = folder.log.stat().st_size if folder.log.exists() else 0
        position = record.trimmed_bytes + size
        attempt = 0
        while True:
            try:
                before = position
                code, position = await self._copy(record, folder, position)
                if code is not None:
                    break
                attempt = 0 if position > before else attempt
            except ToolError as error:
                log.info("remote process not followed now", extra={"why": str(error)})
            await self._clock.sleep(RECONNECT_SECONDS[min(attempt, len(RECONNECT_SECONDS) - 1)])
            attempt += 1
        known = None if code == "?" else int(code)
        if known is not None:
            folder.exit.write_text(f"{known}\n")
        ended(known)

    async def _copy(
        self, record: ProcessRecord, folder: ProcessFolder, position: int
    ) -> tuple[str | None, int]:
        """Copy until the process or the connection ends; return the exit code and the position."""
        remote_folder = await self._remote_folder(record.id)
        copied = 0

        def add(data: bytes) -> None:
            nonlocal copied
            with folder.log.open("ab") as file:
                file.write(data)
            copied += len(data)

        call = await self._calls.stream(
            lambda mark: _follow_code(remote_folder, record.pid, position, mark),
            b"",
            add,
            lambda _data: None,
        )
        try:
            await wait_for_first(call.final, timeout=None)
        finally:
            call.close()
        final = call.final.result()
        return (None if final is None else final.decode() or "?"), position + copied

    async def write(self, record: ProcessRecord, folder: ProcessFolder, raw: bytes) -> None:
        answer = await self._calls.answer(
            f"timeout {INPUT_SECONDS} cat >{await self._remote_folder(record.id)}/stdin", raw
        )
        if answer.code == 124:
            raise TimeoutError
        if answer.code:
            raise ToolError(f"{record.id} no longer reads its input.")

    async def end_input(self, record: ProcessRecord, folder: ProcessFolder) -> None:
        remote_folder = await self._remote_folder(record.id)
        await self._calls.answer(
            f"for __n in {{1..100}}; do [[ -s {remote_folder}/ready ]] && break; sleep 0.02; done; "
            f"builtin kill -USR1 {record.pid}"
        )

    async def kill(self, record: ProcessRecord, folder: ProcessFolder) -> bool:
        answer = await self._calls.answer(
            end_tree_code(record.pid, grace_seconds=GRACE_SECONDS, identity=record.identity)
        )
        if answer.code:
            return False
        # What left the process group and the session.
        await self._calls.answer(end_command_code(record.id))
        return True

    async def remove(self, record: ProcessRecord, folder: ProcessFolder) -> None:
        await self._calls.answer(f"rm -rf {await self._remote_folder(record.id)}")


def _parse_pid(line: bytes) -> tuple[int, str]:
    """Return the pid and the identity of a process."""
    pid, _, identity = line.decode().strip().partition(" ")
    return int(pid), identity


def _follow_code(remote_folder: str, pid: int, position: int, mark: str) -> str:
    """Return bash that prints new log output until its process has ended, and then the exit
    code."""
    gone = report_code(mark, "?")
    return f"""cd {remote_folder} 2>/dev/null || {{ {gone}; builtin exit; }}
__cut=0; [[ -s cut ]] && read -r __cut <cut
exec 4<output.log; __from=$(({position} - __cut + 1)); tail -c +$((__from > 0 ? __from : 1)) <&4
{ALIVE}__n=0
while [[ ! -s exit ]] && __alive {pid}; do
  cat <&4
  if ((++__n % 50 == 0)); then
    __size=$(wc -c <output.log)
    if ((__size > {REMOTE_LOG_BYTES})); then
      cat <&4; __cut=$((__cut + $(wc -c <output.log))); builtin echo $__cut >cut
      : >output.log; exec 4<output.log
    fi
  fi
  sleep 0.1
done
cat <&4
__code='?'; [[ -s exit ]] && read -r __code <exit
{report_code(mark, "$__code")}"""
