"""Plans that change files and folders."""

from __future__ import annotations

import re

from hermes.providers.offline.answers import explain_failure
from hermes.providers.offline.plan import (
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
    exit_code,
    find_command,
    has_succeeded,
    join_path,
    output_lines,
    was_refused,
)

_NO_FILE = re.compile(r"(?i)no (such )?file|not found|does not exist")


def create_file(task: StepTask) -> Steps:
    """Only "overwrite" replaces an existing file: "create" means a new one."""
    text = task.slot("text")
    content = text if not text or text.endswith("\n") else f"{text}\n"
    path = join_path(task.slot("parent"), task.path)
    if not task.has("overwrite") and "terminal" in task.tools:
        script = find_command(path)
        taken = yield from terminal(script)
        if was_refused(taken):
            return explain_failure(task, taken, script)
        if has_succeeded(taken) and output_lines(taken):
            return task.fail("file_exists", path=inline_code(path))
    yield from checked_call("write_file", path=path, content=content)
    if not content:
        return task.answer("created.empty", path=inline_code(path))
    lines = content.count("\n")
    return StepOutcome(text=task.say.count("created", lines, path=inline_code(path)))


def append(task: StepTask) -> Steps:
    """Appends with a patch; a missing file is created."""
    path, text = task.path, task.slot("text")
    if "\n" in path:
        return task.fail("bad_path", path=inline_code(path))
    result = yield from call("patch", mode="patch", patch=_patch("Update", path, text))
    if not has_succeeded(result) and _NO_FILE.search(result.text):
        result = yield from checked_call("patch", mode="patch", patch=_patch("Add", path, text))
    task.focus.file = path
    return task.answer("appended", path=inline_code(path))


def replace(task: StepTask) -> Steps:
    old, new = task.slot("old"), task.slot("new")
    yield from checked_call(
        "patch",
        mode="replace",
        path=task.path,
        old_string=old,
        new_string=new,
        replace_all=not task.has("once"),
    )
    return task.answer(
        "replaced", old=inline_code(old), new=inline_code(new), path=inline_code(task.path)
    )


def move(task: StepTask) -> Steps:
    """Never overwrites: -n keeps an existing file, and -v reports whether anything moved."""
    return (yield from _transfer(task, build_command("mv", "-nv", paths=_both(task)), "moved"))


def copy(task: StepTask) -> Steps:
    return (yield from _transfer(task, build_command("cp", "-Rnv", paths=_both(task)), "copied"))


def delete(task: StepTask) -> Steps:
    is_folder = task.has("folder") or task.path.endswith("/")
    script = build_command(*(("rm", "-r") if is_folder else ("rm",)), paths=(task.path,))
    yield from run_command(script)
    return task.answer("deleted", path=inline_code(task.path))


def make_folder(task: StepTask) -> Steps:
    path = join_path(task.slot("parent"), task.path)
    script = build_command("mkdir", "-p", paths=(path,))
    yield from run_command(script)
    return task.answer("folder_made", path=inline_code(path))


def go_to(task: StepTask) -> Steps:
    wanted = task.slot("path", "~")
    script = "cd -" if wanted == "-" else build_command("cd", paths=(wanted,))
    result = yield from run_command(script)
    cwd = result.details.get("cwd")
    return task.answer(
        "gone_to", path=inline_code(cwd if isinstance(cwd, str) and cwd else task.path)
    )


def diff(task: StepTask) -> Steps:
    one, two = task.path, task.slot("other")
    script = build_command("diff", "-u", paths=(one, two))
    result = yield from terminal(script)
    lines = output_lines(result)
    # diff exits with 1 if the files differ and with 2 if it could not compare them.
    if exit_code(result) == 0:
        return task.answer("same", one=inline_code(one), two=inline_code(two))
    if exit_code(result) != 1 or not lines:
        return explain_failure(task, result, script)
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    head = task.say(
        "differ", one=inline_code(one), two=inline_code(two), added=added, removed=removed
    )
    return StepOutcome(text=f"{head}\n\n{task.say.block(lines, name='diff')}")


def checksum(task: StepTask) -> Steps:
    paths = (task.path, task.slot("other")) if task.has("other") else (task.path,)
    algorithm = task.slot("algorithm", "sha256sum")
    script = build_command(algorithm, paths=paths)
    result = yield from terminal(script)
    sums = [line.split()[0] for line in output_lines(result)]
    if not has_succeeded(result) or len(sums) < len(paths):
        return explain_failure(task, result, script)
    if len(paths) == 1:
        name = algorithm.removesuffix("sum").upper()
        return task.answer(
            "checksum", path=inline_code(paths[0]), sum=inline_code(sums[0]), algorithm=name
        )
    key = "sums.same" if sums[0] == sums[1] else "sums.differ"
    head = task.say(key, one=inline_code(paths[0]), two=inline_code(paths[1]))
    shown = task.say.bullets(
        [f"{inline_code(path)}: {inline_code(one)}" for path, one in zip(paths, sums, strict=False)]
    )
    return StepOutcome(text=f"{head}\n\n{shown}")


def _patch(action: str, path: str, text: str) -> str:
    added = [f"+{line}" for line in text.splitlines()]
    end = ["*** End of File"] if action == "Update" else []
    begin = ["@@"] if action == "Update" else []
    lines = ["*** Begin Patch", f"*** {action} File: {path}", *begin, *added, *end, "*** End Patch"]
    return "\n".join(lines) + "\n"


def _both(task: StepTask) -> tuple[str, str]:
    return task.path, task.slot("to")


def _transfer(task: StepTask, script: str, key: str) -> Steps:
    result = yield from run_command(script)
    one, two = _both(task)
    if not any("->" in line for line in output_lines(result)):
        return task.fail("target_exists", one=inline_code(one), two=inline_code(two))
    return task.answer(key, one=inline_code(one), two=inline_code(two))
