"""All engines must give the same answer, for any tree, any ignore rules and any pattern that
each of them accepts."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from hermes.core.errors import ToolError
from hermes.core.ports import SearchQuery, SearchResult
from hermes.workspaces.search.engines import EngineName, SearchLimits
from hermes.workspaces.search.local import LocalSearch

ENGINES: tuple[EngineName, ...] = ("ripgrep", "grep", "python")
INSTALLED = tuple(e for e in ENGINES if e != "ripgrep" or shutil.which("rg"))

NAMES = st.sampled_from(
    ["a", "b", "ab", "a.txt", "b.py", "c-d", "x y", ".h", ".git", "ä", "*", "#z"]
)
FOLDERS = st.sampled_from(["", "a/", "b/", "a/b/", "a.txt/", ".h/", "c-d/ä/", "b/a/b/"])
TEXT = st.text(alphabet="aAbB1_ .-äÄ\t", max_size=8)
CONTENT = st.lists(
    st.one_of(TEXT.map(str.encode), st.sampled_from([b"\xff a", b"ab\r", b"", b"\xc3", b"a\0b"])),
    max_size=5,
).map(b"\n".join)
RULES = st.lists(
    st.sampled_from(
        [
            "a", "/a", "a/", "!a", "*.txt", "!*.txt", "b/", "/b/a", "**/b", "a/**", "a/**/b",
            "*", "!*/", "[ab]", "[!a]", "?", "#z", "\\#z", "x y", "x\\ y ", "c-d/", "!/a/b",
            "*.py ", ".h", "!.h", "b/*", "a*b", "**", "/*", "!b.py", "ä", "/", "//", "a//b",
            "\\*", "[a-c]*", "!", "\\!a", "a\\", "[a", "***", "a/***", "a**b",
        ]
    ),
    max_size=5,
).map("\n".join)  # fmt: skip

ATOMS = st.sampled_from(
    [
        "a", "B", "ä", ".", "1", "_", "-", " ", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\.",
        "[ab]", "[^a]", "[^ä]", "[a-zä-ü]", "[]a^-]", r"[\w-]", r"[^\w ]", "[[:digit:]]", r"\b",
        "^", "$", r"\{", r"\[", r"[\]^]", "[-a]", r"\x41", r"\t", "(?i:aä)", "[^]^-]", r"[\\]",
    ]
)  # fmt: skip


def _bigger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    counts = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, counts).map(lambda pair: f"({pair[0]}){pair[1]}"),
        inner.map(lambda text: f"(?:{text})"),
    )


PATTERNS = st.tuples(
    st.sampled_from(["", "", "(?i)"]), st.recursive(ATOMS, _bigger, max_leaves=6)
).map("".join)


def _searcher(engine: EngineName) -> LocalSearch:
    return LocalSearch({"PATH": os.defpath}, engine=engine, limits=SearchLimits(seconds=20))


async def _answers(query: SearchQuery) -> dict[str, SearchResult | str]:
    found: dict[str, SearchResult | str] = {}
    for engine in INSTALLED:
        try:
            found[engine] = await _searcher(engine).find(query)
        except ToolError as error:
            found[engine] = str(error)
    return found


def _grown(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError:
            continue  # a file stands where a folder should be, or the other way round


TREES = given(
    files=st.dictionaries(st.tuples(FOLDERS, NAMES).map("".join), CONTENT, max_size=8),
    rules=st.dictionaries(FOLDERS, RULES, max_size=3),
    repository=st.sampled_from(["", "a/", "b/a/", None]),
    glob=st.sampled_from(["", "", "*.txt", "a", "a/*", "**/b", "!b", "{a,b}*", "[ab]", "*"]),
    hidden=st.booleans(),
    start=st.sampled_from(["", "", "a", "a/b"]),
)


def _choose_the_same(
    files: dict[str, bytes],
    rules: dict[str, str],
    repository: str | None,
    glob: str,
    hidden: bool,
    start: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        _grown(root, {f"{place}.gitignore": text.encode() for place, text in rules.items()})
        if repository is not None:
            _grown(root, {f"{repository}.git/HEAD": b""})
        _grown(root, files)
        where = str(root / start if (root / start).exists() else root)
        content = SearchQuery(pattern="", root=where, glob=glob, hidden=hidden)
        listing = SearchQuery(pattern=glob or "*", root=where, target="files", hidden=hidden)
        for answers in (asyncio.run(_answers(content)), asyncio.run(_answers(listing))):
            event(f"found {min(3, len(_found(answers).matches + _found(answers).files))}")
            assert all(answer == _found(answers) for answer in answers.values()), answers


def _found(answers: dict[str, SearchResult | str]) -> SearchResult:
    first = answers[INSTALLED[0]]
    assert isinstance(first, SearchResult)
    return first


TEXTS = (
    "", "a", "A", "ab", "aB1", "a b", "a-b", "a_b", " ", "\t", "1", "-", "^", "]", "[", "{", "\\",
    ".", "aaaa", "abab", "ab\r", "\r", "ä", "Ä", "aä", "äb", "AÄ", "ü", "€", "😀", "a😀b",
    "word another", "x.y", "...", "B" * 70_000, "context",
)  # fmt: skip
BROKEN = (b"\xff", b"a\xffb", b"\xc3", b"\xc3a", b"\xed\xa0\x80", b"\xf0\x9f\x98")
CORPUS = b"\n".join((*(text.encode() for text in TEXTS), *BROKEN))


def _is_complete(answer: SearchResult | str) -> bool:
    return isinstance(answer, SearchResult) and not answer.cut


def _on_valid_lines(answer: SearchResult | str) -> SearchResult:
    """Classes may match bytes that are not UTF-8 in Python, and not elsewhere; the last valid line
    may be shown as the context of such a match."""
    assert isinstance(answer, SearchResult)
    return SearchResult(matches=tuple(m for m in answer.matches if m.line < len(TEXTS)))


def _match_the_same(pattern: str, context: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        (root / "corpus").write_bytes(CORPUS)
        query = SearchQuery(pattern=pattern, root=str(root), context=context)
        answers = asyncio.run(_answers(query))
    # An engine may refuse an expression, or take too long for it on a long line.
    said = [_on_valid_lines(each) for each in answers.values() if _is_complete(each)]
    event(f"{len(answers) - len(said)} refused or cut")
    assert said, answers
    first = said[0]
    event(f"{len(first.matches) // 10}x10 lines")
    assert all(answer == first for answer in said), answers


quick = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
long = settings(max_examples=1_000, deadline=None, suppress_health_check=list(HealthCheck))

test_engines_choose_the_same_files = quick(TREES(_choose_the_same))
test_engines_match_the_same_lines = quick(
    given(pattern=PATTERNS, context=st.sampled_from([0, 0, 1]))(_match_the_same)
)
test_engines_choose_the_same_files_for_long = pytest.mark.slow(long(TREES(_choose_the_same)))
test_engines_match_the_same_lines_for_long = pytest.mark.slow(
    long(given(pattern=PATTERNS, context=st.sampled_from([0, 0, 1]))(_match_the_same))
)
