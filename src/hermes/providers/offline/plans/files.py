"""Plans that show files: whole, in part, as JSON, as a table, as an outline."""

from __future__ import annotations

import csv
import json

from hermes.core.messages import ToolResult
from hermes.providers.offline.answers import explain_failure
from hermes.providers.offline.plan import (
    StepOutcome,
    Steps,
    StepTask,
    call,
    checked_call,
    fence_name,
    inline_code,
    markdown_table,
    run_command,
    terminal,
)
from hermes.providers.offline.slots import looks_like_file
from hermes.providers.offline.tool_output import (
    FileLines,
    build_command,
    file_lines,
    found_count,
    found_lines,
    has_succeeded,
    is_unchanged,
    join_path,
    output,
    output_lines,
)

PAGE = 100
WHOLE = 2000
FEW = 10
TABLE_ROWS = 15

_PYTHON_OUTLINE = r"^\s*(async def|def|class)\s"
_OTHER_OUTLINE = r"^\s*(export |pub |public |static |async )*(function|func|fn|class|struct)\s"


def read(task: StepTask) -> Steps:
    path = join_path(task.slot("parent"), task.path)
    return (yield from _show(task, path, 1, WHOLE if task.has("all") else PAGE))


def read_first(task: StepTask) -> Steps:
    return (yield from _show(task, task.path, 1, _count(task)))


def read_last(task: StepTask) -> Steps:
    count = _count(task)
    script = build_command("tail", "-n", str(count), paths=(task.path,))
    result = yield from run_command(script)
    lines = output(result).splitlines()
    if not lines:
        return task.answer("read.empty", path=inline_code(task.path))
    head = task.say.count("read.last", len(lines), path=inline_code(task.path))
    block = task.say.block(lines, name=fence_name(task.path), limit=WHOLE)
    return StepOutcome(text=f"{head}\n\n{block}")


def read_lines(task: StepTask) -> Steps:
    first, last = task.number("from", 1), task.number("upto", 0)
    if task.has("range"):
        begin, _, end = task.slot("range").partition("-")
        first, last = int(begin), int(end)
    first = max(1, first)
    last = max(first, last)
    return (yield from _show(task, task.path, first, min(last - first + 1, WHOLE)))


def read_more(task: StepTask) -> Steps:
    if task.focus.read is None:
        return task.answer("more.nothing")
    earlier_call, earlier = task.focus.read
    shown = file_lines(earlier)
    path = str(earlier_call.arguments.get("path", ""))
    following = shown.first + max(len(shown.lines), 1)
    if following > shown.total:
        return task.answer("more.end", path=inline_code(path))
    count = max(1, min(task.number("n", PAGE), WHOLE))
    return (yield from _show(task, path, following, count))


def show_json(task: StepTask) -> Steps:
    result = yield from checked_call("read_file", path=task.path, offset=1, limit=WHOLE)
    part = _content(task, result, task.path, 1, WHOLE)
    if part.total > len(part.lines):
        return task.fail("json.long", path=inline_code(task.path), count=part.total)
    try:
        value = json.loads("\n".join(part.lines))
    except (ValueError, RecursionError) as error:
        return task.fail("json.broken", path=inline_code(task.path), why=error)
    if task.has("check"):
        return task.answer("json.valid", path=inline_code(task.path), kind=_json_kind(task, value))
    lines = json.dumps(value, indent=2, ensure_ascii=False).splitlines()
    return StepOutcome(
        text=f"{inline_code(task.path)}:\n\n{task.say.block(lines, name='json', limit=PAGE)}"
    )


def show_table(task: StepTask) -> Steps:
    result = yield from checked_call("read_file", path=task.path, offset=1, limit=TABLE_ROWS + 1)
    part = _content(task, result, task.path, 1, TABLE_ROWS + 1)
    if not part.lines:
        return task.answer("read.empty", path=inline_code(task.path))
    try:
        rows = list(csv.reader(part.lines, delimiter=_delimiter(part.lines[0])))
    except csv.Error as error:
        return task.fail("table.broken", path=inline_code(task.path), why=error)
    heads = [cell.strip() or " " for cell in rows[0]][:12]
    body = [(row + [""] * len(heads))[: len(heads)] for row in rows[1:]]
    count = max(part.total - 1, len(body))
    note = task.say.count("table", count, path=inline_code(task.path))
    if count > len(body):
        note = task.say("table.part", path=inline_code(task.path), shown=len(body), count=count)
    return StepOutcome(text=f"{note}\n\n{markdown_table(heads, body)}")


def list_functions(task: StepTask) -> Steps:
    python = task.path.endswith(".py") or not looks_like_file(task.path)
    result = yield from checked_call(
        "search_files",
        pattern=_PYTHON_OUTLINE if python else _OTHER_OUTLINE,
        target="content",
        path=task.path,
        limit=200,
    )
    if not found_count(result):
        return task.answer("functions.none", place=task.place)
    head = task.say.count("functions", found_count(result), place=task.place)
    lines = found_lines(result) if looks_like_file(task.path) else []
    block = task.say.block(lines or result.text.splitlines(), name="python" if python else "")
    return StepOutcome(text=f"{head}\n\n{block}")


def word_count(task: StepTask) -> Steps:
    script = build_command("wc", paths=(task.path,))
    result = yield from terminal(script)
    numbers = output(result).split()[:3]
    if not has_succeeded(result) or len(numbers) < 3:
        return explain_failure(task, result, script)
    lines, words, size = numbers
    return task.answer(
        "word_count", path=inline_code(task.path), lines=lines, words=words, bytes=size
    )


def count_lines(task: StepTask) -> Steps:
    if task.has("path") and looks_like_file(task.path):
        script = build_command("wc", "-l", paths=(task.path,))
        result = yield from terminal(script)
        words = output(result).split()
        if not has_succeeded(result) or not words or not words[0].isdigit():
            return explain_failure(task, result, script)
        return StepOutcome(
            text=task.say.count("lines", int(words[0]), place=inline_code(task.path))
        )
    kind = {"file_glob": task.slot("glob")} if task.has("glob") else {}
    result = yield from checked_call(
        "search_files", pattern="^", path=task.path, output_mode="count", limit=50, **kind
    )
    where = f"{inline_code(task.slot('glob'))}, {task.place}" if kind else task.place
    return StepOutcome(text=task.say.count("lines", found_count(result), place=where))


def project_overview(task: StepTask) -> Steps:
    script = "ls -1p"
    result = yield from run_command(script)
    names = output_lines(result)
    head = task.say.count("list", len(names), place=task.place)
    listing = f"{head}\n\n{task.say.bullets([inline_code(name) for name in names], limit=20)}"
    about = next((name for name in names if name.casefold().startswith("readme")), "")
    if not about:
        return StepOutcome(text=f"{listing}\n\n{task.say('overview.no_readme')}")
    outcome = yield from _show(task, about, 1, 30)
    return StepOutcome(text=f"{listing}\n\n{outcome.text}", failed=outcome.failed)


def _show(task: StepTask, path: str, first: int, count: int) -> Steps:
    result = yield from call("read_file", path=path, offset=first, limit=count)
    # The tool refuses repeated requests for the same lines; they were already shown.
    if not has_succeeded(result) and (path, first, count) not in task.focus.shown:
        return explain_failure(task, result)
    part = _content(task, result, path, first, count)
    if not part.lines:
        key = "read.empty" if part.total == 0 else "read.past_end"
        return task.answer(key, path=inline_code(path), total=part.total)
    last = part.first + len(part.lines) - 1
    head = task.say("read.whole", path=inline_code(path))
    if part.total > len(part.lines):
        head = task.say(
            "read.part", path=inline_code(path), first=part.first, last=last, total=part.total
        )
    text = f"{head}\n\n{task.say.block(part.lines, name=fence_name(path), limit=WHOLE)}"
    if last < part.total:
        text += f"\n\n{task.say('read.go_on')}"
    return StepOutcome(text=text)


def _content(task: StepTask, result: ToolResult, path: str, first: int, count: int) -> FileLines:
    """The content; if the tool only says "unchanged", what it showed before."""
    if is_unchanged(result) or not has_succeeded(result):
        return file_lines(task.focus.shown.get((path, first, count), result))
    return file_lines(result)


def _count(task: StepTask) -> int:
    return max(1, min(task.number("n", FEW), WHOLE))


def _delimiter(line: str) -> str:
    return max(",;\t|", key=lambda sign: (line.count(sign), sign == ","))


def _json_kind(task: StepTask, value: object) -> str:
    if isinstance(value, dict):
        return task.say.count("json.object", len(value))
    if isinstance(value, list):
        return task.say.count("json.list", len(value))
    return task.say("json.single")
