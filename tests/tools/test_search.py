from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from hermes.core.effects import ReadPath
from hermes.core.messages import joined_text
from hermes.core.tools import ToolOutput
from hermes.core.world import World
from hermes.tools.search import search_files
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.search.engines import SearchLimits

if TYPE_CHECKING:
    from tests.tools.conftest import ToolRunner


@pytest.fixture
async def shelf(runner: ToolRunner, tmp_path: Path) -> AsyncIterator[ToolRunner]:
    """The runner with a real search, which stops at 100 matches."""
    workspace = LocalWorkspace(
        str(runner.root),
        state=tmp_path / "state",
        world=World(),
        env={"PATH": os.defpath},
        limits=SearchLimits(matches=100),
    )
    runner.workspace = cast(Any, workspace)
    yield runner
    await workspace.close()


def said(output: ToolOutput) -> str:
    return joined_text(output.parts)


async def test_matches_are_grouped_by_file(shelf: ToolRunner) -> None:
    shelf.put("src/a.py", "def one():\n    pass\ndef two():\n")
    shelf.put("b.py", "def three():\n")
    output = await shelf.run(search_files, pattern=r"^def \w+")
    assert said(output) == "b.py\n1: def three():\nsrc/a.py\n1: def one():\n3: def two():"
    assert output.details == {
        "total_count": 3,
        "files": [str(shelf.root / "b.py"), str(shelf.root / "src/a.py")],
        "truncated": False,
    }


async def test_nothing_found_is_an_answer(shelf: ToolRunner) -> None:
    output = await shelf.run(search_files, pattern="x")
    assert (said(output), output.failed) == ("Nothing found.", False)


async def test_pages_keep_the_context_of_their_matches(shelf: ToolRunner) -> None:
    shelf.put("x", "1\nhit a\n3\n4\n5\n6\nhit b\n8\nhit c\n")
    first = await shelf.run(search_files, pattern="hit", context=1, limit=1)
    note = "[3 matches; showing 1-1; continue with offset=1]"
    assert said(first) == f"x\n1- 1\n2: hit a\n3- 3\n{note}"
    second = await shelf.run(search_files, pattern="hit", context=1, limit=2, offset=1)
    assert said(second) == "x\n6- 6\n7: hit b\n8- 8\n9: hit c\n[3 matches; showing 2-3]"
    assert second.details["truncated"] is False


async def test_files_only_and_counts(shelf: ToolRunner) -> None:
    shelf.put("a", "hit\nhit\n")
    shelf.put("b", "hit\n")
    files = await shelf.run(search_files, pattern="hit", output_mode="files_only")
    assert (said(files), files.details["total_count"]) == ("a\nb", 2)
    counts = await shelf.run(search_files, pattern="hit", output_mode="count")
    assert (said(counts), counts.details["total_count"]) == ("a: 2\nb: 1", 3)


async def test_files_by_name_newest_first(shelf: ToolRunner) -> None:
    for age, name in enumerate(("new.py", "sub/mid.py", "old.py")):
        os.utime(shelf.put(name, ""), (1_700_000_000 - age, 1_700_000_000 - age))
    shelf.put("x.txt", "")
    output = await shelf.run(search_files, pattern="*.py", target="files")
    assert said(output) == "new.py\nsub/mid.py\nold.py"
    page = await shelf.run(search_files, pattern="*.py", target="files", limit=1, offset=1)
    assert said(page) == "sub/mid.py\n[3 files; showing 2-2; continue with offset=2]"


async def test_hidden_files_are_found_when_named(shelf: ToolRunner) -> None:
    shelf.put(".github/ci.yml", "on: push\n")
    shelf.put(".env.example", "on\n")
    assert said(await shelf.run(search_files, pattern="on")) == "Nothing found."
    named = await shelf.run(search_files, pattern="on", file_glob=".github/*.yml")
    assert said(named) == ".github/ci.yml\n1: on: push"
    found = await shelf.run(search_files, pattern="{.env*,x}", target="files")
    assert said(found) == ".env.example"


async def test_a_search_cut_short_says_so(shelf: ToolRunner) -> None:
    shelf.put("x", "hit\n" * 500)
    output = await shelf.run(search_files, pattern="hit", limit=2)
    assert said(output).endswith("[100+ matches; showing 1-2; continue with offset=2]")
    whole = await shelf.run(search_files, pattern="hit", limit=500)
    assert said(whole).endswith("[100+ matches; the search was cut short]")
    assert whole.details["truncated"] is True


async def test_long_lines_are_cut(shelf: ToolRunner) -> None:
    shelf.put("x", f"hit{'x' * 1_000}\n")
    assert said(await shelf.run(search_files, pattern="hit")) == f"x\n1: hit{'x' * 497}…"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pattern": "("}, "Invalid regex"),
        ({"pattern": ""}, "empty"),
        ({"pattern": "x", "path": "nowhere"}, "does not exist"),
        ({"pattern": "x", "file_glob": "[a"}, "Invalid glob"),
    ],
)
async def test_what_cannot_be_searched_is_told(
    shelf: ToolRunner, arguments: dict[str, Any], words: str
) -> None:
    output = await shelf.run(search_files, **arguments)
    assert output.failed
    assert words in said(output)


async def test_the_same_search_without_news_is_refused_in_the_end(shelf: ToolRunner) -> None:
    shelf.put("x", "hit\n")
    outputs = [await shelf.run(search_files, pattern="hit") for _ in range(4)]
    texts = [said(output) for output in outputs]
    assert texts[:2] == ["x\n1: hit"] * 2
    assert "third time" in texts[2]
    assert outputs[3].failed
    assert "4 times" in texts[3]
    shelf.put("y", "hit\n")
    assert said(await shelf.run(search_files, pattern="hit")) == "x\n1: hit\ny\n1: hit"


async def test_paths_outside_the_folder_stay_absolute(shelf: ToolRunner, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("hit\n")
    output = await shelf.run(search_files, pattern="hit", path=str(outside))
    assert said(output) == f"{outside}/x\n1: hit"


async def test_stop_ends_the_search(shelf: ToolRunner) -> None:
    shelf.put("x", "hit\n")
    shelf.stop.set()
    async with asyncio.timeout(60):
        output = await shelf.run(search_files, pattern="hit")
    assert said(output) == "The search was interrupted."


async def test_the_effect_is_the_root(shelf: ToolRunner) -> None:
    assert shelf.effects(search_files, pattern="x") == [ReadPath(path=str(shelf.root))]
