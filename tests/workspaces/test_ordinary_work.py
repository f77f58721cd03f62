"""Confined as by default: what people do all day works, and their keys stay out of reach."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hermes.core.world import World
from hermes.workspaces.confinement.programs import find_needs
from hermes.workspaces.confinement.sandbox import Confinement, Sandbox, Wanted, find_means
from hermes.workspaces.confinement.scope import repository_of
from hermes.workspaces.files import find_program
from hermes.workspaces.local import LocalWorkspace
from tests.workspaces.elsewhere import folder_at_home
from tests.workspaces.places import WorkspaceSession, confined_missing

ENV = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
KEYS = {".ssh/id_ed25519": "KEY", ".kube/config": "KEY", ".npmrc": "KEY", ".aws/credentials": "KEY"}


class HomeSession(WorkspaceSession):
    """A person's home and a project in it, not among temporary files."""

    def __init__(self, folder: Path, wanted: Wanted) -> None:
        self.wanted: Wanted = wanted
        self.home, self.agent = folder / "home", folder / "agent"
        self.root = self.home / "project"
        self.root.mkdir(parents=True)
        (self.home / ".cache").mkdir()
        for name, text in KEYS.items():
            (self.home / name).parent.mkdir(exist_ok=True)
            (self.home / name).write_text(text)
        (self.home / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@b.example\n")
        self.agent.mkdir()
        (self.agent / ".env").write_text("KEY")
        super().__init__()

    @property
    def env(self) -> dict[str, str]:
        return {**ENV, "HOME": str(self.home)}

    @property
    def confinement(self) -> Confinement:
        hidden = (str(self.agent),)
        return Confinement(wanted=self.wanted, ordinary=True, network=True, hidden=hidden)

    def sandbox(self) -> Sandbox:
        return Sandbox(self.confinement, str(self.root), self.agent / "sessions" / "1", self.env)

    def new(self) -> LocalWorkspace:
        return LocalWorkspace(
            str(self.root),
            state=self.agent / "sessions" / "1",
            world=World(),
            env=self.env,
            confinement=self.confinement,
        )

    def git(self, *words: str, at: Path | None = None) -> None:
        subprocess.run(("git", *words), cwd=at or self.root, env=self.env, check=True)


@pytest.fixture
def outside() -> Iterator[Path]:
    with folder_at_home() as folder:
        yield folder


@pytest.fixture(params=["landlock", "bubblewrap"])
async def session(request: pytest.FixtureRequest, outside: Path) -> AsyncIterator[HomeSession]:
    if why := confined_missing(request.param):
        pytest.skip(why)
    session = HomeSession(outside, request.param)
    yield session
    await session.close()


async def test_keys_and_the_home_of_hermes_are_closed_and_the_home_folder_is_read_only(
    session: HomeSession,
) -> None:
    paths = (*(session.home / name for name in KEYS), session.agent / ".env")
    for path in paths:
        assert "KEY" not in await session.output(f"cat {path}")
    await session.run("echo x > ~/new; echo x >> ~/.bashrc; rm ~/.gitconfig")
    assert sorted(path.name for path in session.home.iterdir() if path.is_file()) == [
        ".gitconfig",
        ".npmrc",
    ]


async def test_temporary_files_are_those_of_the_machine(
    session: HomeSession, tmp_path: Path
) -> None:
    await session.run(f"echo shared > {tmp_path}/file")
    assert (tmp_path / "file").read_text() == "shared\n"


async def test_tools_keep_their_downloads_where_they_always_do(session: HomeSession) -> None:
    await session.run("mkdir -p ~/.cache/pip && echo x > ~/.cache/pip/wheel")
    assert (session.home / ".cache/pip/wheel").read_text() == "x\n"


async def test_a_tool_that_is_used_for_the_first_time_finds_its_folder(
    session: HomeSession,
) -> None:
    (session.root / "cargo").write_text("#!/bin/sh\necho got > ~/.cargo/registry\n")
    (session.root / "cargo").chmod(0o755)
    await session.run("PATH=.:$PATH cargo fetch")
    assert (session.home / ".cargo/registry").read_text() == "got\n"


async def test_a_program_reads_its_own_keys_when_it_runs_alone(session: HomeSession) -> None:
    for name, key in (("kubectl", ".kube/config"), ("aws", ".aws/credentials")):
        (session.root / name).write_text(f"#!/bin/sh\ncat ~/{key}\n")
        (session.root / name).chmod(0o755)
    assert await session.output("PATH=.:$PATH kubectl get pods | head -3") == "KEY"
    assert "KEY" not in await session.output("PATH=.:$PATH kubectl get pods; python3 --version")
    assert "KEY" not in await session.output("cat ~/.kube/config")


@pytest.mark.parametrize(
    ("script", "keys"),
    [
        ("git fetch origin", True),
        ("cd x && git pull --rebase && git log | head", True),
        ("git status", False),
        ("git fetch && make", False),
        ("git fetch $(./x)", False),
        ("npm ci", True),
        ("npm test", False),
        ("cargo build", False),
        ("echo git fetch", False),
    ],
)
def test_which_scripts_may_see_keys(script: str, keys: bool) -> None:
    assert bool(find_needs(script).keys) is keys


async def test_the_work_of_git_with_its_settings_goes_through(session: HomeSession) -> None:
    session.git("init", "-q")
    script = (
        "git config user.name B && git remote add o git@h:x.git && git checkout -qb topic && "
        "echo 1 > a && git add a && git commit -qm one && git branch -q --set-upstream-to=topic; "
        "git config user.name; git remote"
    )
    assert "B\no\n" in await session.output(script)
    assert "[remote" in (session.root / ".git/config").read_text()


async def test_settings_of_git_that_name_programs_are_put_back(session: HomeSession) -> None:
    session.git("init", "-q")
    result = await session.run("git config core.fsmonitor evil; git config user.name B")
    assert "[Reverted, because" in result.output
    assert "evil" not in (session.root / ".git/config").read_text()
    shutil.rmtree(session.root / ".git")
    await session.run("git init -q .; git config core.pager evil; git remote add o u")
    config = (session.root / ".git/config").read_text()
    assert "evil" not in config and "[remote" in config


async def test_a_folder_inside_a_repository_can_be_committed_but_not_hooked(
    session: HomeSession,
) -> None:
    session.git("init", "-q", at=session.home)
    await session.close()
    session.workspace = session.new()
    assert repository_of(str(session.root)) == str(session.home / ".git")
    hook = "echo evil > ../.git/hooks/post-commit; git config core.hooksPath evil"
    words = await session.output(
        f"echo 1 > a; git add a; git commit -qm one; git log | wc -l; {hook}"
    )
    assert words.startswith("5\n")
    assert not (session.home / ".git/hooks/post-commit").exists()
    assert "evil" not in (session.home / ".git/config").read_text()


async def test_a_worktree_can_be_committed(session: HomeSession) -> None:
    session.git("init", "-q")
    session.git("commit", "-q", "--allow-empty", "-m", "one")
    tree = session.home / "tree"
    session.git("worktree", "add", "-q", str(tree))
    await session.close()
    session.root = tree
    session.workspace = session.new()
    assert (
        await session.output("echo 1 > a; git add a; git commit -qm two; git log | wc -l") == "11\n"
    )


async def test_sockets_between_a_programs_own_processes_work(session: HomeSession) -> None:
    script = "python3 -c 'from multiprocessing import Manager as M; print(M().list([1]))'"
    assert await session.output(script) == "[1]\n"


async def test_what_somebody_has_allowed_is_not_confined(session: HomeSession) -> None:
    outside = session.home / "wanted"
    refused = await session.run(f"echo x > {outside}")
    assert not outside.exists() and "Commands are confined" in refused.output
    await session.run(f"echo x > {outside}", grants=("/",))
    assert outside.read_text() == "x\n"
    assert await session.output("cat ~/.ssh/id_ed25519", grants=("/",)) == "KEY"
    await session.run("export KEPT=1; cd ~", grants=("/",))
    assert await session.output("echo $KEPT $PWD") == f"1 {session.home}\n"


async def test_what_is_spilled_for_the_model_can_be_read_by_commands(
    session: HomeSession,
) -> None:
    path = await session.workspace.scratch("result.txt", b"all of it\n")
    assert await session.output(f"cat {path}") == "all of it\n"


async def test_a_home_that_changes_meanwhile_is_seen_by_the_next_command(
    session: HomeSession,
) -> None:
    assert "No such file" in await session.output("cat ~/later")
    (session.home / "later").write_text("here\n")
    assert await session.output("cat ~/later") == "here\n"
    (session.home / ".docker").mkdir()
    (session.home / ".docker/config.json").write_text("KEY")
    assert "KEY" not in await session.output("cat ~/.docker/config.json")


async def test_a_workspace_with_keys_in_it_is_confined_by_mounts(outside: Path) -> None:
    if why := confined_missing("bubblewrap"):
        pytest.skip(why)
    session = HomeSession(outside, "auto")
    session.root = session.home
    await session.close()
    session.workspace = session.new()
    assert session.sandbox().protection().kind == "bubblewrap"
    await session.run("echo x > new")
    assert (session.home / "new").read_text() == "x\n"
    assert "KEY" not in await session.output("cat .ssh/id_ed25519")
    await session.close()


def test_nothing_fails_where_nothing_works(tmp_path: Path) -> None:
    means, obstacles = find_means("auto", str(tmp_path), mounts=True)
    assert "bubblewrap: not installed" in obstacles
    assert means is None or type(means).__name__ == "Landlock"


def test_a_program_is_found_behind_a_folder_that_cannot_be_looked_into(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    good = tmp_path / "bin"
    good.mkdir()
    (good / "tool").write_text("")
    (good / "tool").chmod(0o755)
    longest = "x" * 5_000
    found = find_program("tool", f"{tmp_path}/a:{longest}:bad\0name:{good}")
    assert found == str(good / "tool")
