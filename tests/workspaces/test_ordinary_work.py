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
from hermes.workspaces.confinement.sandbox import Confinement, Wanted, find_means
from hermes.workspaces.confinement.scope import repository_of
from hermes.workspaces.files import find_program
from hermes.workspaces.local import LocalWorkspace
from tests.workspaces.elsewhere import folder_at_home
from tests.workspaces.places import Inhabited, confined_missing

ENV = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
KEYS = {".ssh/id_ed25519": "KEY", ".kube/config": "KEY", ".npmrc": "KEY", ".aws/credentials": "KEY"}


class Desk(Inhabited):
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

    def new(self) -> LocalWorkspace:
        return LocalWorkspace(
            str(self.root),
            state=self.agent / "sessions" / "1",
            world=World(),
            env={**ENV, "HOME": str(self.home)},
            confinement=Confinement(
                wanted=self.wanted, ordinary=True, network=True, hidden=(str(self.agent),)
            ),
        )

    def git(self, *words: str, at: Path | None = None) -> None:
        environment = {**ENV, "HOME": str(self.home)}
        subprocess.run(("git", *words), cwd=at or self.root, env=environment, check=True)


@pytest.fixture
def outside() -> Iterator[Path]:
    with folder_at_home() as folder:
        yield folder


@pytest.fixture(params=["landlock", "bubblewrap"])
async def desk(request: pytest.FixtureRequest, outside: Path) -> AsyncIterator[Desk]:
    if why := confined_missing(request.param):
        pytest.skip(why)
    desk = Desk(outside, request.param)
    yield desk
    await desk.close()


async def test_keys_and_the_home_of_hermes_are_closed_and_the_home_folder_is_read_only(
    desk: Desk,
) -> None:
    paths = (*(desk.home / name for name in KEYS), desk.agent / ".env")
    for path in paths:
        assert "KEY" not in await desk.output(f"cat {path}")
    await desk.run("echo x > ~/new; echo x >> ~/.bashrc; rm ~/.gitconfig")
    assert sorted(path.name for path in desk.home.iterdir() if path.is_file()) == [
        ".gitconfig",
        ".npmrc",
    ]


async def test_temporary_files_are_those_of_the_machine(desk: Desk, tmp_path: Path) -> None:
    await desk.run(f"echo shared > {tmp_path}/file")
    assert (tmp_path / "file").read_text() == "shared\n"


async def test_tools_keep_their_downloads_where_they_always_do(desk: Desk) -> None:
    await desk.run("mkdir -p ~/.cache/pip && echo x > ~/.cache/pip/wheel")
    assert (desk.home / ".cache/pip/wheel").read_text() == "x\n"


async def test_a_tool_that_is_used_for_the_first_time_finds_its_folder(desk: Desk) -> None:
    (desk.root / "cargo").write_text("#!/bin/sh\necho got > ~/.cargo/registry\n")
    (desk.root / "cargo").chmod(0o755)
    await desk.run("PATH=.:$PATH cargo fetch")
    assert (desk.home / ".cargo/registry").read_text() == "got\n"


async def test_a_program_reads_its_own_keys_when_it_runs_alone(desk: Desk) -> None:
    for name, key in (("kubectl", ".kube/config"), ("aws", ".aws/credentials")):
        (desk.root / name).write_text(f"#!/bin/sh\ncat ~/{key}\n")
        (desk.root / name).chmod(0o755)
    assert await desk.output("PATH=.:$PATH kubectl get pods | head -3") == "KEY"
    assert "KEY" not in await desk.output("PATH=.:$PATH kubectl get pods; python3 --version")
    assert "KEY" not in await desk.output("cat ~/.kube/config")


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


async def test_the_work_of_git_with_its_settings_goes_through(desk: Desk) -> None:
    desk.git("init", "-q")
    script = (
        "git config user.name B && git remote add o git@h:x.git && git checkout -qb topic && "
        "echo 1 > a && git add a && git commit -qm one && git branch -q --set-upstream-to=topic; "
        "git config user.name; git remote"
    )
    assert "B\no\n" in await desk.output(script)
    assert "[remote" in (desk.root / ".git/config").read_text()


async def test_settings_of_git_that_name_programs_are_put_back(desk: Desk) -> None:
    desk.git("init", "-q")
    result = await desk.run("git config core.fsmonitor evil; git config user.name B")
    assert "[Reverted, because" in result.output
    assert "evil" not in (desk.root / ".git/config").read_text()
    shutil.rmtree(desk.root / ".git")
    await desk.run("git init -q .; git config core.pager evil; git remote add o u")
    config = (desk.root / ".git/config").read_text()
    assert "evil" not in config and "[remote" in config


async def test_a_folder_inside_a_repository_can_be_committed_but_not_hooked(desk: Desk) -> None:
    desk.git("init", "-q", at=desk.home)
    await desk.close()
    desk.workspace = desk.new()
    assert repository_of(str(desk.root)) == str(desk.home / ".git")
    hook = "echo evil > ../.git/hooks/post-commit; git config core.hooksPath evil"
    words = await desk.output(f"echo 1 > a; git add a; git commit -qm one; git log | wc -l; {hook}")
    assert words.startswith("5\n")
    assert not (desk.home / ".git/hooks/post-commit").exists()
    assert "evil" not in (desk.home / ".git/config").read_text()


async def test_a_worktree_can_be_committed(desk: Desk) -> None:
    desk.git("init", "-q")
    desk.git("commit", "-q", "--allow-empty", "-m", "one")
    tree = desk.home / "tree"
    desk.git("worktree", "add", "-q", str(tree))
    await desk.close()
    desk.root = tree
    desk.workspace = desk.new()
    assert await desk.output("echo 1 > a; git add a; git commit -qm two; git log | wc -l") == "11\n"


async def test_sockets_between_a_programs_own_processes_work(desk: Desk) -> None:
    script = "python3 -c 'from multiprocessing import Manager as M; print(M().list([1]))'"
    assert await desk.output(script) == "[1]\n"


async def test_what_somebody_has_allowed_is_not_confined(desk: Desk) -> None:
    outside = desk.home / "wanted"
    refused = await desk.run(f"echo x > {outside}")
    assert not outside.exists() and "Commands are confined" in refused.output
    await desk.run(f"echo x > {outside}", grants=("/",))
    assert outside.read_text() == "x\n"
    assert await desk.output("cat ~/.ssh/id_ed25519", grants=("/",)) == "KEY"
    await desk.run("export KEPT=1; cd ~", grants=("/",))
    assert await desk.output("echo $KEPT $PWD") == f"1 {desk.home}\n"


async def test_what_is_spilled_for_the_model_can_be_read_by_commands(desk: Desk) -> None:
    path = await desk.workspace.scratch("result.txt", b"all of it\n")
    assert await desk.output(f"cat {path}") == "all of it\n"


async def test_a_home_that_changes_meanwhile_is_seen_by_the_next_command(desk: Desk) -> None:
    assert "No such file" in await desk.output("cat ~/later")
    (desk.home / "later").write_text("here\n")
    assert await desk.output("cat ~/later") == "here\n"
    (desk.home / ".docker").mkdir()
    (desk.home / ".docker/config.json").write_text("KEY")
    assert "KEY" not in await desk.output("cat ~/.docker/config.json")


async def test_a_workspace_with_keys_in_it_is_confined_by_mounts(outside: Path) -> None:
    if why := confined_missing("bubblewrap"):
        pytest.skip(why)
    desk = Desk(outside, "auto")
    desk.root = desk.home
    await desk.close()
    workspace = desk.workspace = desk.new()
    assert (await workspace.protection()).kind == "bubblewrap"
    await desk.run("echo x > new")
    assert (desk.home / "new").read_text() == "x\n"
    assert "KEY" not in await desk.output("cat .ssh/id_ed25519")
    await desk.close()


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
