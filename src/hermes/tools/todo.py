"""The tool that keeps the model's task list; the list is stored in the tool's newest result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hermes.codec.json import convert, plain
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ToolError
from hermes.core.tools import ToolContext, ToolDisplay, ToolOutput, tool

MAX_ITEMS = 256
MAX_CONTENT_CHARS = 4_000
SIGNS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


class TodoChange(Value):
    id: str
    content: str = ""
    status: Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(SIGNS)})] = ""


class TodoItem(Value, omit_defaults=False):
    id: str
    content: str
    status: str = "pending"


@tool(
    repeat="safe",
    stateful=True,
    toolset="todo",
    kind="think",
    display=ToolDisplay(icon="📋", verb="plan"),
)
async def todo(
    ctx: ToolContext,
    todos: Annotated[list[TodoChange] | None, "Items in order; omit to read"] = None,
    merge: Annotated[bool, "Update and add by id, instead of replacing all"] = False,
) -> ToolOutput:
    """Keep a task list. Use it for work of 3 or more steps; have one item in_progress, and complete
    it as soon as it is done."""
    items = convert(list[TodoItem], (ctx.latest("todo") or {}).get("todos", []))
    if todos is not None:
        items = _apply_changes(items if merge else [], todos)
    counts = {status: sum(item.status == status for item in items) for status in SIGNS}
    rows = [f"{SIGNS[item.status]} {item.id}: {item.content}" for item in items]
    rows.append(
        f"{counts['completed']} of {len(items)} completed" if items else "The list is empty."
    )
    details: JsonObject = {
        "todos": [plain(item) for item in items],
        "summary": {"total": len(items), **counts},
    }
    return ToolOutput.text("\n".join(rows), details=details)


def _apply_changes(items: Sequence[TodoItem], changes: Sequence[TodoChange]) -> list[TodoItem]:
    """Apply the changes; items with a new id are added at the end."""
    kept = {item.id: item for item in items}
    for change in changes:
        name = change.id.strip()
        if not name:
            raise ToolError("Every item needs an id; the list is unchanged.")
        old = kept.get(name) or TodoItem(id=name, content="")
        content = change.content.strip() or old.content
        if not content:
            raise ToolError(f"Item {name} is new and needs content; the list is unchanged.")
        if len(content) > MAX_CONTENT_CHARS:
            content = content[: MAX_CONTENT_CHARS - 1] + "…"
        status = change.status or old.status
        status = status if status in SIGNS else "pending"
        kept[name] = TodoItem(id=name, content=content, status=status)
    if len(kept) > MAX_ITEMS:
        raise ToolError(f"A list has at most {MAX_ITEMS} items; the list is unchanged.")
    return list(kept.values())
