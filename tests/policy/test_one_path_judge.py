"""A path gets the same answer whether a file tool or a command touches it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.core.effects import Ask, Decision, DeletePath, Effect, ReadPath, WritePath
from tests.policy.decisions import HOME, decide, rules

READ = [
    "README.md",
    ".env",
    ".env.example",
    "config/.env.production",
    "/etc/hosts",
    "/etc/shadow",
    "/home/other/x",
    "/root/notes.txt",
    f"{HOME}/notes.txt",
    f"{HOME}/.ssh/id_ed25519",
    f"{HOME}/.hermes/config.yaml",
    "/proc/1/environ",
    "/proc/cpuinfo",
    "/srv/people/other/a.txt",
    "/tmp/a.txt",
]
WRITE = [
    "src/main.py",
    "AGENTS.md",
    ".env",
    ".git/config",
    "/etc/hosts",
    "/etc/passwd",
    "/usr/local/bin/app",
    "/home/other/x",
    f"{HOME}/notes.txt",
    f"{HOME}/.bashrc",
    f"{HOME}/.ssh/authorized_keys",
    f"{HOME}/.hermes/config.yaml",
    "/srv/people/other/a.txt",
    "/tmp/a.txt",
    "/tmp/deep/a.txt",
]
DELETE = ["src/main.py", ".env", "/etc/passwd", f"{HOME}/notes.txt", "/tmp/a.txt", ".git/config"]


def by_file_tool(effect: Effect) -> Decision:
    """The decision without the scope "folder": only the question of a file tool is about one known
    folder, so only it can be answered for one."""
    decision = decide(effect)
    if not isinstance(decision, Ask):
        return decision
    return replace(decision, scopes=tuple(each for each in decision.scopes if each != "folder"))


@pytest.mark.parametrize("path", READ)
def test_reading(path: str) -> None:
    by_tool, by_command = by_file_tool(ReadPath(path=path)), decide(f"cat {path}")
    assert by_tool == by_command


@pytest.mark.parametrize("path", WRITE)
def test_writing(path: str) -> None:
    by_tool, by_command = by_file_tool(WritePath(path=path)), decide(f"echo x > {path}")
    assert by_tool == by_command


@pytest.mark.parametrize("path", DELETE)
def test_deleting(path: str) -> None:
    by_tool, by_command = decide(DeletePath(path=path)), decide(f"rm {path}")
    assert by_tool == by_command


def test_another_persons_file_is_asked_about_by_both() -> None:
    assert decide("cat /home/other/x").category == "outside"  # type: ignore[union-attr]
    assert by_file_tool(ReadPath(path="/home/other/x")) == decide("cat /home/other/x")


def test_a_hard_link_to_a_credential_is_one_for_commands_too(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("key")
    project = tmp_path / "project"
    project.mkdir()
    os.link(tmp_path / ".ssh" / "id_rsa", project / "data.bin")
    by = rules(root=str(project), home=str(tmp_path))
    by_tool = decide(ReadPath(path="data.bin"), by)
    by_command = decide(f"cat {project}/data.bin", by)
    assert by_tool == by_command
    assert by_tool.category == "credentials"  # type: ignore[union-attr]
