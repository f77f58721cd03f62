"""Completion in a real shell, for every command there is."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.surfaces.cli.lines import COMMANDS
from tests.surfaces.cli.program import Program

ASK = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_hermes; printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(program: Program, *words: str) -> list[str]:
    script = program.work / "completion.bash"
    if not script.exists():
        script.write_text(program("completion", "bash").out)
    quoted = " ".join(f"'{word}'" for word in ("hermes", *words))
    run = subprocess.run(
        ["bash", "--norc", "-c", ASK.format(script=script, words=quoted)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stderr == ""
    return run.stdout.split()


def test_commands_subcommands_and_options_are_completed(program: Program) -> None:
    assert completed(program, "sess") == ["sessions"]
    assert completed(program, "sessions", "ren") == ["rename"]
    assert completed(program, "sessions", "list", "--lim") == ["--limit"]
    assert completed(program, "--prov") == ["--provider"]
    assert completed(program, "-p", "work", "skills", "tap", "") == [
        "add",
        "list",
        "remove",
        "--help",
    ]
    assert completed(program, "sessions", "show", "list", "--j") == ["--json"]


def test_every_command_is_in_every_script(program: Program) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = program("completion", shell).out
        for path in COMMANDS:
            assert all(word in script for word in path.split()), (shell, path)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_its_shell_understands(program: Program, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = program.work / "script"
    script.write_text(program("completion", shell).out)
    subprocess.run([shell, "-n", str(script)], check=True, timeout=60)


def test_another_shell_is_wrong_usage(program: Program) -> None:
    assert program("completion", "tcsh").code == 2
