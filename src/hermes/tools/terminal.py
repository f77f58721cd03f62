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
    explain_exit_code,
    find_objection,
    pipes_password_to_sudo,
)

# The command, its output and its exit code; None leaves the output unchanged.
Change = Callable[[str, str, int], Awaitable[str | None]]


class TerminalOutput:
    """Changes the output of the commands of one session; without a `change`, it stays as it is."""

    def __init__(self, change: Change | None = None) -> None:
        self._change = change

    async def of(self, command: str, result: CommandResult) -> CommandResult:
        if self._change is None:
            return result
        text = await self._change(command, result.output, result.exit_code)
        return result if text is None else replace(result, output=text)


Action = Literal["list", "poll", "log", "wait", "kill", "write", "submit", "close"]

_COMMAND_CHARACTERS = 120
_PREVIEW_CHARACTERS = 100


def _process_effects(_paths: PathContext, arguments: JsonObject) -> Iterable[Effect]:
    """Return the effects of an action. Input to a process is judged later, when it is known what
    runs in it."""
    action, process_id = arguments["action"], arguments["session_id"]
    if action in ("close", "kill"):
        return (SignalProcess(process_id=process_id, action=action),)
    return ()


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
    processes = ctx.workspace.processes
    try:
        match action:
            case "poll":
                return _format_output(await processes.poll(session_id), ctx)
            case "log":
                start = -limit if offset is None else offset
                info = await processes.log(session_id, offset=start, limit=max(1, limit))
                first = start if start >= 0 else max(0, info.total_lines + start)
                count = len(info.output.split("\n")) if info.output else 0
                last = f"{first + count} of {info.total_lines}"
                showing = f"lines {first + 1}-{last}" if count else "no lines"
                shown = _format_output(info, ctx, note=f"{_state(info)} · {showing}")
                more = {"total_lines": info.total_lines, "showing": showing}
                return replace(shown, details={**shown.details, **more})
            case "wait":
                most = ctx.settings.terminal_timeout
                seconds = max(0, min(most, float(timeout)) if timeout is not None else most)
                info = await processes.wait(session_id, timeout=seconds, stop=ctx.stop)
                if info.status == "exited":
                    return _format_output(info, ctx)
                if ctx.stop.is_set():
                    return _format_output(info, ctx, status="interrupted", note="interrupted")
                note = f"still running after {seconds:g} s"
                return _format_output(info, ctx, status="timeout", note=note)
            case "kill":
                known = {each.id: each.status for each in await processes.list()}
                info = await processes.kill(session_id)
                if known.get(session_id) == "exited":
                    details = _details(info, "already_exited")
                    return ToolOutput.text(f"{session_id} had already ended.", details=details)
                return ToolOutput.text(f"Killed {session_id}.", details=_details(info, "killed"))
            case "write" | "submit":
                text = f"{data}\n" if action == "submit" else data
                info = await processes.write(session_id, text)
                return ToolOutput.text(f"Sent {len(text)} characters.", details=_details(info))
            case "close":
                info = await processes.close(session_id)
                return ToolOutput.text("End of input sent.", details=_details(info))
    except NotFound as error:
        hint = f" Known: {', '.join(error.near)}." if error.near else " None was started."
        raise ToolError(f"{error}{hint}") from error


def _format_list(infos: tuple[ProcessInfo, ...]) -> ToolOutput:
    lines: list[str] = []
    for info in infos:
        started = time.strftime("started %H:%M:%S", time.localtime(info.started_at))
        command = " ".join(info.command.split())
        if len(command) > _COMMAND_CHARACTERS:
            command = f"{command[:_COMMAND_CHARACTERS]}…"
        lines.append(f"{info.id} {_state(info)} · pid {info.pid} · {started} · {command}")
        lines += [
            f"  {last[:_PREVIEW_CHARACTERS]}" for last in info.output.strip().splitlines()[-1:]
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


_WORKDIR = re.compile(r"[A-Za-z0-9/\\:_\-.~ +@=,]*")
_HEAD_SHARE = 0.4


def _effect(paths: PathContext, command: str, workdir: str, background: bool) -> RunCommand:
    known = workdir and _WORKDIR.fullmatch(workdir)
    cwd = paths.resolve(workdir) if known else paths.cwd
    return RunCommand(script=command, cwd=cwd, background=background)


@tool(
    effects=lambda paths, arguments: (
        _effect(paths, arguments["command"], arguments["workdir"], arguments["background"]),
    ),
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
    watch_patterns: Annotated[
        tuple[str, ...], "Background: notify you when output contains one"
    ] = (),
) -> ToolOutput:
    """Run a bash command. Working directory, exports, functions and aliases persist between calls.
    No stdin, no pager. To look into files use read_file and search_files instead."""
    if not command.strip():
        raise ToolError("The command is empty.")
    if not _WORKDIR.fullmatch(workdir):
        raise ToolError("workdir contains characters that are not allowed. Use cd in the command.")
    if pipes_password_to_sudo(command):
        raise ToolError(
            "Do not pipe passwords into sudo. Run sudo without -S, or ask the user to do it."
        )
    effect = _effect(ctx.workspace, command, workdir, background)
    if background:
        notify = notify_on_complete
        info = await ctx.workspace.spawn(effect, notify=notify, watch=watch_patterns, pty=pty)
        details: JsonObject = {"command": command, "session_id": info.id, "pid": info.pid}
        details |= {"exit_code": 0, "cwd": info.cwd}
        details |= {"notify_on_complete": True} if notify else {}
        note = " You will be notified when it ends." if notify else ""
        return ToolOutput.text(f"Started {info.id} (pid {info.pid}).{note}", details=details)
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


def _format_result(
    effect: RunCommand, result: CommandResult, before: str, seconds: float, settings: ToolSettings
) -> ToolOutput:
    code = result.exit_code
    ended_itself = not (result.timed_out or result.interrupted)
    known = explain_exit_code(effect.script, code) if code and ended_itself else None
    notes = []
    if result.timed_out:
        notes.append(f"[timed out after {seconds:g} s]")
    elif code and not result.interrupted:
        notes.append(f"[exit {code}{f' · {known.meaning}' if known else ''}]")
    if result.cwd != before:
        notes.append(f"[cwd is now {result.cwd}]")
    output = _limit_output(result.output.rstrip(), settings)
    text = "\n".join(part for part in (output, *notes) if part) or "[no output]"
    details: JsonObject = {"command": effect.script, "exit_code": code, "cwd": result.cwd}
    if known:
        details["exit_code_meaning"] = known.meaning
    if result.timed_out:
        details["timed_out"] = True
    if result.interrupted:
        details["interrupted"] = True
    failed = code != 0 and not (known and known.harmless)
    return ToolOutput.text(text, details=details, failed=failed)


def _limit_output(text: str, settings: ToolSettings) -> str:
    """Limit the number and length of lines; the end of output matters more than its middle."""
    most = settings.max_line_length
    lines = [
        line if len(line) <= most else f"{line[:most]} [... {len(line) - most} more]"
        for line in text.split("\n")
    ]
    if len(lines) > settings.max_lines:
        head = int(settings.max_lines * _HEAD_SHARE)
        tail = settings.max_lines - head
        left_out = f"[... {len(lines) - head - tail} lines omitted ...]"
        lines = [*lines[:head], left_out, *lines[-tail:]]
    return "\n".join(lines)
