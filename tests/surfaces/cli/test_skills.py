"""`hermes skills`, `hermes curator` and `hermes bundles` as a person types them."""

from __future__ import annotations

import json
import signal
import stat
import time
from pathlib import Path

import pytest

from hermes.skills.skill import MAIN
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.skills.bench import skill_text
from tests.surfaces.cli.program import Program


def write(program: Program, place: str, text: str = "") -> Path:
    folder = program.home / "skills" / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MAIN).write_text(text or skill_text(folder.name))
    return folder


def test_skills_are_listed_with_where_they_come_from(program: Program) -> None:
    write(program, "ops/deploy")
    found = {each["name"]: each for each in program("skills", "list", "--json").json}
    assert found["deploy"]["source"] == "user"
    assert found["edit-a-text"]["source"] == "bundled"
    only = program("skills", "list", "--source", "builtin", "--json").json
    assert "deploy" not in {each["name"] for each in only}
    assert "  deploy " in program("skills", "list").out


def test_a_skill_is_shown(program: Program) -> None:
    folder = write(program, "deploy")
    (folder / "references").mkdir()
    (folder / "references/a.md").write_text("inner")
    assert "# deploy" in program("skills", "view", "deploy").out
    assert program("skills", "view", "deploy", "references/a.md").out.startswith("inner")
    missing = program("skills", "view", "deploi")
    assert (missing.code, "deploy" in missing.err) == (1, True)


def test_skills_are_switched(program: Program) -> None:
    write(program, "deploy")
    assert program("skills", "disable", "deploy").code == 0
    (deploy,) = (e for e in program("skills", "list", "--json").json if e["name"] == "deploy")
    assert not deploy["enabled"]
    program("skills", "disable", "deploy", "--platform", "telegram")
    program("skills", "enable", "deploy")
    text = (program.home / "config.yaml").read_text()
    assert "telegram" in text
    assert program("skills", "disable", "nope").code == 1


def test_an_edit_of_a_shipped_skill_is_seen_and_taken_back(program: Program) -> None:
    program("skills", "list")
    main = program.home / "skills/writing/edit-a-text" / MAIN
    shipped = main.read_text()
    main.write_text(shipped + "my line\n")
    assert program("skills", "list-modified", "--json").json == {
        "modified": ["edit-a-text"],
        "removed": [],
    }
    assert "+my line" in program("skills", "diff", "edit-a-text").out
    assert program("skills", "reset", "edit-a-text").code == 0
    assert main.read_text() == shipped
    versions = program("skills", "history", "edit-a-text", "--json").json
    assert [(v["state"], v["cause"]["who"]) for v in versions] == [
        ("past", "user"),
        ("active", "bundled"),
    ]
    assert program("skills", "revert", "edit-a-text").code == 0
    assert main.read_text() == shipped + "my line\n"


def test_shipped_skills_can_be_declined(program: Program) -> None:
    assert program("skills", "opt-out").code == 0
    assert program("skills", "list", "--json").json == []
    program("skills", "opt-in")
    assert program("skills", "list", "--json").json != []


def test_a_declined_publication_sends_nothing(program: Program) -> None:
    write(program, "deploy")
    result = program.answer("n\n", "skills", "publish", "deploy", "--repo", "owner/repo")
    assert (result.code, result.out) == (1, "")
    assert result.err.endswith("Nothing was sent.\n")


def test_settings_of_skills_are_set(program: Program) -> None:
    more = "metadata: {hermes: {config: [{key: depth, description: How deep, default: 3}]}}\n"
    write(program, "deploy", skill_text("deploy", more=more))
    assert program("skills", "config", "--json").json == [
        {"skill": "deploy", "key": "depth", "description": "How deep", "value": 3}
    ]
    assert program("skills", "config", "deploy", "depth", "5").code == 0
    assert "depth = 5" in program("skills", "config").out
    assert program("skills", "config", "deploy", "width", "5").code == 2


def test_an_official_skill_is_installed_checked_and_removed(program: Program) -> None:
    program("skills", "opt-out")
    found = program("skills", "search", "compare", "--source", "official", "--json").json
    assert [each["identifier"] for each in found] == ["official/research/compare-options"]
    looked = program("skills", "inspect", found[0]["identifier"], "--json").json
    assert (looked["verdict"], looked["allowed"]) == ("safe", True)
    asked = program("skills", "install", found[0]["identifier"])
    assert (asked.code, "--yes" in asked.err) == (2, True)
    done = program("skills", "install", found[0]["identifier"], "--category", "mine", "--yes")
    assert done.code == 0
    assert (program.home / "skills/mine/compare-options" / MAIN).is_file()
    assert program("skills", "check", "--json").json[0]["condition"] == "current"
    assert program("skills", "update", "--yes").out.split()[-1] == "current"
    assert "INSTALL compare-options" in program("skills", "audit", "--log").out
    assert program("skills", "audit", "--json").json[0]["scan"]["verdict"] == "safe"
    file = str(program.work / "skills.json")
    assert program("skills", "snapshot", "export", file).code == 0
    assert program("skills", "uninstall", "compare-options").code == 0
    assert program("skills", "list", "--json").json == []
    back = program("skills", "snapshot", "import", file, "--yes")
    assert back.out.endswith(" identical\n")
    assert program("skills", "list", "--json").json[0]["name"] == "compare-options"


def test_taps_are_kept(program: Program) -> None:
    usual = program("skills", "tap", "list", "--json").json
    assert "anthropics/skills" in usual
    assert program("skills", "tap", "add", "https://github.com/some/repo").code == 0
    assert program("skills", "tap", "list", "--json").json == [*usual, "some/repo"]
    assert program("skills", "tap", "remove", "some/repo").code == 0
    assert program("skills", "tap", "remove", "some/repo").code == 2


def test_a_project_is_trusted(program: Program) -> None:
    folder = program.work / ".agents/skills/house-style"
    folder.mkdir(parents=True)
    (folder / MAIN).write_text(skill_text("house-style"))
    names = [each["name"] for each in program("skills", "list", "--json").json]
    assert "house-style" not in names
    assert program("skills", "trust").code == 0
    (style,) = (e for e in program("skills", "list", "--json").json if e["name"] == "house-style")
    assert style["source"] == "project"
    program("skills", "trust", "--no")
    assert "house-style" not in program("skills", "list").out


def test_a_secret_is_asked_for_and_not_shown(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = "required_environment_variables: [{name: NOTES_KEY, prompt: Your key}]\n"
    write(program, "notes", skill_text("notes", more=more))
    given = program.process("skills", "setup", "notes", input=b"s3cret\n")
    assert given.returncode == 0
    assert b"s3cret" not in given.stdout + given.stderr
    assert "NOTES_KEY=s3cret" in (program.home / ".env").read_text()
    assert "has everything that it needs" in program("skills", "setup", "notes").out


def test_the_curator_is_asked_and_told(program: Program) -> None:
    write(program, "deploy")
    status = program("curator", "status", "--json").json
    assert (status["paused"], status["plan"], status["archived"]) == (False, [], [])
    assert program("curator", "archive", "deploy").code == 0
    assert program("curator", "list-archived", "--json").json == ["deploy"]
    assert program("curator", "restore", "deploy").code == 0
    assert program("curator", "pin", "deploy").code == 0
    nothing = {"dry_run": True, "moves": [], "merged": []}
    assert program("curator", "run", "--dry-run", "--json").json == nothing
    assert program("curator", "run", "--dry-run", "--consolidate", "--json").json == nothing
    assert program("curator", "backup").code == 0
    assert len(program("curator", "rollback", "--list").out.split()) == 1
    assert program("curator", "pause").code == 0
    assert program("curator", "status", "--json").json["paused"]


def test_bundles_are_made_and_removed(program: Program) -> None:
    write(program, "deploy")
    assert program("bundles", "create", "go", "--skills", "deploy", "--description", "D").code == 0
    assert program("bundles", "list", "--json").json == [
        {"name": "go", "description": "D", "skills": ["deploy"], "instruction": ""}
    ]
    assert program("bundles", "create", "x", "--skills", "nope").code == 1
    assert program("bundles", "delete", "go").code == 0
    assert program("bundles", "show", "go").code == 1


def test_skills_are_loaded_by_an_option(program: Program) -> None:
    write(program, "deploy")
    assert program("-s", "deploy", "--provider", "offline", "-z", "hello").code == 0
    assert program("-s", "nope", "--provider", "offline", "-z", "hello").code == 1
    stats = program("skills", "stats", "--json").json
    assert [(each["name"], each["uses"]) for each in stats] == [("deploy", 1)]


def test_the_doctor_names_a_skill_that_cannot_be_used(program: Program) -> None:
    write(program, "bad", "---\nname: [\n---\n")
    found = [each for each in program("doctor", "--json").json if each["section"] == "Skills"]
    assert [each["level"] for each in found] == ["warn"]
    assert "skills/bad" in found[0]["text"]


@pytest.mark.parametrize("point", ["skill.intended", "skill.swapped", "skill.settled"])
def test_a_run_that_is_killed_while_it_saves_leaves_a_whole_skill_or_none(
    scripted: Program, model_server: ScriptedServer, point: str
) -> None:
    text = skill_text("release-notes", "Write the notes of a release")
    model_server.add(
        calls("skill_manage", action="create", name="release-notes", content=text),
        says("I look what became of it."),
        says("Good."),
    )
    env = {"HERMES_TESTING": "1", "HERMES_KILL_AT": point}
    assert scripted.process("-z", "save it", env=env).returncode == -signal.SIGKILL
    found = [e for e in scripted("skills", "list", "--json").json if e["name"] == "release-notes"]
    assert len(found) == (point != "skill.intended")
    if found:
        assert (scripted.home / "skills/release-notes" / MAIN).read_text() == text
        assert found[0]["source"] == "agent"
    (session,) = scripted.sessions()
    assert scripted("-z", "go on", "--resume", session["id"]).code == 0
    results = str(model_server.requests[1].body["messages"])
    assert "outcome unknown" in results


def test_the_curator_goes_on_when_the_command_is_over(program: Program) -> None:
    run = program.process("curator", "run", "--background", "--json")
    told = json.loads(run.stdout)
    log = Path(told["log"])
    for _ in range(600):
        if "moves" in log.read_text():
            break
        time.sleep(0.1)
    assert json.loads(log.read_text()) == {"dry_run": False, "moves": [], "merged": []}
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert program("curator", "status", "--json").json["last_run_at"] > 0
