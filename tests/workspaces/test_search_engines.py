"""What every engine must find, and in which order."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from hermes.core.errors import ToolError
from hermes.core.ports import SearchMatch, SearchQuery, SearchResult
from hermes.workspaces.search.engines import EngineName, SearchLimits
from hermes.workspaces.search.local import LocalSearch

ENGINES: tuple[EngineName, ...] = ("ripgrep", "grep", "python")
INSTALLED = tuple(e for e in ENGINES if e != "ripgrep" or shutil.which("rg"))
PATHS = {"PATH": os.defpath}

engines = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture(autouse=True)
def _skip_without_ripgrep(request: pytest.FixtureRequest) -> None:
    callspec = getattr(request.node, "callspec", None)
    if callspec and callspec.params.get("engine") == "ripgrep" and "ripgrep" not in INSTALLED:
        pytest.skip("ripgrep is not installed")


def searcher(engine: EngineName, limits: SearchLimits | None = None) -> LocalSearch:
    return LocalSearch(PATHS, engine=engine, limits=limits or SearchLimits())


def tree(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


async def lines(
    engine: EngineName, root: Path, pattern: str, *, glob: str = "", hidden: bool = False
) -> list[str]:
    query = SearchQuery(pattern=pattern, root=str(root), glob=glob, hidden=hidden)
    found = await searcher(engine).find(query)
    return [f"{Path(m.path).relative_to(root)}:{m.line}:{m.text}" for m in found.matches]


async def names(engine: EngineName, root: Path, pattern: str, *, hidden: bool = False) -> set[str]:
    query = SearchQuery(pattern=pattern, root=str(root), target="files", hidden=hidden)
    found = await searcher(engine).find(query)
    return {str(Path(path).relative_to(root)) for path in found.files}


@engines
async def test_matches_come_by_path_and_line(engine: EngineName, tmp_path: Path) -> None:
    tree(
        tmp_path,
        {"b/z.txt": "one\n", "b.txt": "one\n", "a.txt": "two\none\nno one\n", "b-c/x": "one"},
    )
    assert await lines(engine, tmp_path, "one") == [
        "a.txt:2:one",
        "a.txt:3:no one",
        "b/z.txt:1:one",
        "b-c/x:1:one",
        "b.txt:1:one",
    ]


@engines
async def test_a_single_file_is_searched_even_if_ignored(
    engine: EngineName, tmp_path: Path
) -> None:
    tree(tmp_path, {".gitignore": "*.log\n", "x.log": "a hit\n"})
    query = SearchQuery(pattern="hit", root=str(tmp_path / "x.log"))
    found = await searcher(engine).find(query)
    assert found.matches == (SearchMatch(path=str(tmp_path / "x.log"), line=1, text="a hit"),)


@engines
async def test_ignore_files_nest_and_negate(engine: EngineName, tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            ".gitignore": "*.log\nbuild/\n/only-top\ndeep/**/x\n!keep.log\n",
            "a.log": "hit",
            "keep.log": "hit",
            "only-top": "hit",
            "sub/only-top": "hit",
            "build/out": "hit",
            "sub/build": "hit",
            "deep/1/2/x": "hit",
            "sub/.gitignore": "keep.log\n!a.log\n",
            "sub/keep.log": "hit",
            "sub/a.log": "hit",
        },
    )
    assert await lines(engine, tmp_path, "hit") == [
        "keep.log:1:hit",
        "sub/a.log:1:hit",
        "sub/build:1:hit",
        "sub/only-top:1:hit",
    ]


@engines
async def test_rules_of_a_repository_hold_in_its_folders(
    engine: EngineName, tmp_path: Path
) -> None:
    tree(
        tmp_path,
        {
            ".gitignore": "outside\n",
            "repo/.git/HEAD": "hit",
            "repo/.gitignore": "/src/gen\n",
            "repo/src/gen": "hit",
            "repo/src/outside": "hit",
            "repo/src/main": "hit",
        },
    )
    assert await lines(engine, tmp_path / "repo" / "src", "hit") == ["main:1:hit", "outside:1:hit"]
    assert await lines(engine, tmp_path, "hit", hidden=True) == [
        "repo/src/main:1:hit",
        "repo/src/outside:1:hit",
    ]


@engines
async def test_hidden_files_and_git_itself_are_left_out(engine: EngineName, tmp_path: Path) -> None:
    tree(tmp_path, {".hidden": "hit", ".dir/x": "hit", ".git/config": "hit", "seen": "hit"})
    assert await lines(engine, tmp_path, "hit") == ["seen:1:hit"]
    assert await lines(engine, tmp_path, "hit", hidden=True) == [
        ".dir/x:1:hit",
        ".hidden:1:hit",
        "seen:1:hit",
    ]


@engines
async def test_binary_files_and_links_are_skipped(engine: EngineName, tmp_path: Path) -> None:
    tree(tmp_path, {"bin": b"hit\n\0", "late": b"hit\n" + b"x" * 300_000 + b"\0", "text": "hit\n"})
    (tmp_path / "link").symlink_to(tmp_path / "text")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert await lines(engine, tmp_path, "hit") == ["text:1:hit"]


@engines
async def test_text_that_is_not_utf8_is_searched(engine: EngineName, tmp_path: Path) -> None:
    tree(tmp_path, {"latin": "caf\xe9 au lait\n".encode("latin-1"), "utf": "café au lait\n"})
    assert await lines(engine, tmp_path, "au lait$") == [
        "latin:1:caf� au lait",
        "utf:1:café au lait",
    ]
    assert await lines(engine, tmp_path, "caf. au") == ["utf:1:café au lait"]


@engines
async def test_context_lines_are_marked(engine: EngineName, tmp_path: Path) -> None:
    tree(tmp_path, {"x": "1\n2\nhit\n4\n5\n6\n7\n8\nhit\n"})
    query = SearchQuery(pattern="hit", root=str(tmp_path), context=1)
    found = await searcher(engine).find(query)
    shown = [(m.line, m.is_context) for m in found.matches]
    assert shown == [(2, True), (3, False), (4, True), (8, True), (9, False)]


@engines
async def test_windows_line_ends_are_no_part_of_a_line(engine: EngineName, tmp_path: Path) -> None:
    tree(tmp_path, {"x": "first end\r\n\r\nsecond end\n"})
    assert await lines(engine, tmp_path, "end$") == ["x:1:first end", "x:3:second end"]
    assert await lines(engine, tmp_path, "^$") == ["x:2:"]


@engines
async def test_globs_narrow_the_files(engine: EngineName, tmp_path: Path) -> None:
    tree(tmp_path, {"a.py": "x", "b.ts": "x", "src/c.tsx": "x", "src/d/e.py": "x"})
    assert await lines(engine, tmp_path, "x", glob="*.py") == ["a.py:1:x", "src/d/e.py:1:x"]
    assert await lines(engine, tmp_path, "x", glob="*.{ts,tsx}") == ["b.ts:1:x", "src/c.tsx:1:x"]
    assert await lines(engine, tmp_path, "x", glob="src/**/*.py") == ["src/d/e.py:1:x"]
    assert await lines(engine, tmp_path, "x", glob="!*.py") == ["b.ts:1:x", "src/c.tsx:1:x"]
    assert await lines(engine, tmp_path, "x", glob="src/") == ["src/c.tsx:1:x", "src/d/e.py:1:x"]


@engines
async def test_files_come_newest_first(engine: EngineName, tmp_path: Path) -> None:
    tree(tmp_path, {"old.md": "", "mid.md": "", "sub/new.md": "", "other.txt": ""})
    for age, name in enumerate(("sub/new.md", "mid.md", "old.md")):
        os.utime(tmp_path / name, (1_700_000_000 - age, 1_700_000_000 - age))
    query = SearchQuery(pattern="*.md", root=str(tmp_path), target="files")
    found = await searcher(engine).find(query)
    assert [Path(path).name for path in found.files] == ["new.md", "mid.md", "old.md"]


@engines
async def test_a_search_stops_at_its_limit_in_order(engine: EngineName, tmp_path: Path) -> None:
    tree(tmp_path, {f"f{n:02}": "hit\n" * 10 for n in range(20)})
    query = SearchQuery(pattern="hit", root=str(tmp_path))
    found = await searcher(engine, SearchLimits(matches=25)).find(query)
    assert found.cut
    assert [Path(m.path).name for m in found.matches] == ["f00"] * 10 + ["f01"] * 10 + ["f02"] * 5
    exact = await searcher(engine, SearchLimits(matches=200)).find(query)
    assert (len(exact.matches), exact.cut) == (200, False)


@engines
async def test_long_lines_are_cut(engine: EngineName, tmp_path: Path) -> None:
    tree(tmp_path, {"min.js": "x" * 500_000 + "hit\nhit\n"})
    query = SearchQuery(pattern="hit", root=str(tmp_path))
    found = await searcher(engine, SearchLimits(line_bytes=100)).find(query)
    assert [(m.line, len(m.text)) for m in found.matches] == [(1, 100), (2, 3)]


@engines
async def test_what_cannot_be_searched_is_told(engine: EngineName, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="Invalid regex"):
        await lines(engine, tmp_path, "a(")
    with pytest.raises(ToolError, match="does not exist"):
        await lines(engine, tmp_path / "nowhere", "a")
    with pytest.raises(ToolError, match="Invalid glob"):
        await names(engine, tmp_path, "a[")


async def test_a_pattern_that_takes_for_ever_is_ended(tmp_path: Path) -> None:
    tree(tmp_path, {"a": "first\n", "b": "a" * 40 + "b\n"})
    search = searcher("python", SearchLimits(seconds=1.5))
    found = await search.find(SearchQuery(pattern="first|(a+)+$", root=str(tmp_path)))
    assert found == SearchResult(
        matches=(SearchMatch(path=str(tmp_path / "a"), line=1, text="first"),), cut=True
    )


async def test_a_pattern_too_large_for_grep_goes_to_the_next_engine(tmp_path: Path) -> None:
    tree(tmp_path, {"x": "a\nb\n"})
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "grep").symlink_to(str(shutil.which("grep")))
    search = LocalSearch({"PATH": str(programs)}, engine=None, limits=SearchLimits())
    query = SearchQuery(pattern="(?:a{70000})?b", root=str(tmp_path), glob="x")
    assert [m.line for m in (await search.find(query)).matches] == [2]


async def test_a_cancelled_search_leaves_no_program_behind(tmp_path: Path) -> None:
    tree(tmp_path, {"b": "a" * 60 + "b\n"})
    search = searcher("python", SearchLimits(seconds=60))
    query = SearchQuery(pattern="(a+)+$", root=str(tmp_path))
    before = _children()
    task = asyncio.create_task(search.find(query))
    for _ in range(6_000):
        if started := _children() - before:
            break
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started
    assert not started & _children()


def _children() -> set[int]:
    folders = Path("/proc/self/task").glob("*/children")
    return {int(pid) for folder in folders for pid in folder.read_text().split()}
