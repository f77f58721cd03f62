"""`hermes skills` and `bundles`: list, view, enable, configure and group skills."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.app.app import App
from hermes.codec.json import plain
from hermes.codec.values import JsonObject, replace
from hermes.commands.formatting import one_line, sanitize
from hermes.commands.skills import skill_list_lines
from hermes.config.edit import set_from_text, write_settings
from hermes.core.errors import UsageError
from hermes.surfaces.cli.command_context import apply_style, config_of, home_of, mark
from hermes.surfaces.cli.commands.skill_versions import (
    approve,
    diff,
    history,
    list_modified,
    opt_in,
    opt_out,
    pending,
    rehearse,
    reject,
    reset,
    revert,
)
from hermes.surfaces.cli.commands.skills_hub import HUB_COMMANDS
from hermes.surfaces.cli.output import Output, fields, json_output, table, text_output, with_app

if TYPE_CHECKING:
    from hermes.skills.catalogue import SkillEntry

SOURCES = ("all", "hub", "builtin", "agent", "local")
_ORIGINS = {
    "hub": ("hub",),
    "builtin": ("bundled",),
    "agent": ("agent",),
    "local": ("user", "agent", "external", "project"),
}


@click.group(help="List, install, edit and revert skills.")
def command() -> None:
    pass


def here() -> str:
    return str(Path.cwd().resolve())


@command.command("list", help="List the skills of this home, by category.")
@click.option("--source", type=click.Choice(SOURCES), default="all", help="Only these.")
@json_output(with_app)
async def list_(app: App, source: str) -> Output:
    skills = app.skills(here())
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


@command.command(help="Show the text of a skill, or one of its files.")
@click.argument("name")
@click.argument("file", required=False, default="")
@json_output(with_app)
async def view(app: App, name: str, file: str) -> Output:
    skills = app.skills(here())
    entry = skills.store.find(name)
    facts = _facts(entry, skills.store.provenance(entry), skills.here("cli").disabled)
    text, files = skills.text(entry, file), skills.files(entry)
    paths = [
        apply_style(f"{entry.folder}/{each}", "dim") for names in files.values() for each in names
    ]
    return Output({**facts, "content": text, "files": files}, [sanitize(text), *paths])


@command.command(help="Show the use of skills: views, uses, and how the turns ended.")
@click.argument("name", required=False, default="")
@json_output(with_app)
async def stats(app: App, name: str) -> Output:
    from hermes.skills.stats import skill_stats

    every = await skill_stats(app.journal, app.skills(here()))
    found = [each for each in every if not name or each.name == name]
    data = [{**fields(each), "versions": plain(each.versions)} for each in found]
    if not found:
        return Output(data, "No skill has been used yet.")
    rows = [
        (e.name, *map(str, (e.views, e.uses, e.changes, e.successes, e.failures)), e.last_at)
        for e in found
    ]
    head = ("Skill", "Views", "Uses", "Changes", "Well", "Badly", "Last")
    return Output(data, table([head, *rows], (28, 6, 6, 8, 6, 6)))


@command.command(help="Switch skills on.")
@click.argument("names", nargs=-1, required=True)
@click.option("--platform", default="", help="Only on this surface.")
@text_output(with_app)
async def enable(app: App, names: tuple[str, ...], platform: str) -> str:
    return _switch(app, names, platform, off=False)


@command.command(help="Switch skills off: hidden from lists, tools and commands.")
@click.argument("names", nargs=-1, required=True)
@click.option("--platform", default="", help="Only on this surface.")
@text_output(with_app)
async def disable(app: App, names: tuple[str, ...], platform: str) -> str:
    return _switch(app, names, platform, off=True)


def _switch(app: App, names: tuple[str, ...], platform: str, *, off: bool) -> str:
    for name in names if off else ():
        app.skills(here()).store.find(name)
    settings = app.run.settings.skills
    held = settings.platform_disabled.get(platform, ()) if platform else settings.disabled
    left = [name for name in held if name not in names]
    path = ("skills", "platform_disabled", platform) if platform else ("skills", "disabled")
    write_settings(app.run.home, {path: [*left, *names] if off else left})
    where = f" on {platform}" if platform else ""
    return f"{mark('ok')} {', '.join(names)} {'off' if off else 'on'}{where}."


@command.command(help="List the settings that skills declare; with NAME KEY VALUE: set one.")
@click.argument("name", required=False, default="")
@click.argument("key", required=False, default="")
@click.argument("value", required=False, default=None)
@json_output(with_app)
async def config(app: App, name: str, key: str, value: str | None) -> Output:
    held = app.run.settings.skills.config
    rows = [
        {
            "skill": entry.name,
            "key": each.key,
            "description": each.description,
            "value": held.get(each.key, each.default),
        }
        for entry in app.skills(here()).store.scan().entries
        for each in entry.skill.options
        if not name or entry.name == name
    ]
    if value is not None:
        if not any(row["key"] == key for row in rows):
            raise UsageError(f"{name} declares no setting {key!r}.")
        write_settings(app.run.home, {("skills", "config", key): value})
        return Output({"key": key, "value": value}, f"{mark('ok')} skills.config.{key} = {value}")
    lines = [
        f"{row['skill']}: {row['key']} = {row['value']}  "
        f"{apply_style(one_line(str(row['description'])), 'dim')}"
        for row in rows
    ]
    return Output(rows, lines or "No skill declares a setting.")


@command.command(help="Ask for the variables that a skill needs; input is hidden.")
@click.argument("name")
@click.pass_context
def setup(ctx: click.Context, name: str) -> None:
    async def work(app: App) -> tuple[tuple[tuple[str, str, str], ...], str]:
        skills = app.skills(here())
        entry = skills.store.find(name)
        missing = skills.readiness(entry)
        wanted = tuple((v.name, v.prompt or v.name, v.help) for v in missing.variables)
        rest = (*(f"file {path}" for path in missing.files), *missing.commands)
        return wanted, ", ".join(rest)

    wanted, rest = with_app(ctx, work)
    for variable, prompt, words in wanted:
        if words:
            print(apply_style(one_line(words), "dim"))
        value = click.prompt(one_line(prompt), hide_input=True, default="", show_default=False)
        if value:
            set_from_text(home_of(ctx), variable, value)
            print(f"{mark('ok')} {variable} is in .env.")
    if rest:
        print(f"{mark('warn')} still missing: {rest}")
    if not wanted and not rest:
        print(f"{mark('ok')} {name} needs nothing more.")


@command.command(help="Read the skills of this project (.hermes, .agents, .claude/skills).")
@click.argument("folder", required=False, default=".")
@click.option("--no", "revoke", is_flag=True, help="Stop reading them.")
@text_output()
def trust(ctx: click.Context, folder: str, revoke: bool) -> str:
    from hermes.skills.session_index import PROJECT_FOLDERS

    path = Path(folder).resolve()
    held = config_of(ctx).settings.skills.trusted_projects
    left = [each for each in held if each != str(path)]
    write_settings(
        home_of(ctx), {("skills", "trusted_projects"): left if revoke else [*left, str(path)]}
    )
    there = [each for each in PROJECT_FOLDERS if (path / each).is_dir()]
    verb = "no longer read" if revoke else "read"
    return f"{mark('ok')} Skills of {path} are {verb} ({', '.join(there) or 'it has none yet'})."


for each in (
    *HUB_COMMANDS,
    reset,
    list_modified,
    opt_out,
    opt_in,
    history,
    diff,
    revert,
    pending,
    approve,
    reject,
    rehearse,
):
    command.add_command(each)


@click.group(help="Group skills under one name; /NAME in a chat loads all of them.")
def bundles_command() -> None:
    pass


@bundles_command.command("list", help="List all bundles.")
@json_output(with_app)
async def list_bundles(app: App) -> Output:
    found = app.skills().bundles.all()
    lines = [
        f"/{each.name}  {one_line(each.description)} ({', '.join(each.skills)})" for each in found
    ]
    return Output(found, lines or "No bundles; `hermes bundles create NAME --skills A,B` adds one.")


@bundles_command.command("show", help="Show what a bundle contains.")
@click.argument("name")
@json_output(with_app)
async def show_bundle(app: App, name: str) -> Output:
    found = app.skills().bundles.read(name)
    lines = [
        f"/{found.name}  {one_line(found.description)}",
        f"skills: {', '.join(found.skills)}",
        *([sanitize(found.instruction)] if found.instruction else ()),
    ]
    return Output(found, lines)


@bundles_command.command("create", help="Create or replace a bundle.")
@click.argument("name")
@click.option("--skills", required=True, metavar="A,B", help="The skills, in order.")
@click.option("--description", default="", help="What it is for.")
@click.option("--instruction", default="", help="Text to send along with the skills.")
@text_output(with_app)
async def create_bundle(
    app: App, name: str, skills: str, description: str, instruction: str
) -> str:
    wanted = tuple(each.strip() for each in skills.split(",") if each.strip())
    made = app.skills().make_bundle(name, wanted, description, instruction)
    return f"{mark('ok')} {made}"


@bundles_command.command("delete", help="Delete a bundle; its skills stay.")
@click.argument("name")
@text_output(with_app)
async def delete_bundle(app: App, name: str) -> str:
    app.skills().bundles.delete(name)
    return f"{mark('ok')} /{name} is deleted."


@bundles_command.command("reload", help="Read all bundles again and report those that are invalid.")
@text_output(with_app)
async def reload_bundles(app: App) -> str:
    bundles = app.skills().bundles
    return f"{len(bundles.all())} of {len(bundles.names())} bundles can be used."
