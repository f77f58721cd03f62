"""`hermes skills history|diff|revert|pending|approve|reject`: what was changed, and back again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.app.build import App
from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.commands.skill_lines import (
    difference,
    proposal_line,
    tree_difference,
    version_lines,
)
from hermes.commands.visible import clean
from hermes.skills.library import Skilled
from hermes.surfaces.cli.output import as_json_option, print_json, with_app
from hermes.surfaces.cli.style import mark

if TYPE_CHECKING:
    from hermes.skills.history import Version
    from hermes.skills.library import Skilled


def _skills(app: App) -> Skilled:
    return app.skills(str(Path.cwd().resolve()))


def _facts(version: Version) -> JsonObject:
    return {"state": version.state, **plain(version), "cause": plain(version.cause)}


@click.command(help="Every version of a skill: when, by whom, why.")
@click.argument("name")
@as_json_option
@click.pass_context
def history(ctx: click.Context, name: str, as_json: bool) -> None:
    async def work(app: App) -> tuple[Version, ...]:
        skills = _skills(app)
        versions = skills.shelf.history(name)
        if not versions:
            skills.shelf.find(name)
        return versions

    versions = with_app(ctx, work)
    if as_json:
        print_json([_facts(each) for each in versions])
    else:
        print(clean("\n".join(version_lines(versions))) or "It has not been changed from here.")


@click.command(help="What a version changed, or what you changed in a skill that came with Hermes.")
@click.argument("name")
@click.argument("version", required=False, default="")
@click.argument("other", required=False, default="")
@click.pass_context
def diff(ctx: click.Context, name: str, version: str, other: str) -> None:
    async def work(app: App) -> str:
        skills = _skills(app)
        if version:
            second = skills.shelf.version(name, other) if other else None
            return difference(skills.shelf, skills.shelf.version(name, version), second)
        versions = [each for each in skills.shelf.history(name) if not each.removed]
        present = skills.tree(name)
        if name in skills.seeds.manifest():
            return tree_difference(skills.seeds.tree(name)[0], present)
        return tree_difference(skills.shelf.tree(versions[0]) if versions else {}, present)

    print(clean(with_app(ctx, work)))


@click.command(help="Bring back an older version of a skill; also of one that is gone.")
@click.argument("name")
@click.argument("version", required=False, default="")
@as_json_option
@click.pass_context
def revert(ctx: click.Context, name: str, version: str, as_json: bool) -> None:
    async def work(app: App) -> Version:
        skills = _skills(app)
        return skills.revert(name, version or skills.before(name))

    done = with_app(ctx, work)
    if as_json:
        print_json(_facts(done))
    else:
        print(f"{mark('ok')} {done.name}: {done.action}; this is version {done.id}.")


@click.command(help="Changes of skills that wait for your word.")
@as_json_option
@click.pass_context
def pending(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> tuple[Version, ...]:
        return _skills(app).shelf.proposals()

    waiting = with_app(ctx, work)
    if as_json:
        print_json([_facts(each) for each in waiting])
    else:
        print(clean("\n".join(map(proposal_line, waiting))) or "Nothing waits.")


@click.command(help="Put a waiting change into use.")
@click.argument("version")
@click.pass_context
def approve(ctx: click.Context, version: str) -> None:
    async def work(app: App) -> Version:
        skills = _skills(app)
        return skills.approve(skills.shelf.proposal(version))

    done = with_app(ctx, work)
    print(f"{mark('ok')} {done.name} is at {done.id}.")


@click.command(help="Refuse a waiting change; it stays in the history.")
@click.argument("version")
@click.option("--reason", default="refused by the owner", help="Why.")
@click.pass_context
def reject(ctx: click.Context, version: str, reason: str) -> None:
    async def work(app: App) -> Version:
        shelf = _skills(app).shelf
        return shelf.refuse(shelf.proposal(version), reason)

    done = with_app(ctx, work)
    print(f"{mark('ok')} {done.id} of {done.name} is refused.")


COMMANDS = (history, diff, revert, pending, approve, reject)
