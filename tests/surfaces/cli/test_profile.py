"""Profiles: made, used, renamed, taken elsewhere and removed, each with a life of its own."""

from __future__ import annotations

import os
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from hermes.config.environment import process_environment
from hermes.config.home import Home
from hermes.homes.backup import used_by
from hermes.homes.token_claims import hold_claim
from hermes.journal.leases import LeaseOwner, lock_folder
from tests.surfaces.cli.program import Program


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_profiles_share_nothing(program: Program) -> None:
    assert program("profile", "create", "work").code == 0
    program("-p", "work", "config", "set", "agent.max_turns", "7")
    program("-p", "work", "--provider", "offline", "-z", "calculate 6*7")
    assert program("config", "get", "agent.max_turns").out == "90\n"
    assert program("-p", "work", "config", "get", "agent.max_turns").out == "7\n"
    assert program.sessions() == []
    assert len(program("-p", "work", "sessions", "list", "--json").json) == 1


def test_a_used_profile_stays_in_use_until_another_is(program: Program) -> None:
    program("profile", "create", "work")
    program("profile", "use", "work")
    assert program("config", "path").out == f"{program.home}/profiles/work/config.yaml\n"
    assert program("-p", "default", "config", "path").out == f"{program.home}/config.yaml\n"
    assert [row["active"] for row in program("profile", "list", "--json").json] == [False, True]
    program("profile", "use", "default")
    assert program("config", "path").out == f"{program.home}/config.yaml\n"


def test_a_clone_has_manners_and_no_past(program: Program) -> None:
    program.write("agent: {max_turns: 7}\n")
    program("config", "set", "OPENROUTER_API_KEY", "sk-or-v1-0123456789abcdef")
    program("auth", "add", "anthropic", "--api-key", "sk-ant-0123456789abcdef")
    (program.home / "SOUL.md").write_text("Be kind.")
    program.ask("calculate 6*7")
    program("profile", "create", "work", "--clone")
    work = program.home / "profiles" / "work"
    assert {"config.yaml", ".env", "SOUL.md"} <= files(work)
    assert not {"hermes.db", "auth.json"} & files(work)
    assert stat.S_IMODE(work.stat().st_mode) == 0o700
    assert stat.S_IMODE((work / ".env").stat().st_mode) == 0o600
    assert program("-p", "work", "config", "get", "agent.max_turns").out == "7\n"


def test_a_whole_clone_has_all_but_the_past_and_logins(program: Program) -> None:
    program("config", "set", "agent.max_turns", "7")
    (program.home / "notes").mkdir()
    (program.home / "notes" / "a.md").write_text("mine")
    program.ask("calculate 6*7")
    program("profile", "create", "one", "--clone-all")
    found = files(program.home / "profiles" / "one")
    assert {"config.yaml", "notes/a.md"} <= found
    assert not any(name.startswith(("hermes.db", "sessions/", "profiles/")) for name in found)


@pytest.mark.parametrize("name", ["default", "hermes", "sessions", "Work", "../x", "-x", "a" * 65])
def test_a_name_that_means_something_else_is_refused(program: Program, name: str) -> None:
    result = program("profile", "create", "--", name)
    assert (result.code, result.out) == (2, "")
    assert not (program.home / "profiles").exists()


def test_a_profile_is_made_once(program: Program) -> None:
    program("profile", "create", "work")
    assert program("profile", "create", "work").code == 2
    assert program("profile", "create", "other", "--clone-from", "nosuch").code == 1


def test_renaming_keeps_what_is_in_use(program: Program) -> None:
    program("profile", "create", "work")
    program("-p", "work", "config", "set", "agent.max_turns", "7")
    program("profile", "use", "work")
    program("profile", "rename", "work", "job")
    assert program("config", "get", "agent.max_turns").out == "7\n"
    assert [row["name"] for row in program("profile", "list", "--json").json] == ["default", "job"]


def test_removing_the_profile_in_use_leads_back_to_the_home(program: Program) -> None:
    program("profile", "create", "work")
    program("profile", "use", "work")
    asked = program("profile", "delete", "work")
    assert (asked.code, asked.out) == (2, "")
    assert "confirm with --yes" in asked.err
    assert program("profile", "delete", "work", "--yes").code == 0
    assert program("config", "path").out == f"{program.home}/config.yaml\n"
    assert not list((program.home / "profiles").iterdir())
    assert program("profile", "delete", "default", "--yes").code == 2


def test_a_profile_that_is_open_elsewhere_stays(program: Program) -> None:
    program("profile", "create", "work")
    home = Home(program.home / "profiles" / "work")
    owner = LeaseOwner(lock_folder(home.root))
    owner.hold_lock()
    try:
        assert len(used_by(home)) == 1
        for line in (("delete", "work", "--yes"), ("rename", "work", "job")):
            result = program("profile", *line)
            assert result.code == 1
            assert "is in use by process" in result.err
    finally:
        owner.release()
    assert program("profile", "delete", "work", "--yes").code == 0


def test_an_exported_profile_has_no_secrets_and_comes_back(program: Program) -> None:
    program("profile", "create", "work")
    program("-p", "work", "config", "set", "agent.max_turns", "7")
    program("-p", "work", "config", "set", "OPENROUTER_API_KEY", "sk-or-v1-0123456789abcdef")
    program("-p", "work", "--provider", "offline", "-z", "calculate 6*7")
    exported = program("-p", "work", "sessions", "export", "--no-redact").out
    program("profile", "export", "work", "-o", "w.zip")
    with zipfile.ZipFile("w.zip") as archive:
        assert "config.yaml" in archive.namelist()
        assert not {".env", "auth.json"} & {*archive.namelist()}
    assert program("profile", "import", "w.zip", "--name", "again").code == 0
    assert program("-p", "again", "config", "get", "agent.max_turns").out == "7\n"
    assert program("-p", "again", "sessions", "export", "--no-redact").out == exported


@pytest.mark.parametrize("name", ["../out.md", "/tmp/out.md", "a/../../out.md", "a\\..\\out"])
def test_an_archive_cannot_lead_out_of_its_folder(program: Program, name: str) -> None:
    with zipfile.ZipFile("bad.zip", "w") as archive:
        archive.writestr("config.yaml", "agent: {}")
        archive.writestr(name, "gotcha")
    result = program("profile", "import", "bad.zip")
    assert result.code == 2
    assert "a path outside the archive" in result.err
    assert not (program.home / "profiles" / "bad").exists()


def test_an_archive_may_not_hold_links(program: Program) -> None:
    with zipfile.ZipFile("bad.zip", "w") as archive:
        link = zipfile.ZipInfo("config.yaml")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert program("profile", "import", "bad.zip").code == 2


def test_a_new_profile_is_started_by_its_name_unless_that_is_taken(
    program: Program, tmp_path: Path
) -> None:
    commands = tmp_path / ".local" / "bin"
    made = program.process("profile", "create", "work")
    assert f"{commands / 'work'} starts it once".encode() in made.stdout
    told = subprocess.run(
        [commands / "work", "config", "path"],
        env=program.env({"HERMES_HOME": str(tmp_path / "elsewhere")}),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told.stdout == f"{program.home / 'profiles' / 'work' / 'config.yaml'}\n"
    assert program("profile", "create", "quiet", "--no-alias").code == 0
    taken = program("profile", "create", "ls")
    assert taken.code == 0
    assert "The command ls exists already (" in taken.out
    assert "): `hermes profile alias ls --name …`" in taken.out
    assert {path.name for path in commands.iterdir()} == {"work"}


def test_a_folder_for_commands_that_cannot_be_made_is_no_obstacle(
    program: Program, tmp_path: Path
) -> None:
    (tmp_path / ".local").write_text("not a folder")
    made = program("profile", "create", "work")
    assert made.code == 0
    assert "No command was created: Cannot write to" in made.out
    assert program("profile", "show", "work").code == 0


def test_the_commands_of_a_profile_follow_its_name(program: Program, tmp_path: Path) -> None:
    program("profile", "create", "work")
    program("profile", "alias", "work", "--name", "at-work")
    renamed = program("profile", "rename", "work", "job")
    assert "command: at-work, job" in renamed.out
    scripts = sorted((tmp_path / ".local" / "bin").iterdir())
    assert [script.name for script in scripts] == ["at-work", "job"]
    assert all(" -p job " in script.read_text() for script in scripts)


def test_a_command_keeps_its_name_where_the_new_one_is_taken(
    program: Program, tmp_path: Path
) -> None:
    program("profile", "create", "work")
    program("profile", "rename", "work", "ls")
    (script,) = (tmp_path / ".local" / "bin").iterdir()
    assert script.name == "work"
    assert " -p ls " in script.read_text()


def test_a_profile_says_what_it_is_for(program: Program) -> None:
    program("profile", "create", "work", "--description", "For  the\nday job")
    assert "work                 no model chosen  For the day job" in program("profile", "list").out
    assert program("profile", "show", "work", "--json").json["description"] == "For the day job"
    program("profile", "create", "like", "--clone-all", "--clone-from", "work")
    assert program("profile", "show", "like", "--json").json["description"] == ""
    program("profile", "rename", "work", "job")
    assert "about     For the day job" in program("profile", "show", "job").out
    assert program("profile", "describe", "job", "Nights").code == 0
    assert program("profile", "show", "job", "--json").json["description"] == "Nights"
    program("profile", "describe", "job")
    assert "for  " not in program("profile", "show", "job").out


def test_a_description_that_is_too_long_is_refused_before_anything_is_made(
    program: Program,
) -> None:
    assert program("profile", "create", "work", "--description", "x" * 501).code == 2
    assert not (program.home / "profiles").exists()


@pytest.mark.parametrize("like", [(), ("--clone",), ("--clone-all",)])
def test_a_profile_without_skills_gets_none(program: Program, like: tuple[str, ...]) -> None:
    program.ask("calculate 6*7")
    assert (program.home / "skills" / ".bundled_manifest").exists()
    program("profile", "create", "bare", "--no-skills", *like)
    program("-p", "bare", "--provider", "offline", "-z", "calculate 6*7")
    assert program("profile", "show", "bare", "--json").json["skills"] == 0
    assert program("-p", "bare", "skills", "list", "--json").json == []


def test_a_profile_gets_a_command_of_its_own(program: Program, tmp_path: Path) -> None:
    program("profile", "create", "work", "--no-alias")
    made = program.process("profile", "alias", "work", "--name", "at-work")
    assert made.returncode == 0, made
    script = tmp_path / ".local" / "bin" / "at-work"
    assert b"is not in your PATH; add it" in made.stdout
    env = program.env({"HERMES_HOME": str(tmp_path / "elsewhere")})
    told = subprocess.run(
        [script, "config", "path"], env=env, capture_output=True, text=True, timeout=60
    )
    assert told.stdout == f"{program.home / 'profiles' / 'work' / 'config.yaml'}\n"
    assert "command   at-work" in program("profile", "show", "work").out
    assert program("profile", "alias", "work", "--remove").code == 0
    assert not script.exists()
    assert program("profile", "alias", "work", "--remove").code == 1


def test_a_command_that_is_there_already_is_never_replaced(
    program: Program, tmp_path: Path
) -> None:
    program("profile", "create", "work")
    refused = program("profile", "alias", "work", "--name", "ls")
    assert (refused.code, refused.out) == (2, "")
    mine = tmp_path / ".local" / "bin" / "mine"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("#!/bin/sh\necho mine\n")
    assert (
        "choose another name with --name"
        in program("profile", "alias", "work", "--name", "mine").err
    )
    assert mine.read_text() == "#!/bin/sh\necho mine\n"
    assert program("profile", "alias", "work", "--name", "../x").code == 2
    assert program("profile", "alias", "nosuch").code == 1


def test_the_commands_of_a_profile_go_with_it(program: Program, tmp_path: Path) -> None:
    program("profile", "create", "work")
    program("profile", "alias", "work", "--name", "at-work")
    assert program("profile", "delete", "work", "--yes").code == 0
    assert not list((tmp_path / ".local" / "bin").iterdir())


@pytest.mark.parametrize(
    ("scope", "variable", "line"),
    [
        ("api", "API_SERVER_KEY", "serve --port 0"),
        ("mcp", "HERMES_MCP_TOKEN", "mcp serve --http --port 0"),
    ],
)
def test_who_would_listen_with_the_token_of_another_home_is_refused(
    program: Program, monkeypatch: pytest.MonkeyPatch, scope: str, variable: str, line: str
) -> None:
    if scope == "mcp":
        pytest.importorskip("mcp")
    token, other = "token-of-two-homes-at-once-1", Home(program.work / "other")
    monkeypatch.setenv("HERMES_GATEWAY_LOCK_DIR", str(program.work / "claims"))
    monkeypatch.setenv(variable, token)
    program("profile", "create", "work")
    with hold_claim(scope, token, remedy="", home=other, env=process_environment()):
        result = program("-p", "work", *line.split())
    assert (result.code, result.out) == (1, "")
    assert f"{other.root} (process {os.getpid()}) listens with the same token" in result.err
    assert "its own" in result.err
    assert token not in result.err
