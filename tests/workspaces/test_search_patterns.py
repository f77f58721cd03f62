"""What patterns mean in every engine, and what is said about those that no engine takes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hermes.core.errors import ToolError
from hermes.core.ports import SearchQuery
from hermes.workspaces.search.engines import EngineName, SearchLimits
from hermes.workspaces.search.local import LocalSearch


async def find(root: Path, pattern: str, engine: EngineName | None = None) -> list[str]:
    search = LocalSearch({"PATH": os.defpath}, engine=engine, limits=SearchLimits())
    found = await search.find(SearchQuery(pattern=pattern, root=str(root)))
    return [match.text for match in found.matches]


@pytest.mark.parametrize("engine", ["ripgrep", "grep", "python"])
@pytest.mark.parametrize(
    ("pattern", "line", "matches"),
    [
        ("gr.ße", "größe", True),
        ("^.{3}$", "äöü", True),
        (r"\bfoo\b", "a foo.", True),
        (r"\bfoo\b", "food", False),
        (r"\bböse\b", "das böse Wort", True),
        (r"^\w+$", "größe", True),
        ("(?i)ÄB", "äb", True),
        ("(?i:a)B", "AB", True),
        ("(?i:a)B", "Ab", False),
        (r"[^\w\s]", "a b", False),
        ("[[:upper:]]", "aB", True),
        ("[]a]", "]", True),
        ("[$]", "a$", True),
        (r"\$x", "$x", True),
        ("a|", "zzz", True),
        ("(?P<name>a)(?:b)", "ab", True),
        (r"\.\*\(", ".*(", True),
        ("a.*?b", "axxb", True),
        ("foo$", "foo\r", True),
        (r"\Aa\z", "a", True),
        ("[a-]", "-", True),
        (r"[\d-]", "-", True),
        ("[^é]", "é", False),
        (r"a[^\n]b", "axb", True),
    ],
)
async def test_patterns_mean_the_same_in_every_engine(
    tmp_path: Path, engine: EngineName, pattern: str, line: str, matches: bool
) -> None:
    if engine == "ripgrep" and not shutil.which("rg"):
        pytest.skip("ripgrep is not installed")
    (tmp_path / "x").write_bytes(line.encode() + b"\n")
    assert await find(tmp_path, pattern, engine) == ([line.removesuffix("\r")] if matches else [])


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("interface Foo {", "interface Foo {"),
        ("x{1,2", "x{1,2"),
        ("(?<!a)b", "xb"),
        ("b(?=c)", "abc"),
        (r"(\w)\1", "aa"),
        (r"a\Z", "a"),
        ("[[]", "["),
        (r"\x{41}\p{L}", "Aä"),
        ("a{5000}", "a" * 5000),
    ],
)
async def test_another_engine_takes_what_one_does_not_know(
    tmp_path: Path, pattern: str, line: str
) -> None:
    (tmp_path / "x").write_text(f"{line}\n")
    assert [text[:100] for text in await find(tmp_path, pattern)] == [line[:100]]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a(", "Invalid regex 'a\\(': missing \\)"),
        ("a)", "unbalanced parenthesis"),
        ("[a", "unterminated character set"),
        ("*a", "nothing to repeat"),
        ("a\nb", "line break"),
        (r"a\nb", "line break"),
        ("a\\", "bad escape"),
        ("[z-a]", "bad character range"),
        ("\udcff", "not valid Unicode"),
    ],
)
async def test_an_invalid_pattern_is_explained(tmp_path: Path, pattern: str, words: str) -> None:
    (tmp_path / "x").write_text("a\n")
    with pytest.raises(ToolError, match=words):
        await find(tmp_path, pattern)
