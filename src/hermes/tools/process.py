"""The process tool: inspects, feeds and ends the background processes of this session."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Literal

from hermes.codec.values import JsonObject
from hermes.core.effects import Effect, SignalProcess
from hermes.core.errors import NotFound, ToolError
from hermes.core.ports import ProcessInfo
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool

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
