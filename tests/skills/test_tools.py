"""The tools as a model uses them: lists, loading, writing, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.codec.values import JsonObject
from hermes.core.effects import ChangeSkill
from hermes.core.secrets import SecretStore
from hermes.skills.discovery import SkillEnvironment
from hermes.skills.skill import MAIN
from hermes.skills.tools import ALLOW, DONE, skill_manage, skill_view, skills_list
from tests.skills.bench import Bench, Caller, DictVault, said, skill_text


def caller(bench: Bench, secrets: SecretStore | None = None, **settings: Any) -> Caller:
    return Caller(bench.service(**settings), secrets)


async def test_skills_are_listed_by_category(bench: Bench) -> None:
    bench.write("ops/deploy", skill_text("deploy", "Deploy the site"))
    bench.write("alone")
    (bench.skills / "ops/DESCRIPTION.md").write_text("---\ndescription: Running\n---\n")
    output = await caller(bench).run(skills_list)
    assert said(output).split("\n")[:4] == [
        "general:",
        "- alone: Do a thing well",
        "ops: Running",
        "- deploy: Deploy the site",
    ]
    one = await caller(bench).run(skills_list, category="ops")
    assert one.details["skills"] == [
        {"name": "deploy", "description": "Deploy the site", "category": "ops"}
    ]
    assert one.details["categories"] == ["", "ops"]


async def test_a_skill_is_loaded_with_its_place_and_files(bench: Bench) -> None:
    folder = bench.write(
        "deploy",
        skill_text("deploy", body="Run ${HERMES_SKILL_DIR}/scripts/go for ${HERMES_SESSION_ID}."),
        references__a="read me",
    )
    output = await caller(bench).run(skill_view, name="deploy")
    assert said(output).startswith(f"Run {folder}/scripts/go for .")
    assert f"[Skill directory: {folder}]" in said(output)
    assert output.details["linked_files"] == {"references": ("references/a",)}
    assert output.details["readiness_status"] == "available"
    assert bench.usages.of("deploy").view_count == 1
    file = await caller(bench).run(skill_view, name="deploy", file_path="references/a")
    assert (said(file), file.details["file"]) == ("read me", "references/a")


@pytest.mark.parametrize(
    "path", ["../../config.yaml", "/etc/passwd", "references/../../x", "C:\\x", "references/out"]
)
async def test_no_way_leads_out_of_a_skill(bench: Bench, tmp_path: Path, path: str) -> None:
    folder = bench.write("deploy", references__a="x")
    (tmp_path / "secret").write_text("s3cret")
    (folder / "references/out").symlink_to(tmp_path / "secret")
    output = await caller(bench).run(skill_view, name="deploy", file_path=path)
    assert output.failed
    assert "s3cret" not in said(output)


async def test_what_cannot_be_loaded_is_said(bench: Bench) -> None:
    bench.write("deploy")
    bench.write("mac", skill_text("mac", more="platforms: [macos]\n"))
    bench.write("bad", "---\nname: [\n---\n")
    call = caller(bench, here=SkillEnvironment(disabled=("off",)))
    assert "Near: deploy" in said(await call.run(skill_view, name="deplo"))
    assert "disabled" in said(await call.run(skill_view, name="off"))
    assert "does not support this system" in said(await call.run(skill_view, name="mac"))
    assert "is not valid" in said(await call.run(skill_view, name="bad"))


async def test_a_skill_is_created_and_mended(bench: Bench) -> None:
    call = caller(bench)
    text = skill_text("deploy", "Deploy the site", "1. Push.\n")
    made = await call.run(
        skill_manage, action="create", name="deploy", content=text, category="ops"
    )
    assert not made.failed
    assert bench.names() == ["deploy"]
    patched = await call.run(
        skill_manage, action="patch", name="deploy", old_string="Push", new_string="Pull"
    )
    assert not patched.failed
    assert bench.tree("ops/deploy")[MAIN].decode() == text.replace("Push", "Pull")
    await call.run(
        skill_manage,
        action="write_file",
        name="deploy",
        file_path="references/a.md",
        file_content="a",
    )
    assert bench.tree("ops/deploy")["references/a.md"] == b"a"
    await call.run(skill_manage, action="remove_file", name="deploy", file_path="references/a.md")
    assert list(bench.tree("ops/deploy")) == [MAIN]
    usage = bench.usages.of("deploy")
    assert (usage.created_by, usage.patch_count) == ("agent", 3)
    gone = await call.run(skill_manage, action="delete", name="deploy", absorbed_into="")
    assert (gone.failed, bench.names()) == (False, [])
    causes = {(v.cause.session, v.cause.call) for v in bench.store.history("deploy")}
    assert causes == {("s", "call_1")}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"action": "create", "content": skill_text("deploy")}, "already"),
        ({"action": "create", "name": "Bad!", "content": "x"}, "not a valid skill name"),
        ({"action": "create", "name": "x", "content": "no frontmatter"}, "must begin"),
        ({"action": "edit", "content": skill_text("other")}, "names the skill"),
        ({"action": "patch", "old_string": "name: deploy", "new_string": "a: b"}, "needs `name"),
        ({"action": "patch", "old_string": "absent", "new_string": "x"}, "not in the text"),
        ({"action": "write_file", "file_path": "SKILL.md", "file_content": "x"}, "must be in"),
        ({"action": "write_file", "file_path": "../x", "file_content": "x"}, "not a valid path"),
        ({"action": "remove_file", "file_path": "references/none"}, "has no file"),
        ({"action": "delete", "absorbed_into": "nothing"}, "no skill 'nothing'"),
        ({"action": "delete", "absorbed_into": "deploy"}, "itself"),
    ],
)
async def test_a_bad_change_leaves_all_as_it_was(
    bench: Bench, arguments: dict[str, Any], words: str
) -> None:
    call = caller(bench)
    await call.run(skill_manage, action="create", name="deploy", content=skill_text("deploy"))
    before = bench.tree("deploy")
    output = await call.run(skill_manage, **{"name": "deploy", **arguments})
    assert output.failed
    assert words in said(output)
    assert (bench.tree("deploy"), bench.names()) == (before, ["deploy"])


async def test_what_is_not_the_agents_own_changes_only_on_a_persons_word(bench: Bench) -> None:
    bench.write("mine")
    before = bench.tree("mine")
    call = caller(bench)
    edit = {"action": "edit", "name": "mine", "content": skill_text("mine", "Changed")}
    refused = await call.run(skill_manage, **edit)
    assert refused.failed
    assert bench.tree("mine") == before
    assert call.asked == ["The skill mine is yours. Change it?"]
    call.answer = lambda question: "yes"
    assert not (await call.run(skill_manage, **edit)).failed
    # It stays the person's, and can be taken back.
    assert bench.store.provenance(bench.store.find("mine")) == "user"
    assert bench.store.tree(bench.store.history("mine")[0]) == before


async def test_changes_can_wait_for_approval(bench: Bench) -> None:
    call = caller(bench, staged=True)
    output = await call.run(
        skill_manage, action="create", name="deploy", content=skill_text("deploy")
    )
    (waiting,) = bench.store.proposals()
    assert (output.details["staged"], waiting.name, bench.names()) == (True, "deploy", [])


async def test_a_change_is_an_effect_that_the_policy_sees(bench: Bench) -> None:
    arguments = skill_manage.parameters.decode({"action": "delete", "name": "x"})

    class Nowhere:
        cwd = "/"

        def resolve(self, path: str) -> str:
            return path

    effects = list(skill_manage.effects(Nowhere(), arguments))
    assert effects == [ChangeSkill(name="x", action="delete")]


SECRETIVE = skill_text(
    "notes", more="required_environment_variables:\n  - name: NOTES_KEY\n    prompt: Your key\n"
)


async def test_a_missing_secret_is_asked_for_without_passing_through_the_session(
    bench: Bench,
) -> None:
    bench.write("notes", SECRETIVE)
    known: dict[str, str] = {}
    call = caller(bench, variables=lambda: known)

    def answer(question: str) -> str:
        known["NOTES_KEY"] = "s3cret"
        return DONE

    call.answer = answer
    output = await call.run(skill_view, name="notes")
    assert "hermes skills setup notes" in call.asked[0]
    assert output.details["readiness_status"] == "available"
    assert "s3cret" not in said(output) + str(output.details)


async def test_a_secret_that_is_not_given_is_told(bench: Bench) -> None:
    bench.write("notes", SECRETIVE)
    output = await caller(bench).run(skill_view, name="notes")
    assert output.details["setup_skipped"]
    assert output.details["missing_required_environment_variables"] == ["NOTES_KEY"]
    assert "Missing: the variable NOTES_KEY" in said(output)
    elsewhere = caller(bench, here=SkillEnvironment(platform="telegram"))
    output = await elsewhere.run(skill_view, name="notes")
    assert (elsewhere.asked, output.details["readiness_status"]) == ([], "setup_needed")


async def test_a_secret_is_typed_unseen_where_that_can_be(bench: Bench) -> None:
    kept: dict[str, str] = {}
    asked: list[str] = []

    async def answer(name: str, prompt: str, more: JsonObject) -> str:
        asked.append(name)
        return "s3cret"

    async def decline(name: str, prompt: str, more: JsonObject) -> None:
        return None

    bench.write("notes", SECRETIVE)
    call = caller(bench, SecretStore(DictVault(kept), decline), variables=lambda: kept)
    output = await call.run(skill_view, name="notes")
    assert (output.details["setup_skipped"], call.asked) == (True, [])
    call = caller(bench, SecretStore(DictVault(kept), answer), variables=lambda: kept)
    output = await call.run(skill_view, name="notes")
    assert asked == ["NOTES_KEY"]
    assert (output.details["readiness_status"], call.asked) == ("available", [])
    assert "s3cret" not in said(output) + str(output.details)


async def test_commands_see_a_declared_variable_at_once_only_for_a_persons_own_skill(
    bench: Bench,
) -> None:
    values = {"NOTES_KEY": "x"}

    def call_with(secrets: SecretStore) -> Caller:
        return caller(bench, secrets, variables=lambda: values)

    bench.write("notes", SECRETIVE)
    secrets = SecretStore(DictVault(values))
    await call_with(secrets).run(skill_view, name="notes")
    assert secrets.environment() == values
    own = SECRETIVE.replace("name: notes", "name: made").replace("Do a thing", "Another matter")
    bench.store.apply(bench.change("made", own, action="create"))
    secrets = SecretStore(DictVault(values))
    call = call_with(secrets)
    output = await call.run(skill_view, name="made")
    assert (secrets.environment(), "Commands do not see NOTES_KEY" in said(output)) == ({}, True)
    call.answer = lambda question: ALLOW
    await call.run(skill_view, name="made")
    assert secrets.environment() == values


async def test_what_is_missing_of_the_machine_is_told(bench: Bench) -> None:
    more = "prerequisites:\n  commands: [rsync]\nrequired_credential_files: [site/key.json, ../x]\n"
    bench.write("deploy", skill_text("deploy", more=more))
    call = caller(bench, variables=lambda: {"PATH": str(bench.home)})
    output = await call.run(skill_view, name="deploy")
    assert output.details["missing_required_commands"] == ("rsync",)
    assert output.details["missing_credential_files"] == ("site/key.json", "../x")
    (bench.home / "site").mkdir()
    (bench.home / "site/key.json").write_text("{}")
    ready = bench.service().readiness(bench.store.find("deploy"))
    assert ready.files == ("../x",)


async def test_the_text_of_a_stranger_keeps_its_label(bench: Bench) -> None:
    bench.write("deploy")
    assert (await caller(bench).run(skill_view, name="deploy")).origin == "workspace"
    strange = caller(bench, is_untrusted=lambda name: True)
    assert (await strange.run(skill_view, name="deploy")).origin == "skill:deploy"
