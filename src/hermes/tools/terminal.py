"""The tools terminal and process: commands in the foreground and the background."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Literal

from hermes.codec.values import JsonObject, replace
from hermes.core.effects import Effect, RunCommand, SignalProcess
from hermes.core.errors import NotFound, ToolError
from hermes.core.ports import CommandResult, ProcessInfo
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, ToolSettings, tool
from hermes.workspaces.script_advice import (
    ExitCodeMeaning,
    explain_exit_code,
    find_objection,
    pipes_password_to_sudo,
)

# The command, its output and its exit code; None leaves the output unchanged.
Change = Callable[[str, str, int], Awaitable[str | None]]


class TerminalOutput:
    """For one session; without a `change`, output stays as it is."""

    def __init__(self, change: Change | None = None) -> None:
        self._change = change

    async def of(self, command: str, result: CommandResult) -> CommandResult:
        if self._change is None:
            return result
        text = await self._change(command, result.output, result.exit_code)
        return result if text is None else replace(result, output=text)


Action = Literal["list", "poll", "log", "wait", "kill", "write", "submit", "close"]

_SIGNALS: dict[str, Literal["close", "kill"]] = {"close": "close", "kill": "kill"}
_COMMAND_CHARACTERS = 120
_PREVIEW_CHARACTERS = 100


def _process_effects(_place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
    """Input to a process is judged when it is known what runs in it."""
    action = _SIGNALS.get(arguments["action"])
    return (SignalProcess(process_id=arguments["session_id"], action=action),) if action else ()


@tool(
    effects=_process_effects,
    toolset="terminal",
    kind="execute",
    display=ToolDisplay(icon="🧩", verb="proc", detail="{action} {session_id}"),
)
async def process(
    ctx: ToolContext,
    action: Annotated[Action, "poll: new output; submit: data and Enter; close: end input"],
    session_id: Annotated[str, "proc_…; not for list"] = "",
    data: Annotated[str, "For write and submit"] = "",
    timeout: Annotated[int | None, "Seconds to wait"] = None,
    offset: Annotated[int | None, "log: first line; default: the last ones"] = None,
    limit: Annotated[int, "log: lines"] = 200,
) -> ToolOutput:
    """Manage background processes started by terminal."""
    if action == "list":
        return _format_list(await ctx.workspace.processes.list())
    try:
        return await _run_action(ctx, action, session_id, data, timeout, offset, limit)
    except NotFound as error:
        known = f" Known: {', '.join(error.near)}." if error.near else " None was started."
        raise ToolError(f"{error}{known}") from error


async def _run_action(
    ctx: ToolContext,
    action: Action,
    session_id: str,
    data: str,
    timeout: int | None,
    offset: int | None,
    limit: int,
) -> ToolOutput:
    processes = ctx.workspace.processes
    match action:
        case "poll" | "list":
            return _format_output(await processes.poll(session_id), ctx)
        case "log":
            start = -limit if offset is None else offset
            info = await processes.log(session_id, offset=start, limit=max(1, limit))
            return _format_log(info, start, ctx)
        case "wait":
            return await _wait(ctx, session_id, timeout)
        case "kill":
            return await _kill(ctx, session_id)
        case "write" | "submit":
            text = f"{data}\n" if action == "submit" else data
            info = await processes.write(session_id, text)
            return ToolOutput.text(f"Sent {len(text)} characters.", details=_details(info))
        case "close":
            info = await processes.close(session_id)
            return ToolOutput.text("End of input sent.", details=_details(info))


async def _wait(ctx: ToolContext, session_id: str, timeout: int | None) -> ToolOutput:
    most = ctx.settings.terminal_timeout
    seconds = min(most, float(timeout)) if timeout is not None else most
    info = await ctx.workspace.processes.wait(session_id, timeout=max(0, seconds), stop=ctx.stop)
    if info.status == "exited":
        return _format_output(info, ctx)
    status = "interrupted" if ctx.stop.is_set() else "timeout"
    note = "interrupted" if ctx.stop.is_set() else f"still running after {seconds:g} s"
    return _format_output(info, ctx, status=status, note=note)


async def _kill(ctx: ToolContext, session_id: str) -> ToolOutput:
    known = {info.id: info.status for info in await ctx.workspace.processes.list()}
    info = await ctx.workspace.processes.kill(session_id)
    had_ended = known.get(session_id) == "exited"
    status = "already_exited" if had_ended else "killed"
    text = f"{session_id} had already ended." if had_ended else f"Killed {session_id}."
    return ToolOutput.text(text, details=_details(info, status))


def _format_list(infos: tuple[ProcessInfo, ...]) -> ToolOutput:
    lines = [
        f"{info.id} {_state(info)} · pid {info.pid} · {_clock(info)} · {_short(info.command)}"
        + (f"\n  {preview}" if (preview := _preview(info.output)) else "")
        for info in infos
    ]
    details: JsonObject = {"processes": [_details(info) for info in infos]}
    return ToolOutput.text("\n".join(lines) or "No background processes.", details=details)


def _format_output(
    info: ProcessInfo, ctx: ToolContext, *, status: str = "", note: str = ""
) -> ToolOutput:
    most = ctx.settings.max_bytes
    output = info.output.rstrip()
    if len(output) > most:
        output = f"[... {len(output) - most} characters omitted ...]\n{output[-most:]}"
    last = f"[{note or _state(info)}]"
    text = f"{output}\n{last}" if output else last
    return ToolOutput.text(text, details=_details(info, status))


def _format_log(info: ProcessInfo, start: int, ctx: ToolContext) -> ToolOutput:
    first = start if start >= 0 else max(0, info.total_lines + start)
    count = len(info.output.split("\n")) if info.output else 0
    showing = f"lines {first + 1}-{first + count} of {info.total_lines}" if count else "no lines"
    shown = _format_output(info, ctx, note=f"{_state(info)} · {showing}")
    details = {**shown.details, "total_lines": info.total_lines, "showing": showing}
    return ToolOutput(parts=shown.parts, details=details)


def _details(info: ProcessInfo, status: str = "") -> JsonObject:
    details: JsonObject = {
        "session_id": info.id,
        "command": info.command,
        "cwd": info.cwd,
        "pid": info.pid,
        "started_at": info.started_at,
        "status": status or info.status,
    }
    if info.exit_code is not None:
        details["exit_code"] = info.exit_code
    if info.notify:
        details["notify_on_complete"] = True
    return details


def _state(info: ProcessInfo) -> str:
    if info.status == "running":
        return "running"
    return "exited" if info.exit_code is None else f"exited {info.exit_code}"


def _clock(info: ProcessInfo) -> str:
    return time.strftime("started %H:%M:%S", time.localtime(info.started_at))


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= _COMMAND_CHARACTERS else f"{line[:_COMMAND_CHARACTERS]}…"


def _preview(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1][:_PREVIEW_CHARACTERS] if lines else ""


_WORKDIR = re.compile(r"[A-Za-z0-9/\\:_\-.~ +@=,]*")
_HEAD_SHARE = 0.4


def _terminal_effects(place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
    return (_effect(place, arguments["command"], arguments["workdir"], arguments["background"]),)


def _effect(place: PathContext, command: str, workdir: str, background: bool) -> RunCommand:
    known = workdir and _WORKDIR.fullmatch(workdir)
    cwd = place.resolve(workdir) if known else place.cwd
    return RunCommand(script=command, cwd=cwd, background=background)


@tool(
    effects=_terminal_effects,
    toolset="terminal",
    kind="execute",
    display=ToolDisplay(icon="💻", verb="$", detail="{command}", title="terminal: {command}"),
)
async def terminal(
    ctx: ToolContext,
    command: str,
    background: Annotated[bool, "For servers and long jobs; see process"] = False,
    timeout: Annotated[int | None, "Seconds; default 180, at most 600"] = None,
    workdir: Annotated[str, "Directory for this call"] = "",
    pty: Annotated[bool, "For programs that need a terminal"] = False,
    notify_on_complete: Annotated[bool, "Background: notify you at the end"] = False,
    watch_patterns: Annotated[tuple[str, ...], "Background: notify you when output has one"] = (),
) -> ToolOutput:
    """Run a bash command. Working directory, exports, functions and aliases persist between calls.
    No stdin, no pager. To look into files use read_file and search_files instead."""
    _refuse(command, workdir)
    effect = _effect(ctx.workspace, command, workdir, background)
    if background:
        return await _start(ctx, effect, notify_on_complete, watch_patterns, pty)
    if advice := find_objection(command):
        raise ToolError(advice)
    seconds = _seconds(timeout, ctx.settings)
    before = ctx.workspace.cwd
    result = await ctx.workspace.run(
        effect,
        timeout=seconds,
        stop=ctx.stop,
        max_bytes=ctx.settings.max_bytes,
        pty=pty,
        on_output=ctx.progress,
    )
    result = await ctx.service(TerminalOutput).of(command, result)
    return _format_result(effect, result, before, seconds, ctx.settings)


def _refuse(command: str, workdir: str) -> None:
    if not command.strip():
        raise ToolError("The command is empty.")
    if not _WORKDIR.fullmatch(workdir):
        raise ToolError("workdir contains characters that are not allowed. Use cd in the command.")
    if pipes_password_to_sudo(command):
        raise ToolError(
            "Do not pipe passwords into sudo. Run sudo without -S, or ask the user to do it."
        )


def _seconds(timeout: int | None, settings: ToolSettings) -> float:
    seconds = settings.terminal_timeout if timeout is None else float(timeout)
    if seconds > settings.terminal_max_timeout:
        raise ToolError(
            f"timeout is at most {settings.terminal_max_timeout:g} seconds. "
            "Use background=true for longer commands."
        )
    if seconds <= 0:
        raise ToolError("timeout must be more than 0 seconds.")
    return seconds


async def _start(
    ctx: ToolContext, effect: RunCommand, notify: bool, watch: tuple[str, ...], pty: bool
) -> ToolOutput:
    info = await ctx.workspace.spawn(effect, notify=notify, watch=watch, pty=pty)
    told = " You will be notified when it ends." if notify else ""
    details: JsonObject = {
        "command": effect.script,
        "session_id": info.id,
        "pid": info.pid,
        "exit_code": 0,
        "cwd": info.cwd,
    }
    if notify:
        details["notify_on_complete"] = True
    return ToolOutput.text(f"Started {info.id} (pid {info.pid}).{told}", details=details)


def _format_result(
    effect: RunCommand, result: CommandResult, before: str, seconds: float, settings: ToolSettings
) -> ToolOutput:
    code = result.exit_code
    ended_itself = not (result.timed_out or result.interrupted)
    known = explain_exit_code(effect.script, code) if code and ended_itself else None
    notes = _notes(result, known, before, seconds)
    output = _limit_output(result.output.rstrip(), settings)
    text = "\n".join(part for part in (output, *notes) if part) or "[no output]"
    details: JsonObject = {"command": effect.script, "exit_code": code, "cwd": result.cwd}
    if known:
        details["exit_code_meaning"] = known.words
    if result.timed_out:
        details["timed_out"] = True
    if result.interrupted:
        details["interrupted"] = True
    failed = code != 0 and not (known and known.harmless)
    return ToolOutput.text(text, details=details, failed=failed)


def _notes(
    result: CommandResult, known: ExitCodeMeaning | None, before: str, seconds: float
) -> Iterable[str]:
    if result.timed_out:
        yield f"[timed out after {seconds:g} s]"
    elif result.exit_code and not result.interrupted:
        yield f"[exit {result.exit_code}{f' · {known.words}' if known else ''}]"
    if result.cwd != before:
        yield f"[cwd is now {result.cwd}]"


def _limit_output(text: str, settings: ToolSettings) -> str:
    """Limit the number and length of lines; the end of output matters more than its middle."""
    lines = [_cut(line, settings.max_line_length) for line in text.split("\n")]
    if len(lines) > settings.max_lines:
        head = int(settings.max_lines * _HEAD_SHARE)
        tail = settings.max_lines - head
        left_out = f"[... {len(lines) - head - tail} lines omitted ...]"
        lines = [*lines[:head], left_out, *lines[-tail:]]
    return "\n".join(lines)


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[:most]} [... {len(line) - most} more]"
