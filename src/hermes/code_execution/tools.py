"""The tool execute_code: a Python script that calls tools, judged and run like a command."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from hermes.code_execution.client_source import client_source, offered_parameters
from hermes.code_execution.rpc import RpcCalls, serve_files, serve_socket
from hermes.codec.values import JsonObject, Value
from hermes.core.effects import Effect, RunCommand
from hermes.core.errors import ToolError
from hermes.core.ports import CommandResult
from hermes.core.prompt import ToolSpec
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool

# What scripts may call if the session has it.
CALLABLE = (
    "patch",
    "read_file",
    "search_files",
    "terminal",
    "web_extract",
    "web_search",
    "write_file",
)
MODULE = "hermes_tools.py"
END_OF_CODE = "HERMES_CODE"
# The most output that is kept in a file.
MOST_KEPT_CHARS = 5_000_000


class CodeLimits(Value):
    """The limits of a script."""

    timeout: float = 300
    max_tool_calls: int = 50
    max_output_bytes: int = 50_000


class CodeExecution:
    """What scripts of one session may use: the tools and the limits."""

    def __init__(self, specs: Iterable[ToolSpec] = (), limits: CodeLimits | None = None) -> None:
        self.specs = tuple(specs)
        self.limits = limits or CodeLimits()


def _script(code: str) -> str:
    """The command that runs the code. The policy judges it as it would judge the same command in
    the terminal."""
    end = END_OF_CODE
    while end in code:
        end += "_"
    return f"python3 - <<'{end}'\n{code.rstrip()}\n{end}"


def _effects(paths: PathContext, arguments: JsonObject) -> Iterable[Effect]:
    return (RunCommand(script=_script(arguments["code"]), cwd=paths.cwd, offline=True),)


@tool(
    effects=_effects,
    interactive=True,
    toolset="code_execution",
    kind="execute",
    display=ToolDisplay(icon="🐍", verb="python", detail="{code}", title="execute_code"),
)
async def execute_code(
    ctx: ToolContext,
    code: str,
    timeout: Annotated[int | None, "Seconds"] = None,
) -> ToolOutput:
    """Run a Python script. `from hermes_tools import read_file, terminal, …` calls your tools; only
    what it prints returns. For loops over many calls."""
    if not code.strip():
        raise ToolError("The code is empty.")
    if "\0" in code:
        raise ToolError("The code contains a NUL byte.")
    offer = ctx.service(CodeExecution)
    seconds = min(float(timeout or offer.limits.timeout), offer.limits.timeout)
    if seconds <= 0:
        raise ToolError("timeout must be more than 0 seconds.")
    parameters = {spec.name: tuple(offered_parameters(spec)) for spec in offer.specs}
    calls = RpcCalls(ctx, parameters, offer.limits.max_tool_calls)
    begun = time.monotonic()
    run = ScriptRun(ctx, offer, calls)
    result = await run.execute(code, seconds)
    return await run.report(result, time.monotonic() - begun)


class ScriptRun:
    """One script while it runs."""

    def __init__(self, ctx: ToolContext, offer: CodeExecution, calls: RpcCalls) -> None:
        self._ctx = ctx
        self._offer = offer
        self._calls = calls
        self._id = secrets.token_hex(6)
        self._shown: list[str] = []
        self._shown_chars = 0

    async def execute(self, code: str, seconds: float) -> CommandResult:
        workspace = self._ctx.workspace
        source = client_source(self._offer.specs).encode()
        folder = Path(await workspace.scratch(MODULE, source)).parent
        async with contextlib.AsyncExitStack() as stack:
            socket, requests = "", f"/tmp/hermes-rpc-{self._id}"
            if not workspace.is_remote:
                socket = await stack.enter_async_context(serve_socket(self._calls, folder))
            polling = serve_files(self._calls, self._ctx, requests, self._id)
            stack.callback(asyncio.ensure_future(polling).cancel)
            env = {
                "PYTHONPATH": str(folder),
                "PYTHONDONTWRITEBYTECODE": "1",
                "TOOLS_RPC_TOKEN": self._calls.token,
                "TOOLS_RPC_ID": self._id,
                "TOOLS_RPC_FOLDER": requests,
                "TOOLS_RPC_SOCKET": socket,
            }
            return await self._run(code, seconds, env)

    async def _run(self, code: str, seconds: float, env: Mapping[str, str]) -> CommandResult:
        (effect,) = _effects(self._ctx.workspace, {"code": code})
        assert isinstance(effect, RunCommand)
        return await self._ctx.workspace.run(
            effect,
            timeout=seconds,
            stop=self._ctx.stop,
            max_bytes=self._offer.limits.max_output_bytes,
            env=env,
            on_output=self._show,
        )

    def _show(self, text: str) -> None:
        self._ctx.progress(text)
        if self._shown_chars < MOST_KEPT_CHARS:
            self._shown.append(text)
            self._shown_chars += len(text)

    async def report(self, result: CommandResult, seconds: float) -> ToolOutput:
        status = "success"
        if result.interrupted:
            status = "interrupted"
        elif result.timed_out:
            status = "timeout"
        elif result.exit_code:
            status = "error"
        details: JsonObject = {
            "status": status,
            "exit_code": result.exit_code,
            "tool_calls_made": self._calls.made,
            "duration_seconds": round(seconds, 3),
        }
        notes = [status] if status not in ("success", "error") else []
        notes += [f"exit {result.exit_code}"] if status == "error" else []
        notes += [f"{self._calls.made} tool calls"] if self._calls.made else []
        if result.total_bytes > self._offer.limits.max_output_bytes:
            whole = "".join(self._shown)[:MOST_KEPT_CHARS].encode()
            path = await self._ctx.workspace.scratch(f"exec-{self._id}.txt", whole)
            details |= {"truncated": True, "full_output_path": path}
            notes.append(f"the whole output is in {path}")
        last = f"[{' · '.join(notes)}]" if notes else ""
        text = "\n".join(part for part in (result.output.rstrip(), last) if part)
        return ToolOutput.text(text or "[no output]", details=details, failed=status != "success")
