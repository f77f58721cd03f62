"""`hermes skills` and `hermes bundles`: list, view, enable, configure and group skills."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.codec.json import plain
from hermes.codec.values import JsonObject, replace
from hermes.commands.formatting import one_line, sanitize
from hermes.commands.skills import bundle_lines, skill_list_lines
from hermes.config.edit import set_from_text, write_settings
from hermes.core.errors import UsageError
from hermes.surfaces.cli.command_context import apply_style, config_of, home_of, mark, with_app
from hermes.surfaces.cli.commands.skill_versions import version_commands, with_skills
from hermes.surfaces.cli.commands.skills_hub import hub_commands
from hermes.surfaces.cli.output import CommandGroup, Output, fields, table

if TYPE_CHECKING:
    from hermes.journal.journal import SqliteJournal
    from hermes.skills.discovery import SkillEntry
    from hermes.skills.invocation import Bundles
    from hermes.skills.library import SkillLibrary

SOURCES = ("all", "hub", "builtin", "agent", "local")
_ORIGINS = {
    "hub": ("hub",),
    "builtin": ("bundled",),
    "agent": ("agent",),
    "local": ("user", "agent", "external", "project"),
}

command = CommandGroup(
    help="List, install, edit and revert skills.",
    commands={**hub_commands.commands, **version_commands.commands},
)


@command.json("List the skills of this home, by category.", with_skills)
@click.option(
    "--source", type=click.Choice(SOURCES), default="all", help="List only skills from this source."
)
def list_(skills: SkillLibrary, source: str) -> Output:
    skills.seed()
    scanned, off = skills.store.scan(), skills.here("cli").disabled
    origins = {entry.name: str(skills.store.provenance(entry)) for entry in scanned.entries}
    wanted = [e for e in scanned.entries if source == "all" or origins[e.name] in _ORIGINS[source]]
    lines = skill_list_lines(replace(scanned, entries=tuple(wanted)), off)
    data = [_facts(entry, origins[entry.name], off) for entry in wanted]
    return Output(data, lines or "No skill matches.")


def _facts(entry: SkillEntry, origin: str, off: tuple[str, ...]) -> JsonObject:
    return {
        "name": entry.name,
        "category": entry.category,
        "description": entry.skill.description,
        "version": entry.skill.version,
        "source": origin,
        "path": entry.folder,
        "enabled": entry.name not in off,
    }


@command.json("Show the text of a skill, or one of its files.", with_skills)
def view(skills: SkillLibrary, name: str, file: str = "") -> Output:
    from hermes.skills.invocation import linked_files, read_skill_file

    entry = skills.store.find(name)
    facts = _facts(entry, skills.store.provenance(entry), skills.here("cli").disabled)
    text, files = read_skill_file(entry, file or "SKILL.md"), linked_files(entry)
    paths = [
        apply_style(f"{entry.folder}/{each}", "dim") for names in files.values() for each in names
    ]
    return Output({**facts, "content": text, "files": files}, [sanitize(text), *paths])


@command.json(
    "Show how often skills were used, and with what result.",
    with_app.part(lambda app: (app.journal, app.skills(str(Path.cwd().resolve())))),
)
async def stats(services: tuple[SqliteJournal, SkillLibrary], name: str = "") -> Output:
    from hermes.skills.usage import skill_stats

    every = await skill_stats(*services)
    matches = [each for each in every if not name or each.name == name]
    data = [{**fields(each), "versions": plain(each.versions)} for each in matches]
    if not matches:
        return Output(data, "No skill was used yet.")
    rows = [
        (e.name, *map(str, (e.views, e.uses, e.changes, e.successes, e.failures)), e.last_at)
        for e in matches
    ]
    head = ("Skill", "Views", "Uses", "Changes", "Good", "Bad", "Last")
    return Output(data, table([head, *rows], (28, 6, 6, 8, 6, 6)))


@command.text("Enable skills.")
@click.option("--platform", default="", help="Apply only to this surface: cli, acp or api.")
def enable(ctx: click.Context, names: tuple[str, ...], platform: str) -> str:
    return _switch(ctx, names, platform, off=False)


@command.text("Disable skills: hide them from models and slash commands.")
@click.option("--platform", default="", help="Apply only to this surface: cli, acp or api.")
def disable(ctx: click.Context, names: tuple[str, ...], platform: str) -> str:
    with_skills(ctx, lambda skills: [skills.store.find(name) for name in names])
    return _switch(ctx, names, platform, off=True)


def _switch(ctx: click.Context, names: tuple[str, ...], platform: str, *, off: bool) -> str:
    settings = config_of(ctx).settings.skills
    current = settings.platform_disabled.get(platform, ()) if platform else settings.disabled
    left = [name for name in current if name not in names]
    path = ("skills", "platform_disabled", platform) if platform else ("skills", "disabled")
    write_settings(home_of(ctx), {path: [*left, *names] if off else left})
    where = f" on {platform}" if platform else ""
    return f"{mark('ok')} {', '.join(names)} {'off' if off else 'on'}{where}."


@command.json("List the settings of skills; with NAME KEY VALUE, change one.")
def config(ctx: click.Context, name: str = "", key: str = "", value: str | None = None) -> Output:
    current = config_of(ctx).settings.skills.config
    entries = with_skills(ctx, lambda skills: skills.store.scan().entries)
    rows = [
        {
            "skill": entry.name,
            "key": each.key,
            "description": each.description,
            "value": current.get(each.key, each.default),
        }
        for entry in entries
        for each in entry.skill.options
        if not name or entry.name == name
    ]
    if value is not None:
        if not any(row["key"] == key for row in rows):
            raise UsageError(f"{name} has no setting {key!r}; see `hermes skills config {name}`.")
        write_settings(home_of(ctx), {("skills", "config", key): value})
        return Output({"key": key, "value": value}, f"{mark('ok')} skills.config.{key} = {value}")
    lines = [
        f"{row['skill']}: {row['key']} = {row['value']}  "
        f"{apply_style(one_line(str(row['description'])), 'dim')}"
        for row in rows
    ]
    return Output(rows, lines or "No skill declares a setting.")


@command.text("Ask for the variables that a skill needs, with hidden input.")
def setup(ctx: click.Context, name: str) -> None:
    missing = with_skills(ctx, lambda skills: skills.readiness(skills.store.find(name)))
    for each in missing.variables:
        if each.help:
            print(apply_style(one_line(each.help), "dim"))
        prompt = one_line(each.prompt or each.name)
        value = click.prompt(prompt, hide_input=True, default="", show_default=False)
        if value:
            set_from_text(home_of(ctx), each.name, value)
            print(f"{mark('ok')} {each.name} is saved in .env.")
    rest = (*(f"file {path}" for path in missing.files), *missing.commands)
    if rest:
        print(f"{mark('warn')} Still missing: {', '.join(rest)}.")
    if not missing.variables and not rest:
        print(f"{mark('ok')} {name} has everything that it needs.")


@command.text("Use the skills of a project folder (.hermes, .agents, .claude/skills).")
@click.option("--no", "revoke", is_flag=True, help="Stop using the project's skills.")
def trust(ctx: click.Context, *, folder: str = ".", revoke: bool) -> str:
    from hermes.skills.session_index import PROJECT_FOLDERS

    path = Path(folder).resolve()
    current = config_of(ctx).settings.skills.trusted_projects
    left = [each for each in current if each != str(path)]
    write_settings(
        home_of(ctx), {("skills", "trusted_projects"): left if revoke else [*left, str(path)]}
    )
    there = [each for each in PROJECT_FOLDERS if (path / each).is_dir()]
    verb = "no longer used" if revoke else "used"
    return f"{mark('ok')} Skills of {path} are {verb} ({', '.join(there) or 'it has none yet'})."


bundles_command = CommandGroup(
    help="Group skills under one name; in a chat, /NAME loads all of them."
)
with_bundles = with_skills.part(lambda skills: skills.bundles)


@bundles_command.json("List all bundles.", with_bundles, name="list")
def list_bundles(bundles: Bundles) -> Output:
    found = bundles.all()
    nothing = "There is no bundle; `hermes bundles create NAME --skills A,B` adds one."
    return Output(found, bundle_lines(found) or nothing)


@bundles_command.json("Show the skills and the text of a bundle.", with_bundles, name="show")
def show_bundle(bundles: Bundles, name: str) -> Output:
    found = bundles.read(name)
    lines = [
        f"/{found.name}  {one_line(found.description)}",
        f"skills: {', '.join(found.skills)}",
        *([sanitize(found.instruction)] if found.instruction else ()),
    ]
    return Output(found, lines)


@bundles_command.text("Create or replace a bundle.", with_skills, name="create")
@click.option("--skills", required=True, metavar="A,B", help="Group these skills, in this order.")
@click.option("--description", default="", help="Describe the group in one line.")
@click.option("--instruction", default="", help="Send this text along with the skills.")
def create_bundle(
    library: SkillLibrary, name: str, skills: str, description: str, instruction: str
) -> str:
    wanted = tuple(each.strip() for each in skills.split(",") if each.strip())
    made = library.make_bundle(name, wanted, description, instruction)
    return f"{mark('ok')} {made}"


@bundles_command.text("Delete a bundle; its skills stay.", with_bundles, name="delete")
def delete_bundle(bundles: Bundles, name: str) -> str:
    bundles.delete(name)
    return f"{mark('ok')} /{name} is deleted."


@bundles_command.text("Check all bundles and count the valid ones.", with_bundles, name="reload")
def reload_bundles(bundles: Bundles) -> str:
    return f"{len(bundles.all())} of {len(bundles.names())} bundles are valid."
