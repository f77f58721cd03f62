"""What confined commands cannot do, tried for real with every means that this kernel has."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.core.effects import RunCommand
from hermes.core.errors import ToolError
from hermes.core.ports import CommandResult
from hermes.core.world import World
from hermes.workspaces.confinement.sandbox import Confinement, Sandbox, Wanted, find_means
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.local import LocalWorkspace
from tests.workspaces.places import confined_missing

SECRETS = {
    ".ssh/id_ed25519": "KEY",
    ".aws/credentials": "KEY",
    ".gnupg/secring.gpg": "KEY",
    ".kube/config": "KEY",
    ".docker/config.json": "KEY",
    ".config/google-chrome/Cookies": "KEY",
    ".netrc": "KEY",
    ".bash_history": "KEY",
}


class Cell:
    def __init__(self, folder: Path, wanted: Wanted) -> None:
        folder = folder.resolve()
        self.wanted = wanted
        self.root, self.home = folder / "project", folder / "home"
        self.agent, self.state = folder / "agent", folder / "agent" / "sessions" / "1"
        self.env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.home)}
        for path, text in SECRETS.items():
            (self.home / path).parent.mkdir(parents=True, exist_ok=True)
            (self.home / path).write_text(text)
        (self.home / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@b.example\n")
        self.root.mkdir()
        self.state.mkdir(parents=True)
        (self.agent / ".env").write_text("OPENAI_API_KEY=KEY")
        self.workspace = self.new()

    def confinement(self, **changes: object) -> Confinement:
        settings = {"wanted": self.wanted, "hidden": (str(self.agent),), **changes}
        return Confinement(**settings)  # type: ignore[arg-type]

    def protection(self, **changes: object) -> ConfinementReport:
        confinement = self.confinement(**changes)
        return Sandbox(confinement, str(self.root), self.state, self.env).protection()

    def new(self, **changes: object) -> LocalWorkspace:
        return LocalWorkspace(
            str(self.root),
            state=self.state,
            world=World(),
            env=self.env,
            confinement=self.confinement(**changes),
        )

    async def run(self, script: str) -> CommandResult:
        return await self.workspace.run(
            RunCommand(script=script, cwd=self.workspace.cwd),
            timeout=60,
            stop=asyncio.Event(),
            max_bytes=50_000,
        )

    async def repository(self) -> None:
        """Made from outside, as a person's is."""
        made = await asyncio.create_subprocess_exec(
            "git", "init", "-q", str(self.root), env={"PATH": os.environ["PATH"], "HOME": "/"}
        )
        assert await made.wait() == 0


@pytest.fixture(params=["bubblewrap", "landlock"])
async def cell(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cell]:
    if why := confined_missing(request.param):
        pytest.skip(why)
    cell = Cell(tmp_path, request.param)
    yield cell
    await cell.workspace.close()


async def test_secrets_of_the_home_and_of_hermes_cannot_be_read(cell: Cell) -> None:
    paths = [str(cell.home / path) for path in SECRETS] + [str(cell.agent / ".env")]
    for path in paths:
        result = await cell.run(f"cat {path}")
        assert "KEY" not in result.output, path
    result = await cell.run(f"grep -rs KEY ~ {cell.agent}; find ~ -name id_ed25519 2>/dev/null")
    assert result.output == ""
    assert (
        await cell.run("cat ~/.gitconfig")
    ).output == "[user]\n\tname = A\n\temail = a@b.example\n"


async def test_secrets_behind_links_are_hidden_too(cell: Cell, tmp_path: Path) -> None:
    real = cell.home / "vault"
    real.mkdir()
    (real / "hosts.yml").write_text("KEY")
    (cell.home / ".config" / "gh").symlink_to(real)
    assert "KEY" not in (await cell.run("cat ~/vault/hosts.yml ~/.config/gh/hosts.yml")).output


async def test_only_the_workspace_and_temporary_files_can_be_changed(
    cell: Cell, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("kept")
    targets = (outside, cell.home / "new", cell.home / ".bashrc", Path("/etc/hermes-test"))
    for target in targets:
        await cell.run(f"echo changed > {target}; rm -f {target}; truncate -s0 {target}")
    assert outside.read_text() == "kept"
    assert [target.exists() for target in targets[1:]] == [False, False, False]
    await cell.run('echo here > file; echo there > "${TMPDIR:-/tmp}/file"; mkdir -p a/b; mv file a')
    assert (await cell.run('cat a/file "${TMPDIR:-/tmp}/file"')).output == "here\nthere\n"
    assert (cell.root / "a" / "file").read_text() == "here\n"


async def test_links_in_the_private_place_lead_nowhere(cell: Cell) -> None:
    private = cell.state / "confined"
    for name in ("cache", "tmp"):
        await cell.run(f"rm -rf {private}/{name}; ln -s {cell.home} {private}/{name}")
    await cell.run(f"for it in {private}/cache /tmp $TMPDIR; do echo x > $it/planted; done")
    assert not (cell.home / "planted").exists()


async def test_no_link_can_be_put_where_the_next_command_expects_a_folder(cell: Cell) -> None:
    """So there is no moment between a look at these folders and their use that matters."""
    private = cell.state / "confined"
    await cell.run("true")
    for name in ("cache", "tmp", "notes"):
        await cell.run(
            f"mv {private}/{name} {private}/x; rm -rf {private}/{name}; "
            f"ln -sfn {cell.home} {private}/{name}; ln -s {cell.home} {private}/new"
        )
        assert (private / name).is_dir() and not (private / name).is_symlink()
    assert sorted(each.name for each in private.iterdir()) == ["cache", "notes", "tmp"]


@pytest.mark.parametrize("swap", ["rm -rf .git; ln -s {0} .git", "mv .git g; ln -s {0} .git"])
async def test_putting_names_back_follows_no_link_of_a_command(cell: Cell, swap: str) -> None:
    await cell.repository()
    (cell.root / ".git" / "hooks" / "pre-commit").write_text("exit 0\n")
    (cell.home / "other" / "hooks").mkdir(parents=True)
    for name in ("config", "hooks/pre-commit", "hooks/own"):
        (cell.home / "other" / name).write_text("mine\n")
    await cell.run(swap.format(cell.home / "other"))
    for name in ("config", "hooks/pre-commit", "hooks/own"):
        assert (cell.home / "other" / name).read_text() == "mine\n"
    assert not (cell.root / ".git").is_symlink()
    assert (cell.root / ".git" / "config").read_text().startswith("[core]")


async def test_other_processes_and_their_secrets_are_out_of_reach(cell: Cell) -> None:
    victim = await asyncio.create_subprocess_exec("sleep", "60", env={"TOKEN": "KEY"})
    try:
        result = await cell.run(f"kill -9 {victim.pid}; tr '\\0' '\\n' </proc/{victim.pid}/environ")
        assert "KEY" not in result.output
        assert victim.returncode is None
    finally:
        victim.kill()
        await victim.wait()


async def test_the_network_is_closed_unless_the_settings_open_it(cell: Cell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"exec 5<>/dev/tcp/127.0.0.1/{port} && echo through"
        assert "through" not in (await cell.run(connect)).output
        await cell.workspace.close()
        cell.workspace = cell.new(network=True)
        assert (await cell.run(connect)).output == "through\n"


async def test_no_new_privileges_and_no_capabilities(cell: Cell) -> None:
    result = await cell.run("grep -E 'NoNewPrivs|CapEff' /proc/self/status")
    assert result.output.split() == ["CapEff:", "0" * 16, "NoNewPrivs:", "1"]


@pytest.mark.parametrize(
    "script",
    [
        "echo evil > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
        "printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/config",
        "mv .git moved; cp -r moved .git; echo evil > .git/hooks/post-commit",
        "rm -rf .git/hooks; mkdir .git/hooks; echo evil > .git/hooks/post-commit",
        "echo ../other > .git/commondir",
        "echo evil > .envrc",
        "ln -s /tmp/evil .bashrc",
        "mkdir .vscode; echo evil > .vscode/tasks.json",
    ],
)
async def test_reserved_names_are_not_written_even_if_missing(cell: Cell, script: str) -> None:
    await cell.repository()
    config = (cell.root / ".git" / "config").read_text()
    hooks = sorted(path.name for path in (cell.root / ".git" / "hooks").iterdir())
    await cell.run(script)
    assert (cell.root / ".git" / "config").read_text() == config
    assert sorted(path.name for path in (cell.root / ".git" / "hooks").iterdir()) == hooks
    left = [".envrc", ".bashrc", ".git/commondir", ".vscode/tasks.json"]
    assert [name for name in left if there(cell.root / name)] == []


def there(path: Path) -> bool:
    return os.path.lexists(path)


async def test_what_was_taken_away_is_told_and_kept(cell: Cell) -> None:
    result = await cell.run("echo evil > .envrc; echo done")
    assert result.output.startswith("done\n[Reverted, because")
    assert ".envrc" in result.output
    [kept] = (cell.state / "quarantine").iterdir()
    assert kept.read_text() == "evil\n"


async def test_ordinary_work_with_git_goes_through(cell: Cell) -> None:
    begin = "git init -q . && echo x > file && git add . && git commit -qm one && echo good"
    assert (await cell.run(begin)).output == "good\n"
    again = "echo y > file; git commit -qam two; git log --oneline | wc -l; git status --short"
    assert (await cell.run(again)).output == "2\n"
    assert (cell.root / ".git" / "config").exists()


async def test_a_new_repository_does_not_bring_a_hook_along(cell: Cell) -> None:
    await cell.run("git init -q . && echo evil > .git/hooks/post-commit")
    await cell.run("true")
    assert not (cell.root / ".git" / "hooks" / "post-commit").exists()


async def test_background_processes_are_confined_too(cell: Cell) -> None:
    script = f"cat ~/.ssh/id_ed25519; echo x > {cell.home}/new; echo evil > .envrc; echo end"
    effect = RunCommand(script=script, cwd=cell.workspace.cwd, background=True)
    info = await cell.workspace.spawn(effect)
    ended = await cell.workspace.processes.wait(info.id, timeout=60, stop=asyncio.Event())
    assert ended.status == "exited"
    assert "KEY" not in ended.output
    assert not (cell.home / "new").exists()
    assert ".envrc was changed while this ran" in ended.output


async def test_the_records_of_hermes_are_not_in_reach_of_commands(cell: Cell) -> None:
    await cell.run("export A=1")
    snapshot = cell.state / "shell-confined" / "snapshot.json"
    before = snapshot.read_text()
    await cell.run(f"echo '{{}}' > {snapshot}; cat {snapshot}")
    assert snapshot.read_text() == before


async def test_what_confined_commands_define_stays_among_them(cell: Cell) -> None:
    await cell.run("ls() { echo trap; }; export PATH=/evil:$PATH")
    await cell.workspace.close()
    cell.workspace = cell.new(wanted="off")
    result = await cell.run("type -t ls; echo $PATH")
    assert "function" not in result.output and "/evil" not in result.output


async def test_protection_says_what_holds(cell: Cell) -> None:
    protection = cell.protection()
    assert (protection.kind, protection.confined) == (cell.wanted, True)
    assert any("no network" in line for line in protection.details)
    protection = cell.protection(network=True)
    assert any("network is open" in line for line in protection.details)
    assert "a command can send what it can read" in protection.gaps


async def test_a_wanted_means_that_is_missing_stops_commands(tmp_path: Path) -> None:
    workspace = LocalWorkspace(
        str(tmp_path),
        state=tmp_path / "state",
        world=World(),
        env={"PATH": str(tmp_path / "empty"), "HOME": str(tmp_path)},
        confinement=Confinement(wanted="bubblewrap"),
    )
    effect = RunCommand(script="touch ran", cwd=workspace.cwd)
    with pytest.raises(ToolError, match="bubblewrap: not installed"):
        await workspace.run(effect, timeout=60, stop=asyncio.Event(), max_bytes=999)
    assert not (tmp_path / "ran").exists()
    await workspace.close()
    env = {"PATH": str(tmp_path / "empty")}
    sandbox = Sandbox(Confinement(wanted="bubblewrap"), str(tmp_path), tmp_path / "state", env)
    protection = sandbox.protection()
    assert (protection.kind, protection.gaps) == ("none", ("bubblewrap: not installed",))


def test_without_confinement_protection_says_none(tmp_path: Path) -> None:
    protection = Sandbox(Confinement(), str(tmp_path), tmp_path, {}).protection()
    assert protection.kind == "none" and not protection.confined


def test_a_bubblewrap_that_does_not_work_is_passed_over(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho bwrap: no permission >&2; exit 1\n")
    fake.chmod(0o755)
    means, obstacles = find_means("bubblewrap", str(tmp_path))
    assert (means, obstacles) == (None, ("bwrap: no permission",))
