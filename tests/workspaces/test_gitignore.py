"""Git itself is the judge of our reading of .gitignore."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.core.errors import ToolError
from hermes.core.ports import SearchQuery
from hermes.workspaces.search.selection import FileGlob, Selection

NAMES = ("a", "b", "ab", "a.b", "x y", "-", "[a]", "*", "!a", "#a", "a\\", " a")
PATHS = [*NAMES, *(f"{top}/{name}" for top in ("a", "b/c") for name in NAMES), "b/c/d/e/a.b"]
LINES = st.one_of(
    st.text(alphabet="ab/*?[]!\\# .-^", min_size=1, max_size=7),
    st.sampled_from(
        [
            "a", "/a", "a/", "*.b", "**", "**/b", "a/**", "a/**/b", "*/a", "!a", "!a/b", "\\!a",
            "\\#a", "#a", "x\\ y", "a ", "a\\ ", "[!a]", "[[:alpha:]]", "b/../a", "/*", "!/a",
            "a/*", "!a/*", "a.?", "[a-c]", "\\*", "**/a/**", "?", "*a*", "a\\\\", "[]-]", "[",
            "a//b",
        ]
    ),
)  # fmt: skip


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(top=st.lists(LINES, max_size=5), below=st.lists(LINES, max_size=3))
def test_git_leaves_out_the_same_files(top: list[str], below: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        names = _grown(root, top, below)
        ignored = _ignored_by_git(root, names)
        walk = Selection(SearchQuery(pattern="x", root=str(root))).walk()
        taken = {str(Path(path).relative_to(root)) for path in walk}
    assert taken == names - ignored


def _grown(root: Path, top: list[str], below: list[str]) -> set[str]:
    subprocess.run(["git", "init", "-q", str(root)], check=True, env=_git_env())
    names = {path for path in PATHS if path not in ("a", "b")}
    for path in names:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    (root / ".gitignore").write_text("\n".join(top))
    (root / "a" / ".gitignore").write_text("\n".join(below))
    return names


def _ignored_by_git(root: Path, names: set[str]) -> set[str]:
    done = subprocess.run(
        ["git", "check-ignore", "-z", "--no-index", "--stdin"],
        cwd=root, input="\0".join(names).encode(), capture_output=True, check=False, env=_git_env(),
    )  # fmt: skip
    return {name.decode() for name in done.stdout.split(b"\0") if name}


def _git_env() -> dict[str, str]:
    return {"PATH": os.defpath, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.mark.parametrize(
    ("glob", "path", "taken"),
    [
        ("*.py", "a/b.py", True),
        ("*.py", "a/b.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "lib/src/a.py", False),
        ("src/*.py", "src/a/b.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("**/test_*", "a/b/test_x", True),
        ("*.{ts,tsx}", "a.tsx", True),
        ("{src,lib}/**", "lib/x", True),
        ("{a,b{c,d}}", "bd", True),
        ("!*.py", "a.py", False),
        ("!*.py", "a.ts", True),
        ("./src/", "src/x/y", True),
        ("config", "deep/config", True),
        ("config", "config.yaml", False),
        ("[a-c]?", "bz", True),
        ("", "anything", True),
    ],
)
def test_globs_choose_paths(glob: str, path: str, taken: bool) -> None:
    assert FileGlob(glob).takes(path) is taken


def test_a_glob_that_explodes_is_refused() -> None:
    with pytest.raises(ToolError, match="too many"):
        FileGlob("{a,b}" * 12)
