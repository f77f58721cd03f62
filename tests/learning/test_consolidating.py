"""Skills about the same thing become one, and nothing of them is lost."""

from __future__ import annotations

from pathlib import Path

from hermes.app.app import App
from hermes.skills.consolidation import (
    INSTRUCTIONS,
    Consolidation,
    MergeResult,
    codes,
    missing_code,
)
from hermes.skills.history import Cause, Who
from hermes.skills.library import SkillLibrary
from hermes.skills.store import SkillChange
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.learning.school import School

BUILD = "---\nname: {}\ndescription: {}\n---\n1. Run `make {}`.\n"
WHOLE = """---
name: releases
description: Build, check and publish a release
---
1. Run `make build`.
2. Run `make   publish`.
"""


def add(skills: SkillLibrary, name: str, about: str, target: str, who: Who = "agent") -> None:
    files: dict[str, bytes | None] = {"SKILL.md": BUILD.format(name, about, target).encode()}
    change = SkillChange(
        name=name, action="found", cause=Cause(who=who), files=files, category="work"
    )
    skills.store.apply(change)


def library(app: App) -> SkillLibrary:
    skills = app.skills()
    add(skills, "build-release", "Make the packages of a version", "build")
    add(skills, "publish-release", "Put the packages of a version online", "publish")
    add(skills, "tea", "How the person likes tea", "tea", who="user")
    add(skills, "deploy", "Bring a version to the servers", "deploy")
    skills.usages.pin("deploy", True)
    return skills


class Keeper:
    """Wants too much, forgets a step, and then does it right."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, request: Request) -> Step:
        assert request.messages[0].text == INSTRUCTIONS
        listed = request.messages[1].text
        assert "# build-release" in listed and "tea" not in listed and "deploy" not in listed
        self.told = [each.text for each in request.messages if each.role == "tool"]
        names = ["build-release", "publish-release"]
        match len(self.told):
            case 0:
                return calls("merge_skills", into="tea", skills=[*names, "tea"], content=WHOLE)
            case 1:
                short = WHOLE.replace("2. Run `make   publish`.", "")
                return calls("merge_skills", into="releases", skills=names, content=short)
            case 2:
                return calls("merge_skills", into="releases", skills=names, content=WHOLE)
            case _:
                return says("nothing to merge")


async def test_a_merge_keeps_every_step_and_can_be_taken_back(tmp_path: Path) -> None:
    keeper = Keeper()
    async with ScriptedServer(keeper) as server:
        school = School(tmp_path, server)
        async with school.app() as app:
            skills = library(app)
            session = await school.attended(app)
            absorbed = ("build-release", "publish-release")
            (would,) = await Consolidation(
                app.models, app.context.settings, skills, session, dry_run=True
            ).run()
            assert would == MergeResult(into="releases", absorbed=absorbed)
            assert skills.curator().list_archived() == () == skills.curator().backups()
            (done,) = await Consolidation(app.models, app.context.settings, skills, session).run()
            assert "tea cannot be merged" in keeper.told[0]
            assert "leaves out `make publish`" in keeper.told[1]
            names = {entry.name for entry in skills.store.scan().entries}
            assert {"releases", "tea", "deploy"} <= names and not names & set(absorbed)
            (version,) = skills.store.history("releases")
            assert (version.id, version.cause.who) == (done.version, "curator")
            assert version.cause.words == "merged from build-release, publish-release"
            assert skills.store.provenance(skills.store.find("releases")) == "agent"
            assert "curator" in {line.cause for line in await app.archive.spending()}
            curator = skills.curator()
            assert curator.list_archived() == absorbed
            assert set(curator.rollback()) == set(absorbed)
            await app.close_session(session)


async def test_too_few_skills_ask_nobody(tmp_path: Path) -> None:
    async with ScriptedServer([]) as server:
        school = School(tmp_path, server)
        async with school.app() as app:
            skills = app.skills()
            add(skills, "build-release", "Make the packages of a version", "build")
            session = await school.attended(app)
            assert (
                await Consolidation(app.models, app.context.settings, skills, session).run() == ()
            )
            assert server.requests == []
            await app.close_session(session)


def test_what_is_set_as_code_is_found() -> None:
    text = "Use `a  b` and\n```sh\nmake x\n\n  make y\n```\nthen `c`."
    assert codes(text) == ["make x", "make y", "a b", "c"]
    assert missing_code((text, "`d`"), "a b, make x; `make y` and c") == ("d",)
