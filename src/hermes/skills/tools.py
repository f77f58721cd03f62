"""The skill tools: list, load, write and fix skills."""

from __future__ import annotations

import asyncio
from pathlib import PurePosixPath
from typing import Annotated, Literal

from hermes.codec.json import plain
from hermes.codec.values import JsonObject, replace
from hermes.core.effects import ChangeSkill, Effect, RunCommand
from hermes.core.errors import HermesError, NotFound, ToolError
from hermes.core.secrets import Captured, SecretRequest, SecretStore
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.skills.discovery import SkillEntry
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
LINE = 120
# Authors that the person did not choose.
STRANGERS = ("agent", "hub", "project")


async def _load_skill(ctx: ToolContext, service: SkillService, entry: SkillEntry) -> ToolOutput:
    ready = await asyncio.to_thread(service.readiness, entry)
    if ready.status == "unsupported":
        raise ToolError(f"The skill {entry.name} does not support this system.")
    skipped = False
    if ready.variables and service.here.platform == "cli":
        skipped = not await _set_up(ctx, entry, ready)
        ready = await asyncio.to_thread(service.readiness, entry)
    hidden = await _open_environment(ctx, service, entry)
    version = await asyncio.to_thread(service.count_view, entry)
    files = await asyncio.to_thread(linked_files, entry)
    body = split_frontmatter(await asyncio.to_thread(read_skill_file, entry))[1].strip()
    text = await render(body, entry, service.loading, _inline(ctx, service))
    notes = [f"Skill directory: {entry.folder}"]
    if files:
        names = ", ".join(name for names in files.values() for name in names)
        notes.append(f"Files, for skill_view with file_path: {names}")
    if lines := settings_lines(entry.skill, service.loading.settings):
        notes.append(f"Settings: {'; '.join(lines)}")
    if ready.variables:
        notes.append(f"{ready.note} Set it with `hermes skills setup {entry.name}`.")
    else:
        notes.append(ready.note)
    notes.append(hidden)
    skill = entry.skill
    details: JsonObject = {
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
    whole = "\n".join((text, "", *(f"[{note}]" for note in notes if note)))
    return ToolOutput.text(whole, details=details)


def _inline(ctx: ToolContext, service: SkillService) -> RunInline | None:
    """Run inline commands through the policy in the session's workspace."""
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


async def _set_up(ctx: ToolContext, entry: SkillEntry, ready: Readiness) -> bool:
    """Ask for missing variables until one is declined; secrets never enter the transcript. Return
    False when the person declines."""
    secrets = ctx.service(SecretStore)
    captured: Captured = "unavailable"
    for each in ready.variables:
        need = SecretRequest(name=each.name, prompt=each.prompt, help=each.help)
        captured = await secrets.capture(need)
        if captured != "stored":
            break
    if captured != "unavailable":
        return captured == "stored"
    names = ", ".join(each.name for each in ready.variables)
    hint = ready.variables[0].prompt or ready.variables[0].help
    answer = await ctx.ask(
        f"The skill {entry.name} needs {names}.{' ' + hint if hint else ''} "
        f"Run `hermes skills setup {entry.name}` in another terminal to set it.",
        (DONE, SKIP),
    )
    return answer == DONE


async def _open_environment(ctx: ToolContext, service: SkillService, entry: SkillEntry) -> str:
    """Expose the declared variables to commands: directly for a skill that the person chose, after
    a question for others. Return a note about hidden ones."""
    names = [each.name for each in entry.skill.variables]
    if not names:
        return ""
    if await asyncio.to_thread(service.store.provenance, entry) in STRANGERS:
        question = (
            f"May commands in this session use {', '.join(names)} for the skill {entry.name}?"
        )
        if await ctx.ask(question, (ALLOW, DENY)) != ALLOW:
            return f"Commands do not see {', '.join(names)}: the user denied it."
    seen = ctx.service(SecretStore).grant(names)
    unseen = [name for name in names if name not in seen]
    return f"Commands do not see {', '.join(unseen)}." if unseen else ""


Action = Literal["create", "patch", "edit", "delete", "write_file", "remove_file"]


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
    service = ctx.service(SkillService)
    shown = await asyncio.to_thread(service.available_skills)
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
        text = f"There is no skill in {category!r}." if category else "There are no skills."
        return ToolOutput.text(f"{text} Categories: {', '.join(categories)}", details=details)
    categories_about = (await asyncio.to_thread(service.store.scan)).categories
    lines: list[str] = []
    for name in dict.fromkeys(entry.category for entry in entries):
        lines.append(f"{name or 'general'}: {categories_about.get(name, '')}".rstrip())
        for entry in entries:
            if entry.category == name:
                about = entry.skill.description
                short = about if len(about) <= LINE else about[: LINE - 1] + "…"
                lines.append(f"- {entry.name}: {short}")
    return ToolOutput.text("\n".join((*lines, "skill_view(name) loads one.")), details=details)


@tool(
    repeat="safe",
    toolset="skills",
    kind="read",
    display=ToolDisplay(icon="📚", verb="skill", detail="{name} {file_path}"),
)
async def skill_view(
    ctx: ToolContext,
    name: str,
    file_path: Annotated[str, "A file of the skill to load"] = "",
) -> ToolOutput:
    """Load a skill: how to do a kind of task here. Follow it."""
    service = ctx.service(SkillService)
    try:
        entry = await asyncio.to_thread(service.find, name)
        if file_path and file_path != MAIN:
            text = await asyncio.to_thread(read_skill_file, entry, file_path)
            kind = PurePosixPath(file_path).suffix
            details: JsonObject = {"name": entry.name, "file": file_path, "file_type": kind}
            output = ToolOutput.text(text, details=details)
        else:
            output = await _load_skill(ctx, service, entry)
        if service.is_untrusted(entry.name):
            return replace(output, origin=f"skill:{entry.name}")
        origins = await asyncio.to_thread(service.store.origins, entry)
        return replace(output, origin=", ".join(origins)) if origins else output
    except NotFound as error:
        near = f" Near: {', '.join(error.near)}." if error.near else " skills_list shows all."
        raise ToolError(f"{error}{near}") from error
    except HermesError as error:
        raise ToolError(str(error)) from error


def _changes(_context: PathContext, arguments: JsonObject) -> tuple[Effect, ...]:
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
    """Save how to do a kind of task, or fix a skill. Prefer patch. Name the kind of task, not the
    case. Write steps, pitfalls, checks; no temporary failures."""
    service = ctx.service(SkillService)
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
        version = await asyncio.to_thread(service.change, ctx.call_id, arguments)
    except NotFound as error:
        raise ToolError(f"{error} skills_list shows all.") from error
    except HermesError as error:
        raise ToolError(str(error)) from error
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


async def _confirm_change(ctx: ToolContext, service: SkillService, name: str) -> None:
    """Ask before changing a skill that is not the agent's own."""
    entry = await asyncio.to_thread(service.find, name)
    origin = await asyncio.to_thread(service.store.provenance, entry)
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
