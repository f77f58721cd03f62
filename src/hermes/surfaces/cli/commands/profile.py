"""`hermes profile`: several homes in one, each with settings, memory and sessions of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hermes.config.home import root_home
from hermes.config.secrets import environment
from hermes.core.errors import ConfigError, UsageError
from hermes.homes.aliases import Aliases
from hermes.homes.profiles import DEFAULT, ProfileInfo, Profiles
from hermes.surfaces.cli.asking import confirm_by_name
from hermes.surfaces.cli.output import as_json_option, columns, print_json
from hermes.surfaces.cli.place import home_of
from hermes.surfaces.cli.style import mark, styled


@click.group(help="Homes inside this home, each with settings, memory and sessions of its own.")
def command() -> None:
    pass


def profiles_of(ctx: click.Context) -> Profiles:
    from hermes.surfaces.cli.root import COMMANDS

    return Profiles(root_home(home_of(ctx)), COMMANDS)


@command.command("list", help="All profiles; the one in use is marked.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    profiles = profiles_of(ctx)
    found = [profiles.info(name) for name in profiles.names()]
    if as_json:
        print_json(columns(found))
        return
    for info in found:
        line = f"{'*' if info.active else ' '} {info.name:<20} {_model(info)}"
        line += f"  {info.description}" if info.description else ""
        print(styled(line, "bold") if info.active else line)
    if len(found) == 1:
        print(styled("`hermes profile create NAME` makes another.", "dim"))


@command.command(help="One profile; without a name the one in use.")
@click.argument("name", default="")
@as_json_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    info = profiles_of(ctx).info(name or home_of(ctx).profile)
    if as_json:
        print_json(columns(info))
        return
    print(f"{styled(info.name, 'bold')}{'  (in use)' if info.active else ''}")
    if info.description:
        print(f"  for       {info.description}")
    print(f"  home      {info.home}")
    print(f"  model     {_model(info)}")
    print(f"  sessions  {'yes' if info.sessions else 'none yet'}")
    print(f"  skills    {info.skills}")
    if names := _aliases().of(info.name):
        print(f"  command   {', '.join(names)}")
    if info.used_by:
        print(f"  open in   process {', '.join(info.used_by)}")


def _model(info: ProfileInfo) -> str:
    if not info.model:
        return "no model chosen"
    return f"{info.model} ({info.provider})" if info.provider else info.model


@command.command(help="Make a profile: empty, or like another one.")
@click.argument("name")
@click.option("--clone", is_flag=True, help="With settings, keys, memory and skills of this one.")
@click.option("--clone-all", is_flag=True, help="With all of it but its past and its logins.")
@click.option("--clone-from", metavar="NAME", help="Clone this profile instead of the one in use.")
@click.option("--no-alias", is_flag=True, help="No command of its own in ~/.local/bin.")
@click.option("--no-skills", is_flag=True, help="No skills, also none of those that come along.")
@click.option("--description", default="", metavar="TEXT", help="What it is for, in a line.")
@click.pass_context
def create(
    ctx: click.Context,
    name: str,
    clone: bool,
    clone_all: bool,
    clone_from: str | None,
    no_alias: bool,
    no_skills: bool,
    description: str,
) -> None:
    like = clone_from or (home_of(ctx).profile if clone or clone_all else "")
    home = profiles_of(ctx).create(
        name, like=like, everything=clone_all, skills=not no_skills, description=description
    )
    print(f"{mark('ok')} {name} is at {home.root}" + (f", like {like}." if like else "."))
    print(f"  hermes -p {name}          talk there\n  hermes profile use {name}  from now on")
    if not no_alias:
        print(f"  {_given_command(ctx, name)}")


def _given_command(ctx: click.Context, name: str) -> str:
    """A profile is made whether or not its name is free for a command."""
    aliases = _aliases()
    try:
        script = aliases.add(name, root_home(home_of(ctx)).root, name)
    except UsageError as error:
        other = str(error).removesuffix("; choose another with --name.")
        return f"{other}: `hermes profile alias {name} --name …` gives it a command of its own."
    except ConfigError as error:
        return f"It has no command of its own: {error}"
    if not aliases.found:
        return f"{script} does so too, once {aliases.folder} is in your PATH."
    return f"{script.name:<20} does so too"


@command.command(help="Say what a profile is for, in a line; without words, what was said goes.")
@click.argument("name")
@click.argument("text", default="")
@click.pass_context
def describe(ctx: click.Context, name: str, text: str) -> None:
    profiles_of(ctx).describe(name, text)
    print(f"{mark('ok')} {name}: {text or 'no description any more'}")


@command.command(help="Use a profile whenever none is named; `default` is the home itself.")
@click.argument("name")
@click.pass_context
def use(ctx: click.Context, name: str) -> None:
    home = profiles_of(ctx).use(name)
    print(f"{mark('ok')} `hermes` works in {home.root} from now on.")


@command.command(help="Start a profile by a command of its own, in ~/.local/bin.")
@click.argument("profile")
@click.option("--name", default="", help="What the command is called; else as the profile.")
@click.option("--remove", is_flag=True, help="Take the command away.")
@click.pass_context
def alias(ctx: click.Context, profile: str, name: str, remove: bool) -> None:
    profiles_of(ctx).info(profile)
    aliases = _aliases()
    if remove:
        print(f"{mark('ok')} {', '.join(aliases.remove(profile, name))} is removed.")
        return
    script = aliases.add(profile, root_home(home_of(ctx)).root, name or profile)
    print(f"{mark('ok')} `{script.name}` starts Hermes in {profile} ({script}).")
    if not aliases.found:
        print(f"Your shell does not look into {aliases.folder} yet: add it to PATH.")


def _aliases() -> Aliases:
    program = Path(sys.argv[0]).absolute()
    return Aliases(Path.home(), environment().get("PATH", ""), str(program))


@command.command(help="Give a profile another name.")
@click.argument("old")
@click.argument("new")
@click.pass_context
def rename(ctx: click.Context, old: str, new: str) -> None:
    home = profiles_of(ctx).rename(old, new)
    moved = _aliases().move(old, new, root_home(home_of(ctx)).root)
    print(f"{mark('ok')} {old} is {new} now, at {home.root}.")
    if moved:
        print(f"  command: {', '.join(moved)}")


@command.command(help="Remove a profile with its settings, memory and sessions, for ever.")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def delete(ctx: click.Context, name: str, yes: bool) -> None:
    profiles = profiles_of(ctx)
    info = profiles.info(name)
    if name != DEFAULT and not yes:
        confirm_by_name(f"{info.home} goes, with all that is in it.", name)
    profiles.delete(name)
    aliases = _aliases()
    if aliases.of(name):
        aliases.remove(name)
    print(f"{mark('ok')} {name} is removed.")


@command.command(help="Write a profile to a file, without keys and logins.")
@click.argument("name")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The file.")
@click.pass_context
def export(ctx: click.Context, name: str, output: Path | None) -> None:
    target = output or Path(f"hermes-profile-{name}.zip")
    count = profiles_of(ctx).export(name, target.absolute())
    print(f"{mark('ok')} {count} files are in {target}; keys and logins are not.")


@command.command("import", help="Make a profile from an exported file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--name", default="", help="Its name here; else that of the file.")
@click.pass_context
def import_(ctx: click.Context, file: Path, name: str) -> None:
    wanted = name or file.stem.removeprefix("hermes-profile-")
    if not wanted:
        raise UsageError("Give it a name with --name.")
    home = profiles_of(ctx).take_in(file, wanted)
    print(
        f"{mark('ok')} {wanted} is at {home.root}; `hermes -p {wanted} auth add …` gives it keys."
    )
