"""Renders a loaded skill for the model: text, folder, files, missing requirements."""

from __future__ import annotations

import asyncio
from pathlib import PurePosixPath

from hermes.codec.json import plain
from hermes.codec.values import JsonObject, replace
from hermes.core.effects import RunCommand
from hermes.core.errors import ToolError
from hermes.core.secret_store import Captured, SecretRequest
from hermes.core.tools import ToolContext, ToolOutput
from hermes.skills.desk import SkillService
from hermes.skills.frontmatter import split_frontmatter
from hermes.skills.loading import RunInline, linked_files, read_skill_file, render, settings_lines
from hermes.skills.readiness import Readiness
from hermes.skills.scan import SkillEntry

DONE = "I have set it"
SKIP = "Continue without it"
ALLOW = "Allow"
DENY = "Deny"
MOST_INLINE = 4_000
# Authors that the person did not choose.
STRANGERS = ("agent", "hub", "project")


async def skill_output(ctx: ToolContext, desk: SkillService, entry: SkillEntry) -> ToolOutput:
    ready = await asyncio.to_thread(desk.readiness, entry)
    if ready.status == "unsupported":
        raise ToolError(
            f"The skill {entry.name} does not support this system: readiness unsupported."
        )
    skipped = False
    if ready.variables and desk.here.platform == "cli":
        ready, skipped = await _set_up(ctx, desk, entry, ready)
    hidden = await _open_environment(ctx, desk, entry)
    version = await asyncio.to_thread(desk.note_view, entry)
    files = await asyncio.to_thread(linked_files, entry)
    body = split_frontmatter(await asyncio.to_thread(read_skill_file, entry))[1].strip()
    text = await render(body, entry, desk.loading, _inline(ctx, desk))
    notes = [f"[Skill directory: {entry.folder}]"]
    if files:
        names = ", ".join(name for names in files.values() for name in names)
        notes.append(f"[Files, for skill_view with file_path: {names}]")
    if lines := settings_lines(entry.skill, desk.loading.settings):
        notes.append(f"[Settings: {'; '.join(lines)}]")
    notes += [f"[{note}]" for note in (_advice(entry, ready), hidden) if note]
    output = ToolOutput.text(
        "\n".join((text, "", *notes)),
        details=_details(entry, ready, files, version, skipped=skipped),
    )
    return _mark_origin(desk, entry, output)


def _inline(ctx: ToolContext, desk: SkillService) -> RunInline | None:
    """Runs inline commands through the policy in the session's workspace."""
    if not desk.inline_seconds:
        return None

    async def run(script: str) -> str:
        effect = RunCommand(script=script, cwd=ctx.workspace.cwd)
        try:
            done = await ctx.workspace.run(
                effect, timeout=desk.inline_seconds, stop=ctx.stop, max_bytes=MOST_INLINE
            )
        except ToolError as error:
            return f"[!`{script}` was not run: {error}]"
        if done.timed_out or done.exit_code:
            return f"[!`{script}` failed: {done.output.strip()[:200]}]"
        return done.output.rstrip("\n")

    return run


def file_output(desk: SkillService, entry: SkillEntry, path: str) -> ToolOutput:
    text = read_skill_file(entry, path)
    kind = PurePosixPath(path).suffix
    details: JsonObject = {"name": entry.name, "file": path, "file_type": kind}
    return _mark_origin(desk, entry, ToolOutput.text(text, details=details))


def _mark_origin(desk: SkillService, entry: SkillEntry, output: ToolOutput) -> ToolOutput:
    """Marks text of an untrusted author with its origin."""
    return replace(output, origin=f"skill:{entry.name}") if desk.foreign(entry.name) else output


async def _set_up(
    ctx: ToolContext, desk: SkillService, entry: SkillEntry, ready: Readiness
) -> tuple[Readiness, bool]:
    """Asks for missing variables; secrets never enter the transcript."""
    captured = await _capture_all(desk, ready)
    if captured != "unavailable":
        return await asyncio.to_thread(desk.readiness, entry), captured == "skipped"
    names = ", ".join(each.name for each in ready.variables)
    words = next((each.prompt or each.help for each in ready.variables), "")
    answer = await ctx.ask(
        f"The skill {entry.name} needs {names}.{' ' + words if words else ''} "
        f"Run `hermes skills setup {entry.name}` in another terminal to set it.",
        (DONE, SKIP),
    )
    if answer != DONE:
        return ready, True
    return await asyncio.to_thread(desk.readiness, entry), False


async def _capture_all(desk: SkillService, ready: Readiness) -> Captured:
    """Asks for each variable until one is declined."""
    captured: Captured = "unavailable"
    for each in ready.variables:
        captured = await desk.capture(
            SecretRequest(name=each.name, prompt=each.prompt, help=each.help)
        )
        if captured != "stored":
            break
    return captured


async def _open_environment(ctx: ToolContext, desk: SkillService, entry: SkillEntry) -> str:
    """Exposes the declared variables to commands: directly for a skill that the person chose,
    after a question for others. Returns a note about hidden ones."""
    names = [each.name for each in entry.skill.variables]
    if not names:
        return ""
    if await asyncio.to_thread(desk.provenance, entry) in STRANGERS:
        question = (
            f"May commands in this session use {', '.join(names)} for the skill {entry.name}?"
        )
        if await ctx.ask(question, (ALLOW, DENY)) != ALLOW:
            return f"Commands do not see {', '.join(names)}: the user denied it."
    seen = desk.allow_environment(names)
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
