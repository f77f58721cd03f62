"""Plans that change files and folders."""

from __future__ import annotations

import re

from hermes.providers.offline.commands import command, joined, named
from hermes.providers.offline.failures import failure
from hermes.providers.offline.plan import (
    Outcome,
    Steps,
    Task,
    call,
    checked_call,
    run_command,
    terminal,
)
from hermes.providers.offline.tool_answers import exit_code, output_lines, succeeded, was_refused
from hermes.providers.offline.voice import code

_NO_FILE = re.compile(r"(?i)no (such )?file|not found|does not exist")


def create_file(task: Task) -> Steps:
    """Only "overwrite" replaces an existing file: "create" means a new one."""
    text = task.slot("text")
    content = text if not text or text.endswith("\n") else f"{text}\n"
    path = joined(task.slot("parent"), task.path)
    if not task.has("overwrite") and "terminal" in task.tools:
        script = named(path)
        taken = yield from terminal(script)
        if was_refused(taken):
            return failure(task, taken, script)
        if succeeded(taken) and output_lines(taken):
            return task.failed("file_exists", path=code(path))
    yield from checked_call("write_file", path=path, content=content)
    if not content:
        return task.done("created.empty", path=code(path))
    lines = content.count("\n")
    return Outcome(text=task.say.count("created", lines, path=code(path)))


def append(task: Task) -> Steps:
    """Appends with a patch; a missing file is created."""
    path, text = task.path, task.slot("text")
    if "\n" in path:
        return task.failed("bad_path", path=code(path))
    result = yield from call("patch", mode="patch", patch=_patch("Update", path, text))
    if not succeeded(result) and _NO_FILE.search(result.text):
        result = yield from checked_call("patch", mode="patch", patch=_patch("Add", path, text))
    task.focus.file = path
    return task.done("appended", path=code(path))


def replace(task: Task) -> Steps:
    old, new = task.slot("old"), task.slot("new")
    yield from checked_call(
        "patch",
        mode="replace",
        path=task.path,
        old_string=old,
        new_string=new,
        replace_all=not task.has("once"),
    )
    return task.done("replaced", old=code(old), new=code(new), path=code(task.path))


def move(task: Task) -> Steps:
    """Never overwrites: -n keeps an existing file, and -v reports whether anything moved."""
    return (yield from _transfer(task, command("mv", "-nv", paths=_both(task)), "moved"))


def copy(task: Task) -> Steps:
    return (yield from _transfer(task, command("cp", "-Rnv", paths=_both(task)), "copied"))


def delete(task: Task) -> Steps:
    is_folder = task.has("folder") or task.path.endswith("/")
    script = command(*(("rm", "-r") if is_folder else ("rm",)), paths=(task.path,))
    yield from run_command(script)
    return task.done("deleted", path=code(task.path))


def make_folder(task: Task) -> Steps:
    path = joined(task.slot("parent"), task.path)
    script = command("mkdir", "-p", paths=(path,))
    yield from run_command(script)
    return task.done("folder_made", path=code(path))


def go_to(task: Task) -> Steps:
    wanted = task.slot("path", "~")
    script = "cd -" if wanted == "-" else command("cd", paths=(wanted,))
    result = yield from run_command(script)
    cwd = result.details.get("cwd")
    return task.done("gone_to", path=code(cwd if isinstance(cwd, str) and cwd else task.path))


def diff(task: Task) -> Steps:
    one, two = task.path, task.slot("other")
    script = command("diff", "-u", paths=(one, two))
    result = yield from terminal(script)
    lines = output_lines(result)
    # diff exits with 1 if the files differ and with 2 if it could not compare them.
    if exit_code(result) == 0:
        return task.done("same", one=code(one), two=code(two))
    if exit_code(result) != 1 or not lines:
        return failure(task, result, script)
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    head = task.say("differ", one=code(one), two=code(two), added=added, removed=removed)
    return Outcome(text=f"{head}\n\n{task.say.block(lines, name='diff')}")


def checksum(task: Task) -> Steps:
    paths = (task.path, task.slot("other")) if task.has("other") else (task.path,)
    algorithm = task.slot("algorithm", "sha256sum")
    script = command(algorithm, paths=paths)
    result = yield from terminal(script)
    sums = [line.split()[0] for line in output_lines(result)]
    if not succeeded(result) or len(sums) < len(paths):
        return failure(task, result, script)
    if len(paths) == 1:
        name = algorithm.removesuffix("sum").upper()
        return task.done("checksum", path=code(paths[0]), sum=code(sums[0]), algorithm=name)
    key = "sums.same" if sums[0] == sums[1] else "sums.differ"
    head = task.say(key, one=code(paths[0]), two=code(paths[1]))
    shown = task.say.bullets(
        [f"{code(path)}: {code(one)}" for path, one in zip(paths, sums, strict=False)]
    )
    return Outcome(text=f"{head}\n\n{shown}")


def _patch(action: str, path: str, text: str) -> str:
    added = [f"+{line}" for line in text.splitlines()]
    end = ["*** End of File"] if action == "Update" else []
    begin = ["@@"] if action == "Update" else []
    lines = ["*** Begin Patch", f"*** {action} File: {path}", *begin, *added, *end, "*** End Patch"]
    return "\n".join(lines) + "\n"


def _both(task: Task) -> tuple[str, str]:
    return task.path, task.slot("to")


def _transfer(task: Task, script: str, key: str) -> Steps:
    result = yield from run_command(script)
    one, two = _both(task)
    if not any("->" in line for line in output_lines(result)):
        return task.failed("target_exists", one=code(one), two=code(two))
    return task.done(key, one=code(one), two=code(two))
