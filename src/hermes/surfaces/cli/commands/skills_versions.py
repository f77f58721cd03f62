"""`hermes skills history|diff|revert|pending|approve|reject`: the versions of a skill."""

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
from hermes.commands.visible import sanitize
from hermes.surfaces.cli.output import Output, json_output, text_output, with_app
from hermes.surfaces.cli.style import mark

if TYPE_CHECKING:
    from hermes.skills.history import Version
    from hermes.skills.library import SkillLibrary


def _skills(app: App) -> SkillLibrary:
    return app.skills(str(Path.cwd().resolve()))


def _facts(version: Version) -> JsonObject:
    return {"state": version.state, **plain(version), "cause": plain(version.cause)}


@click.command(help="List every version of a skill: when, by whom, why.")
@click.argument("name")
@json_output(with_app)
async def history(app: App, name: str) -> Output:
    skills = _skills(app)
    versions = skills.shelf.history(name)
    if not versions:
        skills.shelf.find(name)
    lines = sanitize("\n".join(version_lines(versions)))
    return Output([*map(_facts, versions)], lines or "It has no changes.")


@click.command(help="Show what a version changed, or your changes to a bundled skill.")
@click.argument("name")
@click.argument("version", required=False, default="")
@click.argument("other", required=False, default="")
@text_output(with_app)
async def diff(app: App, name: str, version: str, other: str) -> str:
    skills = _skills(app)
    if version:
        second = skills.shelf.version(name, other) if other else None
        return sanitize(difference(skills.shelf, skills.shelf.version(name, version), second))
    versions = [each for each in skills.shelf.history(name) if not each.removed]
    if name in skills.seeds.manifest():
        before = skills.seeds.tree(name)[0]
    else:
        before = skills.shelf.tree(versions[0]) if versions else {}
    return sanitize(tree_difference(before, skills.tree(name)))


@click.command(help="Restore an older version of a skill, even of a deleted one.")
@click.argument("name")
@click.argument("version", required=False, default="")
@json_output(with_app)
async def revert(app: App, name: str, version: str) -> Output:
    skills = _skills(app)
    done = skills.revert(name, version or skills.previous_version(name))
    line = f"{mark('ok')} {done.name}: {done.action}; this is version {done.id}."
    return Output(_facts(done), line)


@click.command(help="List the skill changes that wait for your approval.")
@json_output(with_app)
async def pending(app: App) -> Output:
    waiting = _skills(app).shelf.proposals()
    lines = sanitize("\n".join(map(proposal_line, waiting)))
    return Output([*map(_facts, waiting)], lines or "No changes are pending.")


@click.command(help="Apply a pending change.")
@click.argument("version")
@text_output(with_app)
async def approve(app: App, version: str) -> str:
    skills = _skills(app)
    done = skills.approve(skills.shelf.proposal(version))
    return f"{mark('ok')} {done.name} is at {done.id}."


@click.command(help="Reject a pending change; it stays in the history.")
@click.argument("version")
@click.option("--reason", default="refused by the owner", help="Why.")
@text_output(with_app)
async def reject(app: App, version: str, reason: str) -> str:
    shelf = _skills(app).shelf
    done = shelf.refuse(shelf.proposal(version), reason)
    return f"{mark('ok')} {done.id} of {done.name} is rejected."
