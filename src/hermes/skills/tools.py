"""The skill tools: list, load, write and fix skills."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Literal

from hermes.codec.values import JsonObject
from hermes.core.effects import ChangeSkill, Effect
from hermes.core.errors import HermesError, NotFound, ToolError
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.skills.desk import SkillService
from hermes.skills.history import Version
from hermes.skills.scan import SkillEntry
from hermes.skills.skill import MAIN
from hermes.skills.viewing import file_output, skill_output

CLOSED = "There are no skills."
LINE = 120

Action = Literal["create", "patch", "edit", "delete", "write_file", "remove_file"]


class SkillTools:
    """State of the skill tools in one session."""

    def __init__(self, desk: SkillService | None = None) -> None:
        self._desk = desk

    @property
    def service(self) -> SkillService:
        if self._desk is None:
            raise ToolError(CLOSED)
        return self._desk


@tool(
    repeat="safe",
    toolset="skills",
    kind="read",
    display=ToolDisplay(icon="📚", verb="skills", detail="{category}"),
)
async def skills_list(
    ctx: ToolContext, category: Annotated[str, "Only this category"] = ""
) -> ToolOutput:
    """List all skills with descriptions."""
    desk = ctx.kept(SkillTools).service
    scanned, shown = await asyncio.to_thread(lambda: (desk.scan(), desk.available_skills()))
    entries = [entry for entry in shown if not category or entry.category == category]
    categories = sorted({entry.category for entry in shown})
    details: JsonObject = {
        "skills": [
            {"name": e.name, "description": e.skill.description, "category": e.category}
            for e in entries
        ],
        "categories": categories,
        "count": len(entries),
    }
    if not entries:
        words = f"There is no skill in {category!r}." if category else CLOSED
        return ToolOutput.text(f"{words} Categories: {', '.join(categories)}", details=details)
    lines: list[str] = []
    for name in dict.fromkeys(entry.category for entry in entries):
        about = scanned.categories.get(name, "")
        lines.append(f"{name or 'general'}:{' ' + about if about else ''}")
        lines += [_line(entry) for entry in entries if entry.category == name]
    return ToolOutput.text("\n".join((*lines, "skill_view(name) loads one.")), details=details)


def _line(entry: SkillEntry) -> str:
    words = entry.skill.description
    return f"- {entry.name}: {words if len(words) <= LINE else words[: LINE - 1] + '…'}"


@tool(
    repeat="safe",
    toolset="skills",
    kind="read",
    display=ToolDisplay(icon="📚", verb="skill", detail="{name} {file_path}"),
)
async def skill_view(
    ctx: ToolContext,
    name: str,
    file_path: Annotated[str, "One of its files instead of its text"] = "",
) -> ToolOutput:
    """Load a skill: how to do a kind of task here. Follow it."""
    desk = ctx.kept(SkillTools).service
    try:
        entry = await asyncio.to_thread(desk.find, name)
        if file_path and file_path != MAIN:
            return await asyncio.to_thread(file_output, desk, entry, file_path)
        return await skill_output(ctx, desk, entry)
    except NotFound as error:
        near = f" Near: {', '.join(error.near)}." if error.near else " skills_list shows all."
        raise ToolError(f"{error}{near}") from error
    except HermesError as error:
        raise ToolError(str(error)) from error


def _changes(_place: PathContext, arguments: JsonObject) -> tuple[Effect, ...]:
    return (ChangeSkill(name=arguments["name"], action=arguments["action"]),)


@tool(
    effects=_changes,
    toolset="skills",
    kind="edit",
    display=ToolDisplay(icon="📚", verb="skill", detail="{name} {file_path}"),
)
async def skill_manage(
    ctx: ToolContext,
    action: Action,
    name: str,
    content: Annotated[str, "create, edit: the whole SKILL.md, with frontmatter"] = "",
    category: str = "",
    old_string: str = "",
    new_string: str = "",
    replace_all: bool = False,
    file_path: Annotated[str, "In references, templates, scripts or assets"] = "",
    file_content: str = "",
    absorbed_into: Annotated[str | None, "delete: the skill that now has its content"] = None,
) -> ToolOutput:
    """Save how to do a kind of task, or fix a skill. Prefer patch; name the kind of task, not the
    case; no temporary failures. Steps, pitfalls, checks."""
    desk = ctx.kept(SkillTools).service
    try:
        if action != "create":
            await _confirm_change(ctx, desk, name)
        arguments: JsonObject = {
            "action": action,
            "name": name,
            "content": content,
            "category": category,
            "old_string": old_string,
            "new_string": new_string,
            "replace_all": replace_all,
            "file_path": file_path,
            "file_content": file_content,
            "absorbed_into": absorbed_into,
        }
        version = await asyncio.to_thread(execute_change, desk, ctx.call_id, arguments)
    except NotFound as error:
        raise ToolError(f"{error} skills_list shows all.") from error
    except HermesError as error:
        raise ToolError(str(error)) from error
    return _report(desk, version)


def execute_change(desk: SkillService, call_id: str, given: JsonObject) -> Version:
    """Executes decoded arguments of `skill_manage`."""
    name, path = given["name"], given["file_path"]
    steps: dict[Action, Callable[[], Version]] = {
        "create": lambda: desk.create(call_id, name, given["content"], given["category"]),
        "edit": lambda: desk.edit(call_id, name, given["content"]),
        "patch": lambda: desk.patch(
            call_id,
            name,
            path or MAIN,
            given["old_string"],
            given["new_string"],
            given["replace_all"],
        ),
        "write_file": lambda: desk.write_file(call_id, name, path, given["file_content"]),
        "remove_file": lambda: desk.remove_file(call_id, name, path),
        "delete": lambda: desk.delete(call_id, name, given["absorbed_into"]),
    }
    action: Action = given["action"]
    return steps[action]()


async def _confirm_change(ctx: ToolContext, desk: SkillService, name: str) -> None:
    """Asks before changing a skill that is not the agent's own."""
    entry = await asyncio.to_thread(desk.find, name)
    origin = await asyncio.to_thread(desk.provenance, entry)
    if origin == "agent" or desk.staged:
        return
    whose = {"bundled": "came with Hermes", "hub": "was installed", "user": "is yours"}
    question = f"The skill {name} {whose.get(origin, 'is not mine')}. Change it?"
    answer = await ctx.ask(question, ("yes", "no"))
    if answer != "yes":
        raise ToolError(
            f"The skill {name} is not yours ({origin}) and the user declined the change. "
            "Leave it; write what differs into a skill of your own."
        )


def _report(desk: SkillService, version: Version) -> ToolOutput:
    details: JsonObject = {
        "name": version.name,
        "version": version.id,
        "action": version.action,
        "path": version.place,
        "staged": desk.staged,
    }
    if desk.staged:
        text = f"{version.id} waits for approval (/skills approve {version.id})."
    elif version.removed:
        text = f"The skill {version.name} is removed; `hermes skills revert` restores it."
    else:
        text = f"The skill {version.name} is saved as version {version.id} in {version.place}."
    return ToolOutput.text(text, details=details)
