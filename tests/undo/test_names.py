"""A reader that was given another meaning hides nothing from undo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.core.effects import RunCommand
from hermes.core.ports import ShellSetup
from hermes.policy.rules import PolicySettings, SessionPolicy
from hermes.undo.script_effects import ScriptEffects, has_redefined_names, read_script_effects
from tests.undo.conftest import Agent, picture

WRECK = "rm -rf d; echo lost > a"
HIDDEN = (
    (f"ls() {{ {WRECK}; }}", "ls"),
    (f"function cat {{ {WRECK}; }}", "cat b"),
    (f"alias ls='{WRECK}'", "ls -la"),
    (f"eval 'wc() {{ {WRECK}; }}'", "wc -l b"),
    ("echo 'rm -rf d; echo lost > a' > e; echo 'head() { . ./e; }' > f", ". ./f", "head b"),
    (f"mkdir bin; printf '#!/bin/sh\n{WRECK}\n' > bin/stat; chmod +x bin/stat",
     "export PATH=$PWD/bin:$PATH", "stat b"),
    (f"mkdir bin; printf '#!/bin/sh\n{WRECK}\n' > bin/du; chmod +x bin/du", "PATH=bin:$PATH du b"),
    (f"mkdir bin; printf '#!/bin/sh\n{WRECK}\n' > bin/df; chmod +x bin/df", "PATH=./bin:/bin df"),
    (f"printf '{WRECK}' > env.sh", "export BASH_ENV=$PWD/env.sh", "ls"),
    (f"printf '#!/bin/sh\n{WRECK}\n' > pager; chmod +x pager; git init -q .",
     "export GIT_EXTERNAL_DIFF=$PWD/pager; echo 1 > g; git add g; echo 2 > g", "git diff"),
    (f"command_not_found_handle() {{ {WRECK}; }}; no_such_reader",),
    (f"ls() {{ {WRECK}; }}; ls",),
    (f"trap '{WRECK}' EXIT; ls",),
    (f"trap '{WRECK}' DEBUG; ls",),
    (f"shopt -s expand_aliases; alias ls='{WRECK}'\nls",),
    (f"PROMPT_COMMAND='{WRECK}'; ls; eval \"$PROMPT_COMMAND\"",),
    (f"cd() {{ {WRECK}; builtin cd \"$@\"; }}", "cd d2"),
    (f"export -f ls 2>/dev/null; ls() {{ {WRECK}; }}; export -f ls", "bash -c ls"),
)  # fmt: skip


@pytest.mark.parametrize("informed", [False, True], ids=["by text", "by rules"])
@pytest.mark.parametrize("scripts", HIDDEN, ids=lambda scripts: scripts[0][:40])
async def test_what_a_renamed_reader_destroys_comes_back(
    scripts: tuple[str, ...], informed: bool, tmp_path: Path
) -> None:
    agent = Agent(tmp_path, touched=by_rules(tmp_path) if informed else None)
    agent.fill({"a": "work\n", "b": "b\n", "d/x": "x\n", "d2/y": "y\n"})
    begun = picture(agent.root, times=False)
    for script in scripts:
        await agent.run(script)
    changed = picture(agent.root, times=False)
    agent.undo()
    assert changed != begun
    assert picture(agent.root, times=False) == begun
    await agent.close()


def by_rules(folder: Path) -> Callable[[RunCommand], ScriptEffects]:
    """As sessions do it: what the text does not tell, the rules may know."""
    root, home = str(folder / "project"), str(folder / "home")
    rules = SessionPolicy(PolicySettings(), root=root, home=home, state=home, keep=lambda _: None)

    def touched(effect: RunCommand) -> ScriptEffects:
        intent = read_script_effects(effect, home)
        if intent.complete:
            return intent
        verdict = rules.verdict(effect)
        return intent.with_policy(reads_only=verdict.reads_only, touched=verdict.touched, root=root)

    return touched


HELLO = "hello () \n{ \n    echo hi\n}\nalias ll='ls -l'\n"


@pytest.mark.parametrize(
    ("script", "shell"),
    [
        ("ls -la", ShellSetup(definitions=HELLO, variables=("DEBUG",))),
        ("ll", ShellSetup(definitions=HELLO, own=HELLO)),
        ("cat a | wc -l", ShellSetup(variables=("PATH",), path="/p/.venv/bin:/usr/bin:/bin")),
    ],
)
def test_readers_that_nobody_renamed_are_believed(script: str, shell: ShellSetup) -> None:
    assert not has_redefined_names(script, shell, cwd="/p", root="/p")
    assert has_redefined_names(
        "hello", replace(shell, definitions=HELLO, own=""), cwd="/p", root="/p"
    )
