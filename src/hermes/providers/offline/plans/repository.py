"""Plans about the workspace's git repository."""

from __future__ import annotations

import shlex

from hermes.core.messages import ToolResult
from hermes.providers.offline.answers import explain_failure
from hermes.providers.offline.plan import (
    StepOutcome,
    Steps,
    StepTask,
    inline_code,
    run_command,
    terminal,
)
from hermes.providers.offline.tool_output import (
    build_command,
    has_succeeded,
    output,
    output_lines,
    quote_path,
)

DEFAULT_COMMITS = 10
MAX_COMMITS = 100


def git_status(task: StepTask) -> Steps:
    script = "git status --short --branch"
    result = yield from run_command(script)
    lines = output_lines(result)
    branch = next((line[3:] for line in lines if line.startswith("## ")), "?")
    changes = [line for line in lines if not line.startswith("## ")]
    if not changes:
        return task.answer("git.clean", branch=inline_code(branch))
    head = task.say.count("git.changes", len(changes), branch=inline_code(branch))
    return StepOutcome(text=f"{head}\n\n{task.say.block(changes)}")


def git_log(task: StepTask) -> Steps:
    count = max(1, min(task.number("n", DEFAULT_COMMITS), MAX_COMMITS))
    script = f"git log --oneline -n {count}"
    result = yield from terminal(script)
    return _commits(task, script, result, "git.log")


def file_history(task: StepTask) -> Steps:
    # Includes author and date, for "who changed this file?".
    script = f"git log -n {DEFAULT_COMMITS} --format='%h %an, %ar: %s' -- {quote_path(task.path)}"
    result = yield from terminal(script)
    if has_succeeded(result) and not output_lines(result):
        return task.answer("git.no_history", path=inline_code(task.path))
    return _commits(task, script, result, "git.history")


def git_diff(task: StepTask) -> Steps:
    script = build_command("git", "diff", *(["--stat"] if task.has("short") else []))
    if task.has("path"):
        script += f" -- {quote_path(task.path)}"
    result = yield from run_command(script)
    lines = output(result).splitlines()
    if not any(line.strip() for line in lines):
        return task.answer("git.no_diff")
    return StepOutcome(
        text=f"{task.say('git.diff')}\n\n{task.say.block(lines, name='diff', limit=100)}"
    )


def git_branch(task: StepTask) -> Steps:
    script = "git branch"
    result = yield from run_command(script)
    lines = output_lines(result)
    current = next((line[2:].strip() for line in lines if line.startswith("*")), "?")
    others = [inline_code(line.strip()) for line in lines if not line.startswith("*")]
    head = task.say("git.branch", branch=inline_code(current))
    if not others:
        return StepOutcome(text=head)
    return StepOutcome(text=f"{head} {task.say('git.branches')}\n\n{task.say.bullets(others)}")


def last_commit(task: StepTask) -> Steps:
    script = "git log -n 1 --stat"
    result = yield from run_command(script)
    return StepOutcome(
        text=f"{task.say('git.last')}\n\n{task.say.block(output(result).splitlines())}"
    )


def git_remote(task: StepTask) -> Steps:
    script = "git remote -v"
    result = yield from run_command(script)
    lines = output_lines(result)
    if not lines:
        return task.answer("git.no_remote")
    return StepOutcome(text=f"{task.say('git.remote')}\n\n{task.say.block(lines)}")


def git_commit(task: StepTask) -> Steps:
    yield from run_command("git add -A")
    script = f"git commit -m {shlex.quote(task.slot('text'))}"
    result = yield from run_command(script)
    return StepOutcome(
        text=f"{task.say('git.committed')}\n\n{task.say.block(output(result).splitlines())}"
    )


def _commits(task: StepTask, script: str, result: ToolResult, key: str) -> StepOutcome:
    if not has_succeeded(result):
        return explain_failure(task, result, script)
    head = task.say(key, path=inline_code(task.path), count=len(output_lines(result)))
    return StepOutcome(text=f"{head}\n\n{task.say.block(output(result).splitlines())}")
