"""The skill tools: list, load, write and fix skills."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Literal

from hermes.codec.json import plain
from hermes.codec.values import JsonObject, replace
from hermes.core.effects import ChangeSkill, Effect, RunCommand
from hermes.core.errors import HermesError, NotFound, ToolError
from hermes.core.secrets import Captured, SecretRequest
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.skills.catalogue import SkillEntry
from hermes.skills.history import Version
from hermes.skills.invocation import (
    RunInline,
    linked_files,
    read_skill_file,
    render,
    settings_lines,
)
from hermes.skills.service import Readiness, SkillService
from hermes.skills.skill import MAIN, split_frontmatter

DONE = "I have set it"
SKIP = "Continue without it"
ALLOW = "Allow"
DENY = "Deny"
MOST_INLINE = 4_000
# Authors that the person did not choose.
STRANGERS = ("agent", "hub", "project")


async def skill_output(ctx: ToolContext, service: SkillService, entry: SkillEntry) -> ToolOutput:
    ready = await asyncio.to_thread(service.readiness, entry)
    if ready.status == "unsupported":
        raise ToolError(
            f"The skill {entry.name} does not support this system: readiness unsupported."
        )
    skipped = False
    if ready.variables and service.here.platform == "cli":
        ready, skipped = await _set_up(ctx, service, entry, ready)
    hidden = await _open_environment(ctx, service, entry)
    version = await asyncio.to_thread(service.note_view, entry)
    files = await asyncio.to_thread(linked_files, entry)
    body = split_frontmatter(await asyncio.to_thread(read_skill_file, entry))[1].strip()
    text = await render(body, entry, service.loading, _inline(ctx, service))
    notes = [f"[Skill directory: {entry.folder}]"]
    if files:
        names = ", ".join(name for names in files.values() for name in names)
        notes.append(f"[Files, for skill_view with file_path: {names}]")
    if lines := settings_lines(entry.skill, service.loading.settings):
        notes.append(f"[Settings: {'; '.join(lines)}]")
    notes += [f"[{note}]" for note in (_advice(entry, ready), hidden) if note]
    output = ToolOutput.text(
        "\n".join((text, "", *notes)),
        details=_details(entry, ready, files, version, skipped=skipped),
    )
    return _mark_origin(service, entry, output)


def _inline(ctx: ToolContext, service: SkillService) -> RunInline | None:
    """Runs inline commands through the policy in the session's workspace."""
    if not service.inline_seconds:
        return None

    async def run(script: str) -> str:
        effect = RunCommand(script=script, cwd=ctx.workspace.cwd)
        try:
            done = await ctx.workspace.run(
                effect, timeout=service.inline_seconds, stop=ctx.stop, max_bytes=MOST_INLINE
            )
        except ToolError as error:
            return f"[!`{script}` was not run: {error}]"
        if done.timed_out or done.exit_code:
            return f"[!`{script}` failed: {done.output.strip()[:200]}]"
        return done.output.rstrip("\n")

    return run


def file_output(service: SkillService, entry: SkillEntry, path: str) -> ToolOutput:
    text = read_skill_file(entry, path)
    kind = PurePosixPath(path).suffix
    details: JsonObject = {"name": entry.name, "file": path, "file_type": kind}
    return _mark_origin(service, entry, ToolOutput.text(text, details=details))


def _mark_origin(service: SkillService, entry: SkillEntry, output: ToolOutput) -> ToolOutput:
    """Marks text of an untrusted author with its origin."""
    return (
        replace(output, origin=f"skill:{entry.name}")
        if service.is_untrusted(entry.name)
        else output
    )


async def _set_up(
    ctx: ToolContext, service: SkillService, entry: SkillEntry, ready: Readiness
) -> tuple[Readiness, bool]:
    """Asks for missing variables; secrets never enter the transcript."""
    captured = await _capture_all(service, ready)
    if captured != "unavailable":
        return await asyncio.to_thread(service.readiness, entry), captured == "skipped"
    names = ", ".join(each.name for each in ready.variables)
    words = next((each.prompt or each.help for each in ready.variables), "")
    answer = await ctx.ask(
        f"The skill {entry.name} needs {names}.{' ' + words if words else ''} "
        f"Run `hermes skills setup {entry.name}` in another terminal to set it.",
        (DONE, SKIP),
    )
    if answer != DONE:
        return ready, True
    return await asyncio.to_thread(service.readiness, entry), False


async def _capture_all(service: SkillService, ready: Readiness) -> Captured:
    """Asks for each variable until one is declined."""
    captured: Captured = "unavailable"
    for each in ready.variables:
        captured = await service.capture(
            SecretRequest(name=each.name, prompt=each.prompt, help=each.help)
        )
        if captured != "stored":
            break
    return captured


async def _open_environment(ctx: ToolContext, service: SkillService, entry: SkillEntry) -> str:
    """Exposes the declared variables to commands: directly for a skill that the person chose,
    after a question for others. Returns a note about hidden ones."""
    names = [each.name for each in entry.skill.variables]
    if not names:
        return ""
    if await asyncio.to_thread(service.provenance, entry) in STRANGERS:
        question = (
            f"May commands in this session use {', '.join(names)} for the skill {entry.name}?"
        )
        if await ctx.ask(question, (ALLOW, DENY)) != ALLOW:
            return f"Commands do not see {', '.join(names)}: the user denied it."
    seen = service.allow_environment(names)
    unseen = [name for name in names if name not in seen]
    return f"Commands do not see {', '.join(unseen)}." if unseen else ""


def _advice(entry: SkillEntry, ready: Readiness) -> str:
    if not ready.note:
        return ""
    if ready.variables:
        return f"{ready.note} Set it with `hermes skills setup {entry.name}`."
    return ready.note


def _details(
    entry: SkillEntry,
    ready: Readiness,
    files: dict[str, tuple[str, ...]],
    version: str,
    *,
    skipped: bool,
) -> JsonObject:
    skill = entry.skill
    return {
        "name": skill.name,
        "description": skill.description,
        "tags": skill.tags,
        "related_skills": skill.related,
        "path": entry.folder,
        "version": version,
        "linked_files": files,
        "required_environment_variables": [plain(each) for each in skill.variables],
        "required_commands": skill.commands,
        "missing_required_environment_variables": [each.name for each in ready.variables],
        "missing_credential_files": ready.files,
        "missing_required_commands": ready.commands,
        "setup_needed": ready.status == "setup_needed",
        "setup_skipped": skipped,
        "readiness_status": ready.status,
    }


CLOSED = "There are no skills."
LINE = 120

Action = Literal["create", "patch", "edit", "delete", "write_file", "remove_file"]


class SkillTools:
    """State of the skill tools in one session."""

    def __init__(self, service: SkillService | None = None) -> None:
        self._service = service

    @property
    def service(self) -> SkillService:
        if self._service is None:
            raise ToolError(CLOSED)
        return self._service


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
    service = ctx.service(SkillTools).service
    scanned, shown = await asyncio.to_thread(lambda: (service.scan(), service.available_skills()))
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
    service = ctx.service(SkillTools).service
    try:
        entry = await asyncio.to_thread(service.find, name)
        if file_path and file_path != MAIN:
            return await asyncio.to_thread(file_output, service, entry, file_path)
        return await skill_output(ctx, service, entry)
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
    service = ctx.service(SkillTools).service
    try:
        if action != "create":
            await _confirm_change(ctx, service, name)
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
        version = await asyncio.to_thread(execute_change, service, ctx.call_id, arguments)
    except NotFound as error:
        raise ToolError(f"{error} skills_list shows all.") from error
    except HermesError as error:
        raise ToolError(str(error)) from error
    return _report(service, version)


def execute_change(service: SkillService, call_id: str, given: JsonObject) -> Version:
    """Executes decoded arguments of `skill_manage`."""
    name, path = given["name"], given["file_path"]
    steps: dict[Action, Callable[[], Version]] = {
        "create": lambda: service.create(call_id, name, given["content"], given["category"]),
        "edit": lambda: service.edit(call_id, name, given["content"]),
        "patch": lambda: service.patch(
            call_id,
            name,
            path or MAIN,
            given["old_string"],
            given["new_string"],
            given["replace_all"],
        ),
        "write_file": lambda: service.write_file(call_id, name, path, given["file_content"]),
        "remove_file": lambda: service.remove_file(call_id, name, path),
        "delete": lambda: service.delete(call_id, name, given["absorbed_into"]),
    }
    action: Action = given["action"]
    return steps[action]()


async def _confirm_change(ctx: ToolContext, service: SkillService, name: str) -> None:
    """Asks before changing a skill that is not the agent's own."""
    entry = await asyncio.to_thread(service.find, name)
    origin = await asyncio.to_thread(service.provenance, entry)
    if origin == "agent" or service.staged:
        return
    whose = {"bundled": "came with Hermes", "hub": "was installed", "user": "is yours"}
    question = f"The skill {name} {whose.get(origin, 'is not mine')}. Change it?"
    answer = await ctx.ask(question, ("yes", "no"))
    if answer != "yes":
        raise ToolError(
            f"The skill {name} is not yours ({origin}) and the user declined the change. "
            "Leave it; write what differs into a skill of your own."
        )


def _report(service: SkillService, version: Version) -> ToolOutput:
    details: JsonObject = {
        "name": version.name,
        "version": version.id,
        "action": version.action,
        "path": version.place,
        "staged": service.staged,
    }
    if service.staged:
        text = f"{version.id} waits for approval (/skills approve {version.id})."
    elif version.removed:
        text = f"The skill {version.name} is removed; `hermes skills revert` restores it."
    else:
        text = f"The skill {version.name} is saved as version {version.id} in {version.place}."
    return ToolOutput.text(text, details=details)
