"""Slash commands about skills, and the commands that skills are."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.commands.catalogue import COMMANDS, DYNAMIC_COMMANDS
from hermes.commands.registry import CommandRegistry, Outcome, SendMessage, ShowText
from hermes.skills.history import Cause
from hermes.skills.skill import MAIN
from hermes.skills.store import SkillChange
from tests.commands.conftest import Talk
from tests.skills.bench import skill_text


@pytest.fixture
def here(talk: Talk) -> Talk:
    talk.registry = CommandRegistry(COMMANDS, "cli", extra=DYNAMIC_COMMANDS)
    return talk


async def run(here: Talk, line: str) -> Outcome:
    return await here.registry.run(line, here)


async def shown(here: Talk, line: str) -> str:
    outcome = await run(here, line)
    assert isinstance(outcome, ShowText)
    return outcome.text


def write(here: Talk, name: str, text: str = "") -> Path:
    folder = here.app.context.home.root / "skills" / name
    folder.mkdir(parents=True)
    (folder / MAIN).write_text(text or skill_text(name))
    return folder


async def test_a_skill_is_a_command(here: Talk) -> None:
    folder = write(here, "deploy", skill_text("deploy", body="Go to ${HERMES_SESSION_ID}."))
    outcome = await run(here, "/deploy the blog")
    assert isinstance(outcome, SendMessage)
    assert outcome.text.startswith("/deploy the blog\n\n[The person calls")
    assert f"Go to {here.session.id}." in outcome.text
    assert f"[Skill directory: {folder}]" in outcome.text
    assert here.app.skills().usages.of("deploy").use_count == 1


async def test_skill_commands_stack_and_built_in_ones_win(here: Talk) -> None:
    write(here, "deploy")
    write(here, "usage")
    stacked = await run(here, "/deploy /edit-a-text now")
    assert isinstance(stacked, SendMessage)
    assert "# Skill deploy" in stacked.text
    assert "# Skill edit-a-text" in stacked.text
    assert isinstance(await run(here, "/usage"), ShowText)
    # The whole name of a skill comes before the beginning of a built-in command.
    write(here, "res")
    assert isinstance(await run(here, "/res"), SendMessage)


async def test_unknown_and_disabled_skills_are_no_commands(here: Talk) -> None:
    assert "There is no command /nope." in await shown(here, "/nope")


async def test_names_of_skills_are_suggested(here: Talk) -> None:
    write(here, "deploy")
    found = await here.registry.complete("/dep", here)
    assert [each.text for each in found] == ["deploy"]


async def test_a_bundle_is_a_command(here: Talk) -> None:
    write(here, "deploy")
    here.app.skills().make_bundle("release", ("deploy", "edit-a-text"), "All of it", "Be brief.")
    outcome = await run(here, "/release today")
    assert isinstance(outcome, SendMessage)
    assert outcome.text.startswith("/deploy /edit-a-text Be brief.\ntoday\n\n")
    assert "/release  All of it (deploy, edit-a-text)" in await shown(here, "/bundles")


async def test_the_shelf_is_listed_and_read(here: Talk) -> None:
    write(here, "deploy")
    write(here, "bad", "no frontmatter")
    text = await shown(here, "/skills")
    assert "  deploy " in text
    assert "⚠" in text
    assert "# deploy" in await shown(here, "/skills view deploy")
    assert "skills; new sessions see" in await shown(here, "/reload-skills")
    assert "Use /skills" in await shown(here, "/skills dance")


async def test_proposals_are_looked_at_and_decided(here: Talk) -> None:
    folder = write(here, "deploy")
    shelf = here.app.skills().store
    texts = [skill_text("deploy", words).encode() for words in ("One", "Two")]
    one, two = (
        shelf.propose(
            SkillChange(name="deploy", action="edit", cause=Cause(who="agent"), files={MAIN: text})
        )
        for text in texts
    )
    assert one.id in await shown(here, "/skills pending")
    difference = await shown(here, f"/skills diff {one.id}")
    assert "-description: Do a thing well\n+description: One" in difference
    assert "deploy is now at" in await shown(here, f"/skills approve {one.id}")
    assert (folder / MAIN).read_bytes() == texts[0]
    assert "changed since" in await shown(here, f"/skills approve {two.id}")
    assert "is rejected" in await shown(here, f"/skills reject {two.id} too late")
    assert await shown(here, "/skills pending") == "No changes are pending."
    history = await shown(here, "/skills history deploy")
    assert "(too late)" in history
    found = history.splitlines()[-1].split()[0]
    assert "is reverted" in await shown(here, f"/skills revert deploy {found}")
    assert (folder / MAIN).read_text() == skill_text("deploy")


async def test_learning_is_a_request_to_the_agent(here: Talk) -> None:
    outcome = await run(here, "/learn notes.md")
    assert isinstance(outcome, SendMessage)
    assert outcome.text.startswith("Learn from notes.md")
    assert "Use /learn" in await shown(here, "/learn")
