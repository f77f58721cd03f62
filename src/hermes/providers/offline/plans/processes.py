"""Plans that run commands in the foreground and background."""

from __future__ import annotations

import re
from collections.abc import Generator

from hermes.codec.values import JsonObject
from hermes.core.messages import ToolResult
from hermes.providers.offline.answers import explain_failure
from hermes.providers.offline.phrases import PROGRAMS
from hermes.providers.offline.plan import (
    CallRequest,
    CallRequests,
    Results,
    StepOutcome,
    Steps,
    StepTask,
    call,
    checked_call,
    inline_code,
    run_command,
    terminal,
)
from hermes.providers.offline.tool_output import (
    build_command,
    has_succeeded,
    objects,
    output,
    output_lines,
    was_refused,
)

OUTPUT_LINES = 60
MAX_STOPPED = 8

_TEST_COMMANDS = (
    ("pyproject.toml", "pytest"),
    ("pytest.ini", "pytest"),
    ("setup.py", "pytest"),
    ("cargo.toml", "cargo test"),
    ("go.mod", "go test ./..."),
    ("package.json", "npm test"),
    ("makefile", "make test"),
    ("tests/", "pytest"),
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9+_-]*")
_INTERPRETERS = {"py": "python3", "sh": "bash", "js": "node", "rb": "ruby", "pl": "perl"}


def run(task: StepTask) -> Steps:
    script = _command(task)
    missing = yield from _check_program(task, script)
    if missing is not None:
        return missing
    place: JsonObject = {"workdir": task.slot("path")} if task.has("path") else {}
    result = yield from call("terminal", command=script, **place)
    return _report_run(task, script, result)


def run_script(task: StepTask) -> Steps:
    interpreter = _INTERPRETERS.get(task.path.rpartition(".")[2], "")
    local = task.path if "/" in task.path else f"./{task.path}"
    script = (
        build_command(interpreter, paths=(task.path,))
        if interpreter
        else build_command(paths=(local,))
    )
    result = yield from terminal(script)
    return _report_run(task, script, result)


def run_tests(task: StepTask) -> Steps:
    """Detects the kind of project and runs its tests."""
    listing = yield from run_command("ls -1p")
    names = {line.casefold() for line in output_lines(listing)}
    script = next((script for name, script in _TEST_COMMANDS if name in names), "")
    if not script:
        return task.fail("tests.unknown")
    result = yield from terminal(script)
    return _report_run(task, script, result)


def run_background(task: StepTask) -> Steps:
    script = _command(task)
    missing = yield from _check_program(task, script)
    if missing is not None:
        return missing
    result = yield from call("terminal", command=script, background=True, notify_on_complete=True)
    if not has_succeeded(result):
        return explain_failure(task, result, script)
    process = result.details.get("session_id")
    return task.answer(
        "background.started",
        command=inline_code(script),
        process=inline_code(process if isinstance(process, str) else "?"),
    )


def list_background(task: StepTask) -> Steps:
    result = yield from checked_call("process", action="list")
    processes = objects(result.details, "processes")
    if processes:
        shown = [_describe_process(task, process) for process in processes]
        return StepOutcome(text=f"{task.say('background.list')}\n\n{task.say.bullets(shown)}")
    lines = output_lines(result)
    if "processes" in result.details or not lines:
        return task.answer("background.none")
    return StepOutcome(text=f"{task.say('background.list')}\n\n{task.say.block(lines)}")


def poll_background(task: StepTask) -> Steps:
    return (yield from _query_process(task, "log" if task.has("log") else "poll"))


def wait_background(task: StepTask) -> Steps:
    return (yield from _query_process(task, "wait"))


def send_input(task: StepTask) -> Steps:
    process = _process(task)
    if not process:
        return task.answer("background.none")
    yield from checked_call("process", action="submit", session_id=process, data=task.slot("text"))
    return task.answer(
        "background.sent", process=inline_code(process), text=inline_code(task.slot("text"))
    )


def stop_background(task: StepTask) -> Steps:
    if task.has("it") and not task.focus.process:
        return task.answer("never_mind")
    if not task.has("all") and _process(task):
        return (yield from _stop(task, (_process(task),)))
    result = yield from checked_call("process", action="list")
    running = [
        str(process["session_id"])
        for process in objects(result.details, "processes")
        if process.get("session_id") and process.get("status", "running") == "running"
    ]
    if not running:
        return task.answer("background.none")
    if len(running) > 1 and not task.has("all"):
        head = task.say("background.which")
        return StepOutcome(
            text=f"{head}\n\n{task.say.bullets([inline_code(name) for name in running])}"
        )
    return (yield from _stop(task, tuple(running[:MAX_STOPPED])))


def _command(task: StepTask) -> str:
    """The command without the full stop or question mark of the sentence."""
    script = task.slot("command").strip()
    if len(script) > 1 and script[-1] in ".?!" and script[-2].isalnum():
        return script[:-1]
    return script


def _check_program(
    task: StepTask, script: str
) -> Generator[CallRequests, Results, StepOutcome | None]:
    """A single word may be any program or none; if none, nothing runs."""
    if script in PROGRAMS or not _NAME.fullmatch(script):
        return None
    result = yield from terminal(f"which {script}")
    if was_refused(result):
        return explain_failure(task, result, script)
    return (
        None
        if has_succeeded(result)
        else task.fail("machine.not_installed", program=inline_code(script))
    )


def _process(task: StepTask) -> str:
    return task.slot("process") or task.focus.process


def _report_run(task: StepTask, script: str, result: ToolResult) -> StepOutcome:
    if not has_succeeded(result):
        return explain_failure(task, result, script)
    lines = output(result).splitlines()
    if not any(line.strip() for line in lines):
        return task.answer("ran.silent", command=inline_code(script))
    block = task.say.block(lines, limit=OUTPUT_LINES, tail=True)
    return StepOutcome(text=f"{task.say('ran', command=inline_code(script))}\n\n{block}")


def _query_process(task: StepTask, action: str) -> Steps:
    process = _process(task)
    if not process:
        return task.answer("background.none")
    result = yield from checked_call("process", action=action, session_id=process)
    status = result.details.get("status")
    head = task.say(
        "background.status",
        process=inline_code(process),
        status=status if isinstance(status, str) else "?",
    )
    lines = output_lines(result)
    return StepOutcome(text=f"{head}\n\n{task.say.block(lines, tail=True)}" if lines else head)


def _stop(
    task: StepTask, processes: tuple[str, ...]
) -> Generator[CallRequests, Results, StepOutcome]:
    results = yield tuple(
        CallRequest(name="process", arguments={"action": "kill", "session_id": process})
        for process in processes
    )
    for result in results:
        if not has_succeeded(result):
            return explain_failure(task, result)
    names = ", ".join(inline_code(process) for process in processes)
    return task.answer("background.stopped", processes=names)


def _describe_process(task: StepTask, process: JsonObject) -> str:
    return task.say(
        "background.item",
        process=inline_code(str(process.get("session_id", "?"))),
        command=inline_code(str(process.get("command", ""))),
        status=process.get("status", "?"),
    )
