"""Plans for the to-do list, memory and earlier conversations."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import JsonObject
from hermes.core.messages import ToolResult
from hermes.providers.offline.answers import explain_failure
from hermes.providers.offline.plan import (
    StepOutcome,
    Steps,
    StepTask,
    call,
    checked_call,
    inline_code,
)
from hermes.providers.offline.tool_output import has_succeeded, objects, output_lines

_BOXES = {"completed": "[x]", "cancelled": "[-]", "in_progress": "[~]"}


def todo_show(task: StepTask) -> Steps:
    result = yield from checked_call("todo")
    return _show_todos(task, objects(result.details, "todos"))


def todo_add(task: StepTask) -> Steps:
    current = yield from checked_call("todo")
    item = {
        "id": _free_id(objects(current.details, "todos")),
        "content": task.slot("text"),
        "status": "pending",
    }
    result = yield from call("todo", todos=[item], merge=True)
    return _report_change(task, result, "todo.added", task.slot("text"))


def todo_done(task: StepTask) -> Steps:
    current = yield from checked_call("todo")
    item = _find_todo(task, objects(current.details, "todos"))
    if item is None:
        return _unclear(task, objects(current.details, "todos"))
    result = yield from call("todo", todos=[{**item, "status": "completed"}], merge=True)
    return _report_change(task, result, "todo.done", str(item.get("content", "")))


def todo_remove(task: StepTask) -> Steps:
    current = yield from checked_call("todo")
    todos = objects(current.details, "todos")
    item = _find_todo(task, todos)
    if item is None:
        return _unclear(task, todos)
    rest = [other for other in todos if other is not item]
    result = yield from call("todo", todos=rest, merge=False)
    return _report_change(task, result, "todo.removed", str(item.get("content", "")))


def todo_clear(task: StepTask) -> Steps:
    yield from checked_call("todo", todos=[], merge=False)
    return task.answer("todo.cleared")


def remember(task: StepTask) -> Steps:
    text = task.slot("text")
    result = yield from checked_call("memory", action="add", target="memory", content=text)
    if result.details.get("held"):
        return task.answer("remembered.held", text=text)
    return task.answer("remembered", text=text)


def recall(task: StepTask) -> Steps:
    result = yield from checked_call("session_search", query=task.slot("text"))
    lines = output_lines(result)
    text = inline_code(task.slot("text"))
    if not lines or result.details.get("count") == 0:
        return task.answer("recall.none", text=text)
    return StepOutcome(text=f"{task.say('recall', text=text)}\n\n{task.say.block(lines)}")


def _report_change(task: StepTask, result: ToolResult, key: str, text: str) -> StepOutcome:
    if not has_succeeded(result):
        return explain_failure(task, result)
    shown = _show_todos(task, objects(result.details, "todos"))
    return StepOutcome(text=f"{task.say(key, text=text)}\n\n{shown.text}")


def _show_todos(task: StepTask, todos: Sequence[JsonObject]) -> StepOutcome:
    if not todos:
        return task.answer("todo.empty")
    lines = [
        f"{number}. {_BOXES.get(str(item.get('status')), '[ ]')} {item.get('content', '')}"
        for number, item in enumerate(todos, 1)
    ]
    open_items = sum(item.get("status") in ("pending", "in_progress") for item in todos)
    head = task.say.count("todo.open", open_items) if open_items else task.say("todo.all_done")
    return StepOutcome(text=f"{head}\n\n" + "\n".join(lines))


def _unclear(task: StepTask, todos: Sequence[JsonObject]) -> StepOutcome:
    return StepOutcome(
        text=f"{task.say('todo.unclear')}\n\n{_show_todos(task, todos).text}", failed=True
    )


def _find_todo(task: StepTask, todos: Sequence[JsonObject]) -> JsonObject | None:
    """By its position in the list, or as the only item that contains the words."""
    place = task.number("n", 0) or _place(task)
    if place:
        index = place - 1 if place > 0 else len(todos) + place
        return todos[index] if 0 <= index < len(todos) else None
    words = task.slot("text").casefold()
    found = [item for item in todos if words and words in str(item.get("content", "")).casefold()]
    return found[0] if len(found) == 1 else None


def _place(task: StepTask) -> int:
    ordinals = task.say.language.data.ordinals
    return ordinals.get(task.slot("text").casefold(), 0)


def _free_id(todos: Sequence[JsonObject]) -> str:
    taken = {str(item.get("id")) for item in todos}
    return next(str(n) for n in range(len(todos) + 1, 2 * len(todos) + 2) if str(n) not in taken)
