"""Plans that search: text in files, files by name, and counts."""

from __future__ import annotations

import re
from collections.abc import Generator

from hermes.codec.values import JsonObject
from hermes.core.messages import ToolResult
from hermes.providers.offline.plan import (
    CallRequests,
    Results,
    StepOutcome,
    Steps,
    StepTask,
    checked_call,
    inline_code,
)
from hermes.providers.offline.tool_output import found_count, found_files

SHOWN = 50
MAX_COUNTED = 100

_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
TODO_PATTERN = r"\b(TODO|FIXME|XXX|HACK)\b"


def find_text(task: StepTask) -> Steps:
    if task.has("names"):
        return (yield from files_with_text(task))
    result = yield from _search(task, _search_pattern(task), limit=SHOWN)
    return _matches(task, result, inline_code(task.slot("text")))


def files_with_text(task: StepTask) -> Steps:
    result = yield from _search(task, _search_pattern(task), limit=SHOWN, output_mode="files_only")
    files = found_files(result)
    if not files:
        return task.answer("matches.none", text=inline_code(task.slot("text")), place=task.place)
    head = task.say.count(
        "files_with", len(files), text=inline_code(task.slot("text")), place=task.place
    )
    return StepOutcome(text=f"{head}\n\n{task.say.bullets([inline_code(name) for name in files])}")


def find_todos(task: StepTask) -> Steps:
    result = yield from _search(task, TODO_PATTERN, limit=SHOWN)
    return _matches(task, result, "TODO/FIXME")


def count_matches(task: StepTask) -> Steps:
    result = yield from _search(task, _search_pattern(task), limit=MAX_COUNTED, output_mode="count")
    text = inline_code(task.slot("text"))
    count = found_count(result)
    return StepOutcome(text=task.say.count("counted", count, text=text, place=task.place))


def find_files(task: StepTask) -> Steps:
    result = yield from _files(task, limit=SHOWN)
    files = found_files(result)
    wanted = inline_code(_file_pattern(task))
    if not files:
        return task.answer("files.no_match", pattern=wanted, place=task.place)
    count = max(found_count(result), len(files))
    head = task.say.count("files.found", count, pattern=wanted, place=task.place)
    return StepOutcome(text=f"{head}\n\n{task.say.bullets([inline_code(name) for name in files])}")


def count_files(task: StepTask) -> Steps:
    result = yield from _files(task, limit=1)
    count = found_count(result)
    if task.has("glob"):
        pattern = inline_code(_file_pattern(task))
        return StepOutcome(
            text=task.say.count("files.counted", count, pattern=pattern, place=task.place)
        )
    return StepOutcome(text=task.say.count("files.count", count, place=task.place))


def _search(
    task: StepTask, pattern: str, **options: object
) -> Generator[CallRequests, Results, ToolResult]:
    narrowed: JsonObject = {"file_glob": task.slot("glob")} if task.has("glob") else {}
    return (
        yield from checked_call(
            "search_files",
            pattern=pattern,
            target="content",
            path=task.path,
            **narrowed,
            **options,
        )
    )


def _files(task: StepTask, *, limit: int) -> Generator[CallRequests, Results, ToolResult]:
    pattern = _file_pattern(task)
    return (
        yield from checked_call(
            "search_files", pattern=pattern, target="files", path=task.path, limit=limit
        )
    )


def _search_pattern(task: StepTask) -> str:
    """The text as a regular expression that matches it literally, unless it is one already."""
    text = task.slot("text")
    if not task.has("regex"):
        text = _SPECIAL.sub(r"\\\g<0>", text)
    return f"(?i){text}" if task.has("any_case") else text


def _file_pattern(task: StepTask) -> str:
    """A name without a wildcard may also be part of a name."""
    if task.has("glob"):
        return task.slot("glob")
    wanted = task.slot("target") or task.slot("name")
    name = wanted.rstrip("/").rpartition("/")[2] or "*"
    if "*" in name or "?" in name or "." in name:
        return name
    return f"*{name}*"


def _matches(task: StepTask, result: ToolResult, text: str) -> StepOutcome:
    count = found_count(result)
    if not count:
        return task.answer("matches.none", text=text, place=task.place)
    files = found_files(result)
    head = task.say.count("matches", count, text=text, place=task.place)
    if len(files) > 1:
        head += " " + task.say("matches.files", count=len(files))
    return StepOutcome(text=f"{head}\n\n{task.say.block(result.text.rstrip().splitlines())}")
