"""A verdict lists the files that a command changes."""

from __future__ import annotations

import pytest

from hermes.policy.findings import Verdict
from tests.policy.decisions import HOME, ROOT, command, rules


def verdict(script: str) -> Verdict:
    return rules().verdict(command(script))


@pytest.mark.parametrize(
    ("script", "touched"),
    [
        ("echo x > out.txt", ["out.txt"]),
        ("echo x >> logs/a.log 2>/dev/null", ["logs/a.log"]),
        ("rm -f a b", ["a", "b"]),
        ("rm -rf build/*", ["build"]),
        ("cd src && touch a.py", ["src/a.py"]),
        ("D=gen; mkdir -p $D/x", ["gen/x"]),
        ("sed -i s/a/b/ a.txt", ["a.txt"]),
        ("cp a.txt b.txt", ["b.txt"]),
        ("find . -name '*.log' -delete", [""]),
        ("python -c \"open('o.txt','w').write('x')\"", ["o.txt"]),
        ("bash -c 'truncate -s 0 a.log'", ["a.log"]),
        ("tar xzf a.tgz -C vendor", ["vendor"]),
    ],
)
def test_paths_that_are_named_are_told(script: str, touched: list[str]) -> None:
    assert list(verdict(script).touched) == [f"{ROOT}/{each}".rstrip("/") for each in touched]


def test_a_home_path_is_told_whole() -> None:
    assert verdict("rm ~/notes.txt").touched == (f"{HOME}/notes.txt",)


def test_both_ends_of_a_move_are_told() -> None:
    assert set(verdict("mv a.txt b.txt").touched) == {f"{ROOT}/a.txt", f"{ROOT}/b.txt"}


@pytest.mark.parametrize(
    "script",
    ["ls -la", "cd src && git status", "grep -rn x . | head", "cat a.txt > /dev/null", "git log"],
)
def test_looking_reads_only(script: str) -> None:
    assert verdict(script).reads_only


@pytest.mark.parametrize(
    "script", ["make", "npm test", "echo x > a", "python a.py", "rm a", "./run.sh", "unknown-x"]
)
def test_what_may_change_files_does_not_read_only(script: str) -> None:
    assert not verdict(script).reads_only


def test_an_unknown_name_is_not_guessed() -> None:
    assert verdict('rm -rf "$SOMEWHERE"').touched == ()
