"""Plans about the workspace's git repository."""

from __future__ import annotations

import shlex

from hermes.core.messages import ToolResult
from hermes.providers.offline.commands import command, quoted
from hermes.providers.offline.failures import failure
from hermes.providers.offline.plan import Outcome, Steps, Task, run_command, terminal
from hermes.providers.offline.tool_answers import output, output_lines, succeeded
from hermes.providers.offline.voice import code

DEFAULT_COMMITS = 10
MAX_COMMITS = 100


def git_status(task: Task) -> Steps:
    script = "git status --short --branch"
    result = yield from run_command(script)
    lines = output_lines(result)
    branch = next((line[3:] for line in lines if line.startswith("## ")), "?")
    changes = [line for line in lines if not line.startswith("## ")]
    if not changes:
        return task.done("git.clean", branch=code(branch))
    head = task.say.count("git.changes", len(changes), branch=code(branch))
    return Outcome(text=f"{head}\n\n{task.say.block(changes)}")


def git_log(task: Task) -> Steps:
    count = max(1, min(task.number("n", DEFAULT_COMMITS), MAX_COMMITS))
    script = f"git log --oneline -n {count}"
    result = yield from terminal(script)
    return _commits(task, script, result, "git.log")


def file_history(task: Task) -> Steps:
    # Includes author and date, for "who changed this file?".
    script = f"git log -n {DEFAULT_COMMITS} --format='%h %an, %ar: %s' -- {quoted(task.path)}"
    result = yield from terminal(script)
    if succeeded(result) and not output_lines(result):
        return task.done("git.no_history", path=code(task.path))
    return _commits(task, script, result, "git.history")


def git_diff(task: Task) -> Steps:
    script = command("git", "diff", *(["--stat"] if task.has("short") else []))
    if task.has("path"):
        script += f" -- {quoted(task.path)}"
    result = yield from run_command(script)
    lines = output(result).splitlines()
    if not any(line.strip() for line in lines):
        return task.done("git.no_diff")
    return Outcome(
        text=f"{task.say('git.diff')}\n\n{task.say.block(lines, name='diff', limit=100)}"
    )


def git_branch(task: Task) -> Steps:
    script = "git branch"
    result = yield from run_command(script)
    lines = output_lines(result)
    current = next((line[2:].strip() for line in lines if line.startswith("*")), "?")
    others = [code(line.strip()) for line in lines if not line.startswith("*")]
    head = task.say("git.branch", branch=code(current))
    if not others:
        return Outcome(text=head)
    return Outcome(text=f"{head} {task.say('git.branches')}\n\n{task.say.bullets(others)}")


def last_commit(task: Task) -> Steps:
    script = "git log -n 1 --stat"
    result = yield from run_command(script)
    return Outcome(text=f"{task.say('git.last')}\n\n{task.say.block(output(result).splitlines())}")


def git_remote(task: Task) -> Steps:
    script = "git remote -v"
    result = yield from run_command(script)
    lines = output_lines(result)
    if not lines:
        return task.done("git.no_remote")
    return Outcome(text=f"{task.say('git.remote')}\n\n{task.say.block(lines)}")


def git_commit(task: Task) -> Steps:
    yield from run_command("git add -A")
    script = f"git commit -m {shlex.quote(task.slot('text'))}"
    result = yield from run_command(script)
    return Outcome(
        text=f"{task.say('git.committed')}\n\n{task.say.block(output(result).splitlines())}"
    )


def _commits(task: Task, script: str, result: ToolResult, key: str) -> Outcome:
    if not succeeded(result):
        return failure(task, result, script)
    head = task.say(key, path=code(task.path), count=len(output_lines(result)))
    return Outcome(text=f"{head}\n\n{task.say.block(output(result).splitlines())}")
