"""`hermes profile`: separate settings, keys, memory and sessions under one install."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from hermes.config.environment import process_environment
from hermes.config.home import root_home
from hermes.core.errors import ConfigError, UsageError
from hermes.homes.profiles import DEFAULT, Aliases, ProfileInfo, Profiles
from hermes.surfaces.cli.command_context import apply_style, home_of, mark
from hermes.surfaces.cli.output import CommandGroup, Output, confirm_by_name, yes_option

command = CommandGroup(
    help="Manage profiles: separate settings, keys, memory and sessions under one install."
)


def profiles_of(ctx: click.Context) -> Profiles:
    from hermes.surfaces.cli.root import COMMANDS

    return Profiles(root_home(home_of(ctx)), COMMANDS)


@command.json("List all profiles, with a mark at the current one.")
def list_(ctx: click.Context) -> Output:
    profiles = profiles_of(ctx)
    found = [profiles.info(name) for name in profiles.names()]
    lines = []
    for info in found:
        line = f"{'*' if info.active else ' '} {info.name:<20} {_model(info)}"
        line += f"  {info.description}" if info.description else ""
        lines.append(apply_style(line, "bold") if info.active else line)
    if len(found) == 1:
        lines.append(apply_style("`hermes profile create NAME` adds another.", "dim"))
    return Output(found, lines)


@command.json("Show a profile (default: the current one).")
def show(ctx: click.Context, name: str = "") -> Output:
    info = profiles_of(ctx).info(name or home_of(ctx).profile)
    facts = {
        "about": info.description,
        "home": info.home,
        "model": _model(info),
        "sessions": "yes" if info.sessions else "none yet",
        "skills": info.skills,
        "command": ", ".join(_aliases().of(info.name)),
        "open in": f"process {', '.join(info.used_by)}" if info.used_by else "",
    }
    title = f"{apply_style(info.name, 'bold')}{'  (in use)' if info.active else ''}"
    lines = (f"  {name:<9} {value}" for name, value in facts.items() if value != "")
    return Output(info, (title, *lines))


def _model(info: ProfileInfo) -> str:
    if not info.model:
        return "no model chosen"
    return f"{info.model} ({info.provider})" if info.provider else info.model


@command.text("Create an empty profile, or a copy of another one.")
@click.option("--clone", is_flag=True, help="Copy settings, keys, memory and skills.")
@click.option("--clone-all", is_flag=True, help="Copy everything except sessions and logins.")
@click.option("--clone-from", metavar="NAME", help="Copy this profile instead of the current one.")
@click.option("--no-alias", is_flag=True, help="Do not create a command in ~/.local/bin.")
@click.option("--no-skills", is_flag=True, help="Create the profile without any skills.")
@click.option("--description", default="", metavar="TEXT", help="Describe the profile in one line.")
def create(
    ctx: click.Context,
    name: str,
    clone: bool,
    clone_all: bool,
    clone_from: str | None,
    no_alias: bool,
    no_skills: bool,
    description: str,
) -> Iterator[str]:
    like = clone_from or (home_of(ctx).profile if clone or clone_all else "")
    home = profiles_of(ctx).create(
        name, like=like, everything=clone_all, skills=not no_skills, description=description
    )
    yield f"{mark('ok')} {name} is at {home.root}" + (f", copied from {like}." if like else ".")
    yield f"  hermes -p {name}           uses it once"
    yield f"  hermes profile use {name}  makes it the default"
    if no_alias:
        return
    aliases = _aliases()
    try:
        script = aliases.add(name, root_home(home_of(ctx)).root, name)
    except UsageError as error:
        # The profile exists even if its name is taken for a command.
        other = str(error).rpartition("; ")[0]
        yield f"  {other}: `hermes profile alias {name} --name …` creates a command for it."
    except ConfigError as error:
        yield f"  No command was created: {error}"
    else:
        if aliases.is_in_path:
            yield f"  {script.name:<20} starts it"
        else:
            yield f"  {script} starts it once {aliases.folder} is in your PATH."


@command.text("Set the description of a profile; without TEXT, remove it.")
def describe(ctx: click.Context, name: str, text: str = "") -> str:
    profiles_of(ctx).describe(name, text)
    return f"{mark('ok')} {name}: {text or 'description removed'}"


@command.text("Make a profile the default one; `default` is the home itself.")
def use(ctx: click.Context, name: str) -> str:
    home = profiles_of(ctx).use(name)
    return f"{mark('ok')} `hermes` now uses {home.root}."


@command.text("Create a command in ~/.local/bin that starts a profile.")
@click.option("--name", default="", help="Name the command (default: the profile name).")
@click.option("--remove", is_flag=True, help="Remove the command.")
def alias(ctx: click.Context, profile: str, name: str, remove: bool) -> Iterator[str]:
    profiles_of(ctx).info(profile)
    aliases = _aliases()
    if remove:
        yield f"{mark('ok')} {', '.join(aliases.remove(profile, name))} is removed."
        return
    script = aliases.add(profile, root_home(home_of(ctx)).root, name or profile)
    yield f"{mark('ok')} `{script.name}` starts Hermes in {profile} ({script})."
    if not aliases.is_in_path:
        yield f"{aliases.folder} is not in your PATH; add it."


def _aliases() -> Aliases:
    program = Path(sys.argv[0]).absolute()
    return Aliases(Path.home(), process_environment().get("PATH", ""), str(program))


@command.text("Rename a profile.")
def rename(ctx: click.Context, old: str, new: str) -> Iterator[str]:
    home = profiles_of(ctx).rename(old, new)
    moved = _aliases().move(old, new, root_home(home_of(ctx)).root)
    yield f"{mark('ok')} {old} is now {new}, at {home.root}."
    if moved:
        yield f"  command: {', '.join(moved)}"


@command.text("Delete a profile with its settings, memory and sessions, permanently.")
@yes_option
def delete(ctx: click.Context, name: str, yes: bool) -> str:
    profiles = profiles_of(ctx)
    info = profiles.info(name)
    warning = f"This deletes {info.home} with everything in it."
    confirm_by_name(warning, name, yes=yes or name == DEFAULT)
    profiles.delete(name)
    aliases = _aliases()
    if aliases.of(name):
        aliases.remove(name)
    return f"{mark('ok')} {name} is deleted."


@command.text("Export a profile to a file, without keys and logins.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the export here."
)
def export(ctx: click.Context, name: str, output: Path | None) -> str:
    target = output or Path(f"hermes-profile-{name}.zip")
    count = profiles_of(ctx).export(name, target.absolute())
    return f"{mark('ok')} {count} files are in {target}, without keys and logins."


@command.text("Create a profile from an exported file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--name", default="", help="Name the profile (default: from the file name).")
def import_(ctx: click.Context, file: Path, name: str) -> str:
    wanted = name or file.stem.removeprefix("hermes-profile-")
    if not wanted:
        raise UsageError("The file name does not name a profile; give --name.")
    home = profiles_of(ctx).import_archive(file, wanted)
    advice = f"`hermes -p {wanted} auth add …` adds keys"
    return f"{mark('ok')} {wanted} is at {home.root}; {advice}."
