"""Explains a failed tool call: what happened and what to do next."""

from __future__ import annotations

import re

from hermes.codec.values import JsonObject
from hermes.core.messages import ToolResult
from hermes.providers.offline.plan import StepOutcome, StepTask
from hermes.providers.offline.tool_answers import (
    exit_code,
    output_lines,
    strings,
)
from hermes.providers.offline.voice import Phrasebook, inline_code

MAX_LINES = 15
MAX_NEAR = 5

_BY_CODE = {124: "hint.timeout", 126: "hint.permission", 127: "hint.no_program"}
_BY_TEXT = (
    (re.compile(r"not a git repository"), "hint.no_git"),
    (re.compile(r"command not found|no such command"), "hint.no_program"),
    (re.compile(r"permission denied|operation not permitted"), "hint.permission"),
    (re.compile(r"\bis a directory|omitting directory"), "hint.is_folder"),
    (re.compile(r"no such file|not found|does not exist|cannot access"), "hint.no_file"),
    (re.compile(r"timed out|timeout"), "hint.timeout"),
    (re.compile(r"interrupted"), "hint.interrupted"),
)


def explain_failure(task: StepTask, result: ToolResult, script: str = "") -> StepOutcome:
    return StepOutcome(text=explain(task.say, result, script), failed=True)


def explain(say: Phrasebook, result: ToolResult, script: str = "") -> str:
    """A heading, the tool's output, and the next step if known."""
    if "missing_tool" in result.details:
        return result.text
    return "\n\n".join(
        part
        for part in (_heading(say, result, script), _tool_output(say, result), _next(say, result))
        if part
    )


def call_subject(name: str, arguments: JsonObject) -> str:
    """What a call was about, for a heading."""
    for key in ("command", "path", "pattern", "session_id", "action"):
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return value
    return name


def _heading(say: Phrasebook, result: ToolResult, script: str) -> str:
    number = exit_code(result)
    if result.denied:
        return say("failed.refused", what=inline_code(script or result.name))
    if script and number is not None:
        return say("failed.command", command=inline_code(script), code=number)
    if "similar_files" in result.details:
        return say("failed.no_file", path=inline_code(str(result.details.get("path", ""))))
    return say("failed.tool", what=inline_code(script or result.name))


def _tool_output(say: Phrasebook, result: ToolResult) -> str:
    """The tool's output; empty if the heading says it all."""
    lines = output_lines(result)
    if not lines or "similar_files" in result.details:
        return ""
    if len(lines) == 1 and result.name != "terminal":
        return lines[0]
    return say.block(lines, limit=MAX_LINES, tail=True)


def _next(say: Phrasebook, result: ToolResult) -> str:
    near = strings(result.details, "similar_files") or strings(result.details, "near")
    if near:
        folder = str(result.details.get("path", "")).rpartition("/")[0]
        names = [inline_code(name.removeprefix(f"{folder}/")) for name in near[:MAX_NEAR]]
        return say("hint.similar", names=", ".join(names))
    number = exit_code(result)
    if number in _BY_CODE:
        return say(_BY_CODE[number])
    if "similar_files" in result.details:
        return say("hint.no_file")
    text = result.text.casefold()
    if result.denied:
        return say("hint.refused")
    for pattern, key in _BY_TEXT:
        if pattern.search(text):
            return say(key)
    return ""
