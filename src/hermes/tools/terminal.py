"""The terminal tool: one shell command, in the foreground or the background."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from hermes.codec.values import JsonObject
from hermes.core.effects import Effect, RunCommand
from hermes.core.errors import ToolError
from hermes.core.ports import CommandResult
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, ToolSettings, tool
from hermes.tools.terminal_output import TerminalOutput
from hermes.workspaces.exit_codes import ExitCodeMeaning, explain_exit_code
from hermes.workspaces.foreground import find_objection, pipes_password_to_sudo

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
    result = await ctx.kept(TerminalOutput).of(command, result)
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
