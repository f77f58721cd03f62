"""Functions and aliases that earlier commands defined are followed."""

from __future__ import annotations

import pytest

from hermes.core.effects import Allow, Ask, RunCommand
from hermes.core.ports import ShellSetup
from hermes.policy.rules import PolicySettings, SessionPolicy

WIPE = "{0} () \n{{ \n    rm -rf important\n}}\n"
HEREDOC = "z () \n{ \n    cat <<E\n}\nls () \n{ \n    true\n}\nE\n\n}\n"
ODD = "ls () \n{ \n    case x in (((\n}\n"


def decided(script: str, shell: ShellSetup, cwd: str = "/home/me") -> object:
    rules = SessionPolicy(
        PolicySettings(),
        root="/home/me/p",
        home="/home/me",
        state="/home/me/.hermes",
        keep=lambda _: None,
        shell=lambda: shell,
    )
    return rules.decide(RunCommand(script=script, cwd=cwd), "owner", frozenset())


@pytest.mark.parametrize(
    ("definitions", "script"),
    [
        (WIPE.format("ls"), "ls"),
        (WIPE.format("ls"), "true && ls -la | cat"),
        (WIPE.format("ls"), "bash -c ls"),
        ("alias ls='rm -rf important'\n", "ls"),
        ("alias ls='rm -rf '\\''important'\\'''\n", "ls"),
        (WIPE.format("a") + "b () \n{ \n    a\n}\n", "b"),
        ("alias b='a'\n" + WIPE.format("a"), "b"),
        (WIPE.format("ls") + HEREDOC, "ls"),
        (HEREDOC + WIPE.format("ls"), "ls"),
        (ODD, "ls"),
        ("rm () \n{ \n    true\n}\n", "rm -rf important"),
        ("alias rm='true'\n", "rm -rf important"),
        ('rm () \n{ \n    command rm "$@"\n}\n', "rm -rf important"),
    ],
)
def test_a_name_with_another_meaning_is_asked_about(definitions: str, script: str) -> None:
    assert isinstance(decided(script, ShellSetup(definitions=definitions)), Ask)


@pytest.mark.parametrize(
    ("shell", "script"),
    [
        (ShellSetup(definitions=WIPE.format("wipe")), "ls -la"),
        (ShellSetup(definitions=ODD, own=ODD), "ls"),
        (ShellSetup(definitions="alias ls='ls --color'\nalias grep='grep -n'\n"), "ls | grep x"),
        (ShellSetup(definitions="hi () \n{ \n    echo hi\n}\n"), "hi"),
        (ShellSetup(definitions="cd () \n{ \n    builtin cd \"$@\" && ls\n}\n"), "cd p"),
        (ShellSetup(path="/home/me/.local/bin:/usr/bin:/bin"), "ls"),
    ],
)  # fmt: skip
def test_what_does_no_harm_is_not(shell: ShellSetup, script: str) -> None:
    assert isinstance(decided(script, shell), Allow)


@pytest.mark.parametrize(
    "script",
    [
        'rm() { command rm "$@"; }; rm -rf ~/important',
        'rm() { env rm "$@"; }; rm -rf ~/important',
        "rm() { true; }; env rm -rf ~/important",
        "rm() { true; }; bash -c 'rm -rf ~/important'",
        "alias rm=true; xargs rm -rf <<< ~/important",
        "rm() { true; }; find ~/important -exec rm -rf {} +",
        "cd() { builtin cd ~; rm -rf important; }; cd .",
        "trap 'rm -rf important' DEBUG; cd ~; cd -",
        "command_not_found_handle() { rm -rf important; }",
        "printf 'rm -rf ~/important' > bin/wc; chmod +x bin/wc; PATH=bin:$PATH wc x",
        "printf 'rm -rf ~/important' > wc; chmod +x wc; PATH=: wc x",
    ],
)
def test_a_definition_hides_no_program(script: str) -> None:
    assert isinstance(decided(script, ShellSetup(), cwd="/home/me/p"), Ask)
