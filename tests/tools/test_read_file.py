from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.effects import ReadPath
from hermes.core.messages import joined_text
from hermes.core.tools import ToolOutput, ToolSettings
from hermes.tools.files.access import ReadLog, digest
from hermes.tools.files.read import make_page, read_file

if TYPE_CHECKING:
    from tests.tools.conftest import ToolRunner

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def said(output: ToolOutput) -> str:
    return joined_text(output.parts)


async def test_lines_are_numbered_and_a_final_newline_is_no_line(runner: ToolRunner) -> None:
    path = runner.put("a.txt", "one\n\nthree\n")
    assert await runner.run(read_file, path="a.txt") == ToolOutput.text(
        "1|one\n2|\n3|three",
        details={
            "path": path,
            "digest": digest(b"one\n\nthree\n").hex(),
            "file_size": 11,
            "total_lines": 3,
            "start": 1,
            "shown": 3,
            "truncated": False,
        },
    )


async def test_a_cut_read_names_the_next_offset(runner: ToolRunner) -> None:
    runner.put("a.txt", "".join(f"line {n}\n" for n in range(1, 11)))
    output = await runner.run(read_file, path="a.txt", offset=3, limit=2)
    assert said(output) == "3|line 3\n4|line 4\n[lines 3-4 of 10; next_offset=5]"
    assert output.details["next_offset"] == 5
    assert output.details["truncated"] is True


async def test_the_default_is_500_lines_and_the_most_is_2000(runner: ToolRunner) -> None:
    runner.put("a.txt", "x\n" * 5000)
    assert (await runner.run(read_file, path="a.txt")).details["shown"] == 500
    assert (await runner.run(read_file, path="a.txt", limit=9999)).details["shown"] == 2000


async def test_a_long_line_is_cut_and_says_so(runner: ToolRunner) -> None:
    runner.put("a.txt", "x" * 2500 + "\nshort\n")
    output = await runner.run(read_file, path="a.txt")
    assert said(output) == f"1|{'x' * 2000}… (500 more characters)\n2|short"


async def test_a_large_read_is_cut_on_a_line(runner: ToolRunner) -> None:
    runner.put("a.txt", ("y" * 999 + "\n") * 300)
    output = await runner.run(read_file, path="a.txt")
    assert len(said(output)) < 100_100
    assert output.details["next_offset"] == output.details["shown"] + 1
    assert said(output).splitlines()[-2].endswith("y" * 999)


async def test_an_empty_file_is_called_empty(runner: ToolRunner) -> None:
    runner.put("a.txt", "")
    output = await runner.run(read_file, path="a.txt")
    assert (said(output), output.failed) == ("(the file is empty)", False)


async def test_an_offset_behind_the_end_is_an_error(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\ntwo\n")
    output = await runner.run(read_file, path="a.txt", offset=5)
    assert output.failed
    assert "has 2 lines" in said(output)


async def test_a_missing_file_brings_similar_names(runner: ToolRunner) -> None:
    path = runner.put("src/settings.py", "")
    runner.put("src/other.md", "")
    output = await runner.run(read_file, path="src/setings.py")
    assert output.failed
    assert output.details["similar_files"] == [path]
    assert path in said(output)


async def test_a_missing_folder_is_a_missing_file(runner: ToolRunner) -> None:
    output = await runner.run(read_file, path="no/where.py")
    assert output.failed
    assert output.details["similar_files"] == []


async def test_binary_files_and_pictures_are_not_shown(runner: ToolRunner) -> None:
    runner.put("a.bin", b"\x00\x01\x02hello")
    runner.put("b.dat", PNG)
    binary = await runner.run(read_file, path="a.bin")
    assert (binary.failed, binary.details["is_binary"]) == (True, True)
    picture = await runner.run(read_file, path="b.dat")
    assert (picture.failed, picture.details["media_type"]) == (True, "image/png")
    assert "vision_analyze" in said(picture)


async def test_a_folder_is_not_read(runner: ToolRunner) -> None:
    runner.put("src/a.py", "")
    output = await runner.run(read_file, path="src")
    assert output.failed
    assert "is a folder" in said(output)


@pytest.mark.parametrize(
    "path",
    ["/dev/zero", "/dev/../dev/stdin", "/dev/tty", "/proc/self/fd/0", "/proc/1/task/1/fd/2"],
)
async def test_devices_are_refused(runner: ToolRunner, path: str) -> None:
    output = await runner.run(read_file, path=path)
    assert output.failed
    assert "not a file" in said(output)


async def test_a_link_to_a_device_and_a_pipe_are_refused(runner: ToolRunner) -> None:
    (runner.root / "link").symlink_to("/dev/zero")
    os.mkfifo(runner.root / "pipe")
    for path in ("link", "pipe"):
        assert (await runner.run(read_file, path=path)).failed


async def test_an_empty_path_is_an_error_without_effects(runner: ToolRunner) -> None:
    assert runner.effects(read_file, path=" ") == []
    assert (await runner.run(read_file, path=" ")).failed


async def test_the_effect_is_to_read_the_resolved_path(runner: ToolRunner) -> None:
    path = runner.put("real.txt", "x")
    (runner.root / "link.txt").symlink_to(path)
    assert runner.effects(read_file, path="link.txt") == [ReadPath(path=path)]


async def test_text_that_is_not_utf_8_is_shown_with_a_note(runner: ToolRunner) -> None:
    runner.put("a.txt", "Grüße\n".encode("cp1252"))
    runner.put("b.txt", "Grüße\r\n".encode("utf-16"))
    assert said(await runner.run(read_file, path="a.txt")) == (
        "1|Grüße\n[not UTF-8, read as cp1252]"
    )
    assert said(await runner.run(read_file, path="b.txt")) == "1|Grüße"


async def test_the_same_lines_again_are_not_repeated_then_warned_about_then_refused(
    runner: ToolRunner,
) -> None:
    path = runner.put("a.txt", "one\n")
    outputs = [await runner.run(read_file, path="a.txt") for _ in range(4)]
    assert said(outputs[0]) == "1|one"
    assert outputs[1].details == {"path": path, "status": "unchanged", "dedup": True}
    assert "refused" not in said(outputs[1])
    assert "will be refused" in said(outputs[2])
    assert [output.failed for output in outputs] == [False, False, False, True]


async def test_a_changed_file_or_other_lines_are_shown_again(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\ntwo\n")
    await runner.run(read_file, path="a.txt")
    assert said(await runner.run(read_file, path="a.txt", offset=2)) == "2|two"
    runner.put("a.txt", "new\ntwo\n")
    assert said(await runner.run(read_file, path="a.txt")) == "1|new\n2|two"


async def test_after_a_compaction_everything_may_be_read_again(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\n")
    for _ in range(4):
        await runner.run(read_file, path="a.txt")
    runner.service(ReadLog).on_compaction()
    assert said(await runner.run(read_file, path="a.txt")) == "1|one"


async def test_a_file_that_is_too_large_is_searched_instead(runner: ToolRunner) -> None:
    path = runner.root / "big.log"
    with path.open("wb") as file:
        file.truncate(40 * 1024 * 1024)
    output = await runner.run(read_file, path="big.log")
    assert output.failed
    assert "search_files" in said(output)


rows = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30)


@settings(deadline=None)
@given(
    lines=st.lists(rows, max_size=40),
    final=st.booleans(),
    limit=st.integers(1, 12),
    chars=st.integers(1, 200),
)
def test_following_next_offset_shows_every_line_once(
    lines: list[str], final: bool, limit: int, chars: int
) -> None:
    text = "\n".join(lines) + ("\n" if final and lines else "")
    expected = text.split("\n")
    if expected[-1] == "":
        expected.pop()
    sizes = ToolSettings(file_read_max_chars=chars)
    shown: list[str] = []
    offset = 1
    while True:
        part = make_page(text, offset, limit, sizes)
        shown += part.body.split("\n") if part.stop > part.start else []
        if not part.truncated:
            break
        assert part.stop > offset
        offset = part.stop
    assert shown == [f"{number}|{row}" for number, row in enumerate(expected, 1)]
    assert part.total == len(expected)
    assert all(re.match(r"\d+\|", row) for row in shown)
