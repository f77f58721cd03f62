"""What a script does to files, told from its text."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.effects import RunCommand
from hermes.policy.rules import PolicySettings, SessionPolicy
from hermes.undo.script_effects import ScriptEffects, read_script_effects
from tests.undo.scripts import SCRIPTS


def read(script: str, cwd: str = "/p") -> ScriptEffects:
    return read_script_effects(RunCommand(script=script, cwd=cwd), "/home/me")


@pytest.mark.parametrize(
    "script",
    [
        "ls -la",
        "cat a | sort | uniq -c > /dev/null",
        "git log --oneline | head -5",
        "cd src && grep -rn x . 2>&1",
        "sed -n 1,5p a",
        "find . -name '*.py'",
        "git -C sub status",
    ],
)
def test_scripts_that_only_read(script: str) -> None:
    assert read(script).reads_only


@pytest.mark.parametrize(
    "script",
    [
        "make",
        "python3 x.py",
        "echo $X",
        "rm `cat list`",
        "find . -exec rm {} +",
        "ls | xargs rm",
        "sort -o a a",
        "uniq a b",
        "rm ~other/x",
        "rm {a,b}",
        "cp -t d a b",
        "git log --output=x",
        "trap 'rm a' EXIT",
        "echo x >a\\ b",
        'echo x > "a b"c',
        "for f in *; do rm a; done",
    ],
)
def test_scripts_whose_effect_is_not_known_are_never_taken_for_harmless(script: str) -> None:
    assert not read(script).reads_only
    found = read(script)
    assert not found.complete or found.touches


@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("rm -rf a b/c", {("/p/a", "deleted"), ("/p/b/c", "deleted")}),
        ("chmod -x run.sh", {("/p/run.sh", "mode")}),
        ("mv a /tmp/b", {("/p/a", "any"), ("/tmp/b", "any")}),
        ("cp a b c", {("/p/c", "any")}),
        ("echo x >> log", {("/p/log", "any")}),
        ("echo x &>log", {("/p/log", "any")}),
        ("echo x >|log", {("/p/log", "any")}),
        ("sed -i -e s/a/b/ x y", {("/p/x", "any"), ("/p/y", "any")}),
        ("sed -i.bak s/a/b/ d/x", {("/p/d/x", "any"), ("/p/d", "any")}),
        ("dd if=a of=b", {("/p/b", "any")}),
        ("rm ~/x", {("/home/me/x", "deleted")}),
        ("cd d; rm x", {("/p/x", "deleted"), ("/p/d/x", "deleted")}),
        ("sudo rm x", {("/p/x", "deleted")}),
        ("find d -name x -delete", {("/p/d", "deleted")}),
        ("git clean -fd", {("/p", "deleted")}),
        ("git reset --hard", {("/p", "any")}),
    ],
)
def test_the_paths_that_are_touched(script: str, paths: set[tuple[str, str]]) -> None:
    found = read(script)
    assert {(touch.path, touch.how) for touch in found.touches} == paths
    assert found.complete


def test_patterns_and_links_lead_to_what_they_stand_for(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "real").mkdir()
    (root / "real" / "x.c").write_text("")
    (root / "link").symlink_to("real")
    found = read("rm link/*.c", str(root))
    assert found.can_explain(f"{root}/real/x.c", "deleted", mode_only=False)
    assert not found.can_explain(f"{root}/real/x.c", "changed", mode_only=False)
    assert not found.can_explain(f"{root}/other", "deleted", mode_only=False)


RULES = SessionPolicy(
    PolicySettings(), root="/p", home="/home/me", state="/home/me/.hermes", keep=lambda _: None
)


def followed(script: str) -> ScriptEffects:
    """With what the rules know of the script."""
    effect = RunCommand(script=script, cwd="/p")
    found = RULES.verdict(effect)
    intent = read_script_effects(effect, "/home/me")
    return intent.with_policy(reads_only=found.reads_only, touched=found.touched, root="/p")


@pytest.mark.parametrize(
    "script",
    [
        "for f in *.py; do wc -l $f; done",
        "grep -rn TODO src | awk '{print $1}' | sort | uniq -c",
        "find . -name '*.py' -exec grep -l x {} +",
        "x=$(date +%s); echo $x",
        "python3 --version",
        "timeout 5 tar tf x.tar",
    ],
)
def test_what_the_rules_follow_to_the_end_need_not_be_watched(script: str) -> None:
    assert not read(script).reads_only
    assert followed(script).reads_only


def test_the_rules_never_take_a_script_that_destroys_for_one_that_reads() -> None:
    assert [name for name, script in SCRIPTS.items() if followed(script).reads_only] == []


def test_paths_elsewhere_are_known_from_the_rules() -> None:
    script = 'd=/home/me/other; env bash -c "rm -rf $d"; make'
    assert "/home/me/other" not in read(script).names
    assert "/home/me/other" in followed(script).names
    # In the project all is looked at in any case, and what is named counts for more.
    assert "/p" not in followed("x=1; rm *$x.c").names
