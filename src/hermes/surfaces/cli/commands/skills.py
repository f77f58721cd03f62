"""`hermes skills`: see what there is, switch it, set it up, look at its past; more in its parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.app.build import App
from hermes.codec.json import plain
from hermes.codec.values import JsonObject, replace
from hermes.commands.skill_lines import shelf_lines
from hermes.commands.visible import clean, one_line
from hermes.config.edit import set_from_text, write_settings
from hermes.core.errors import UsageError
from hermes.surfaces.cli.commands import (
    skills_hub,
    skills_rehearse,
    skills_shipped,
    skills_versions,
)
from hermes.surfaces.cli.output import (
    as_json_option,
    columns,
    print_json,
    print_table,
    with_app,
)
from hermes.surfaces.cli.place import config_of, home_of
from hermes.surfaces.cli.style import mark, styled

if TYPE_CHECKING:
    from hermes.skills.scan import Entry, Scanned

SOURCES = ("all", "hub", "builtin", "agent", "local")
_ORIGINS = {
    "hub": ("hub",),
    "builtin": ("bundled",),
    "agent": ("agent",),
    "local": ("user", "agent", "external", "project"),
}


@click.group(help="See, install, write and take back skills.")
def command() -> None:
    pass


def here() -> str:
    return str(Path.cwd().resolve())


@command.command("list", help="The skills of this home, by category.")
@click.option("--source", type=click.Choice(SOURCES), default="all", help="Only these.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, source: str, as_json: bool) -> None:
    async def work(app: App) -> tuple[Scanned, dict[str, str], tuple[str, ...]]:
        skills = app.skills(here())
        skills.seed()
        scanned = skills.shelf.look()
        origins = {entry.name: str(skills.shelf.provenance(entry)) for entry in scanned.entries}
        return scanned, origins, skills.here("cli").disabled

    scanned, origins, off = with_app(ctx, work)
    wanted = [e for e in scanned.entries if source == "all" or origins[e.name] in _ORIGINS[source]]
    if as_json:
        print_json([_facts(entry, origins[entry.name], off) for entry in wanted])
        return
    lines = shelf_lines(replace(scanned, entries=tuple(wanted)), off)
    print("\n".join(lines) or "No skill is like that.")


def _facts(entry: Entry, origin: str, off: tuple[str, ...]) -> JsonObject:
    return {
        "name": entry.name,
        "category": entry.category,
        "description": entry.skill.description,
        "version": entry.skill.version,
        "source": origin,
        "path": entry.folder,
        "enabled": entry.name not in off,
    }


@command.command(help="The text of a skill, or of one of its files.")
@click.argument("name")
@click.argument("file", required=False, default="")
@as_json_option
@click.pass_context
def view(ctx: click.Context, name: str, file: str, as_json: bool) -> None:
    async def work(app: App) -> JsonObject:
        skills = app.skills(here())
        entry = skills.shelf.find(name)
        facts = _facts(entry, skills.shelf.provenance(entry), skills.here("cli").disabled)
        return {**facts, "content": skills.text(entry, file), "files": skills.files(entry)}

    found = with_app(ctx, work)
    if as_json:
        print_json(found)
        return
    print(clean(found["content"]))
    for names in found["files"].values():
        for each in names:
            print(styled(f"{found['path']}/{each}", "dim"))


@command.command(help="What is known of a skill's use: views, uses, how the turns ended.")
@click.argument("name", required=False, default="")
@as_json_option
@click.pass_context
def stats(ctx: click.Context, name: str, as_json: bool) -> None:
    from hermes.skills.stats import SkillStats, skill_stats

    async def work(app: App) -> tuple[SkillStats, ...]:
        return await skill_stats(app.journal, app.skills(here()))

    found = [each for each in with_app(ctx, work) if not name or each.name == name]
    if as_json:
        print_json([{**columns(each), "versions": plain(each.versions)} for each in found])
        return
    if not found:
        print("No skill has been used yet.")
        return
    rows = [
        (e.name, *map(str, (e.views, e.uses, e.changes, e.successes, e.failures)), e.last_at)
        for e in found
    ]
    head = ("Skill", "Views", "Uses", "Changes", "Well", "Badly", "Last")
    print_table([head, *rows], (28, 6, 6, 8, 6, 6))


@command.command(help="Switch a skill on.")
@click.argument("names", nargs=-1, required=True)
@click.option("--platform", default="", help="Only on this surface.")
@click.pass_context
def enable(ctx: click.Context, names: tuple[str, ...], platform: str) -> None:
    _switch(ctx, names, platform, off=False)


@command.command(help="Switch a skill off: no list, no tool and no command knows it then.")
@click.argument("names", nargs=-1, required=True)
@click.option("--platform", default="", help="Only on this surface.")
@click.pass_context
def disable(ctx: click.Context, names: tuple[str, ...], platform: str) -> None:
    _switch(ctx, names, platform, off=True)


def _switch(ctx: click.Context, names: tuple[str, ...], platform: str, *, off: bool) -> None:
    async def work(app: App) -> None:
        for name in names if off else ():
            app.skills(here()).shelf.find(name)

    with_app(ctx, work)
    settings = config_of(ctx).settings.skills
    held = settings.platform_disabled.get(platform, ()) if platform else settings.disabled
    left = [name for name in held if name not in names]
    path = ("skills", "platform_disabled", platform) if platform else ("skills", "disabled")
    write_settings(home_of(ctx), {path: [*left, *names] if off else left})
    where = f" on {platform}" if platform else ""
    print(f"{mark('ok')} {', '.join(names)} {'off' if off else 'on'}{where}.")


@command.command(help="The settings that skills declare; with NAME KEY VALUE: set one.")
@click.argument("name", required=False, default="")
@click.argument("key", required=False, default="")
@click.argument("value", required=False, default=None)
@as_json_option
@click.pass_context
def config(ctx: click.Context, name: str, key: str, value: str | None, as_json: bool) -> None:
    async def work(app: App) -> list[tuple[str, str, str, object]]:
        entries = app.skills(here()).shelf.look().entries
        held = app.settings.skills.config
        return [
            (entry.name, each.key, each.description, held.get(each.key, each.default))
            for entry in entries
            for each in entry.skill.options
            if not name or entry.name == name
        ]

    rows = with_app(ctx, work)
    if value is not None:
        if not any(row[1] == key for row in rows):
            raise UsageError(f"{name} declares no setting {key!r}.")
        write_settings(home_of(ctx), {("skills", "config", key): value})
        print(f"{mark('ok')} skills.config.{key} = {value}")
    elif as_json:
        names = ("skill", "key", "description", "value")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        for skill, each, words, held in rows:
            print(f"{skill}: {each} = {held}  {styled(one_line(words), 'dim')}")
        if not rows:
            print("No skill declares a setting.")


@command.command(help="Give what a skill needs: asks for its variables without showing them.")
@click.argument("name")
@click.pass_context
def setup(ctx: click.Context, name: str) -> None:
    async def work(app: App) -> tuple[tuple[tuple[str, str, str], ...], str]:
        skills = app.skills(here())
        entry = skills.shelf.find(name)
        missing = skills.readiness(entry)
        wanted = tuple((v.name, v.prompt or v.name, v.help) for v in missing.variables)
        rest = (*(f"file {path}" for path in missing.files), *missing.commands)
        return wanted, ", ".join(rest)

    wanted, rest = with_app(ctx, work)
    for variable, prompt, words in wanted:
        if words:
            print(styled(one_line(words), "dim"))
        value = click.prompt(one_line(prompt), hide_input=True, default="", show_default=False)
        if value:
            set_from_text(home_of(ctx), variable, value)
            print(f"{mark('ok')} {variable} is in .env.")
    if rest:
        print(f"{mark('warn')} still missing: {rest}")
    if not wanted and not rest:
        print(f"{mark('ok')} {name} needs nothing more.")


@command.command(
    help="Read the skills that this project brings (.hermes, .agents, .claude/skills)."
)
@click.argument("folder", required=False, default=".")
@click.option("--no", "revoke", is_flag=True, help="No longer.")
@click.pass_context
def trust(ctx: click.Context, folder: str, revoke: bool) -> None:
    from hermes.skills.session_index import PROJECT_FOLDERS

    path = Path(folder).resolve()
    held = config_of(ctx).settings.skills.trusted_projects
    left = [each for each in held if each != str(path)]
    write_settings(
        home_of(ctx), {("skills", "trusted_projects"): left if revoke else [*left, str(path)]}
    )
    there = [each for each in PROJECT_FOLDERS if (path / each).is_dir()]
    verb = "no longer read" if revoke else "read"
    print(f"{mark('ok')} Skills of {path} are {verb} ({', '.join(there) or 'it has none yet'}).")


for each in (
    *skills_hub.COMMANDS,
    *skills_shipped.COMMANDS,
    *skills_versions.COMMANDS,
    skills_rehearse.rehearse,
):
    command.add_command(each)
