from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hermes.core.effects import DeletePath, WritePath
from hermes.core.messages import joined_text
from hermes.core.tools import ToolOutput
from hermes.tools.files.access import ReadLog, digest
from hermes.tools.files.patch import patch
from hermes.tools.files.read import read_file

if TYPE_CHECKING:
    from tests.tools.conftest import ToolRunner


def said(output: ToolOutput) -> str:
    return joined_text(output.parts)


def v4a(*lines: str) -> dict[str, str]:
    return {"mode": "patch", "patch": "\n".join(("*** Begin Patch", *lines, "*** End Patch"))}


async def test_a_text_is_replaced_and_the_model_sees_the_diff(runner: ToolRunner) -> None:
    path = runner.put("a.py", "x = 1\ny = 2\n")
    output = await runner.run(patch, path="a.py", old_string="y = 2", new_string="y = 3")
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n"
    assert runner.get("a.py") == "x = 1\ny = 3\n"
    assert output == ToolOutput.text(
        diff.rstrip("\n"),
        details={
            "path": path,
            "files_modified": [path],
            "files_created": [],
            "files_deleted": [],
            "bytes_written": 12,
            "added": 1,
            "removed": 1,
            "diff": diff,
            "lint": {"status": "ok", "output": ""},
        },
    )


async def test_a_text_that_is_there_twice_is_not_guessed(runner: ToolRunner) -> None:
    runner.put("a.txt", "x\ny\nx\n")
    output = await runner.run(patch, path="a.txt", old_string="x", new_string="z")
    assert output.failed
    assert "2 places, lines 1, 3" in said(output)
    assert runner.get("a.txt") == "x\ny\nx\n"
    await runner.run(patch, path="a.txt", old_string="x", new_string="z", replace_all=True)
    assert runner.get("a.txt") == "z\ny\nz\n"


async def test_how_a_text_was_found_is_told_when_it_was_not_exact(runner: ToolRunner) -> None:
    runner.put("a.py", "if x:\n    a()\n    b()\n")
    output = await runner.run(patch, path="a.py", old_string="a()\nb()", new_string="c()\nd()")
    assert runner.get("a.py") == "if x:\n    c()\n    d()\n"
    assert "found by indentation-flexible matching" in said(output)


async def test_line_ends_and_mark_stay_as_they_are(runner: ToolRunner) -> None:
    runner.put("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\nlast\nthree")
    await runner.run(patch, path="a.txt", old_string="two\n", new_string="2\n2b\n")
    assert runner.files()["a.txt"] == b"\xef\xbb\xbfone\r\n2\r\n2b\r\nlast\nthree"


async def test_a_miss_shows_what_is_near_and_the_third_says_to_read_again(
    runner: ToolRunner,
) -> None:
    runner.put("a.py", "def settings():\n    return 1\n")
    outputs = [
        await runner.run(patch, path="a.py", old_string=f"def setting{n}():", new_string="x")
        for n in "xyz"
    ]
    assert all(output.failed for output in outputs)
    assert "1|def settings():" in said(outputs[0])
    assert "read it again" not in said(outputs[1])
    assert "read it again" in said(outputs[2])
    await runner.run(read_file, path="a.py")
    fourth = await runner.run(patch, path="a.py", old_string="nothing", new_string="x")
    assert "read it again" not in said(fourth)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"path": "a.txt", "old_string": "", "new_string": "x"}, "old_string is empty"),
        ({"path": "a.txt", "old_string": "one", "new_string": "one"}, "the same"),
        ({"path": "", "old_string": "one", "new_string": "x"}, "path is empty"),
        ({"path": "b.txt", "old_string": "one", "new_string": "x"}, "a.txt"),
        ({"path": "c.bin", "old_string": "one", "new_string": "x"}, "binary"),
        ({"mode": "patch", "patch": "nonsense"}, "Begin Patch"),
    ],
)
async def test_a_call_that_cannot_work_says_why(
    runner: ToolRunner, arguments: dict[str, str], why: str
) -> None:
    runner.put("a.txt", "one\n")
    runner.put("c.bin", b"\0one")
    output = await runner.run(patch, **arguments)
    assert output.failed
    assert why in said(output)
    assert runner.files() == {"a.txt": b"one\n", "c.bin": b"\0one"}


async def test_data_that_would_not_parse_is_left_alone(runner: ToolRunner) -> None:
    runner.put("a.json", '{"a": 1}')
    output = await runner.run(patch, path="a.json", old_string="1", new_string="1,")
    assert output.failed
    assert "a.json would not parse: line 1" in said(output)
    assert runner.get("a.json") == '{"a": 1}'


async def test_a_new_python_error_is_told_with_the_diff(runner: ToolRunner) -> None:
    runner.put("a.py", "x = 1\n")
    output = await runner.run(patch, path="a.py", old_string="1", new_string="(1")
    assert "a.py now has a syntax error, line 1" in said(output)


async def test_a_file_that_changed_since_it_was_read_is_patched_with_one_warning(
    runner: ToolRunner,
) -> None:
    runner.put("a.txt", "one\ntwo\n")
    await runner.run(read_file, path="a.txt")
    runner.put("a.txt", "one\ntwo\nthree\n")
    first = await runner.run(patch, path="a.txt", old_string="one", new_string="1")
    assert "changed on disk since you read it" in said(first)
    second = await runner.run(patch, path="a.txt", old_string="two", new_string="2")
    assert "warnings" not in second.details


async def test_a_long_diff_is_cut(runner: ToolRunner) -> None:
    runner.put("a.txt", "x\n" * 3000)
    output = await runner.run(
        patch, path="a.txt", old_string="x\n", new_string="y\n", replace_all=True
    )
    assert output.details["added"] == 3000
    assert len(said(output)) < 4_100
    assert "more lines" in said(output)
    assert len(output.details["diff"]) < 4_100


async def test_a_patch_may_come_without_its_mode(runner: ToolRunner) -> None:
    output = await runner.run(patch, patch=v4a("*** Add File: a.txt", "+hi")["patch"])
    assert not output.failed
    assert runner.get("a.txt") == "hi\n"


async def test_a_patch_changes_several_files(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\r\ntwo\r\n")
    runner.put("b.txt", "bee\n")
    runner.put("c.txt", "sea\n")
    runner.put("d.txt", "dee\nlast\n")
    output = await runner.run(
        patch,
        **v4a(
            *("*** Update File: a.txt", " one", "-two", "+2"),
            *("*** Add File: new/e.txt", "+hello"),
            "*** Delete File: b.txt",
            "*** Move File: c.txt -> sub/c.txt",
            *("*** Update File: d.txt", "*** Move to: f.txt", "-dee", "+D"),
        ),
    )
    assert not output.failed
    assert runner.files() == {
        "a.txt": b"one\r\n2\r\n",
        "f.txt": b"D\nlast\n",
        "new/e.txt": b"hello\n",
        "sub/c.txt": b"sea\n",
    }
    root = runner.root
    assert output.details["files_modified"] == [str(root / "a.txt")]
    assert output.details["files_created"] == [
        str(root / name) for name in ("new/e.txt", "sub/c.txt", "f.txt")
    ]
    assert output.details["files_deleted"] == [
        str(root / name) for name in ("b.txt", "c.txt", "d.txt")
    ]
    assert said(output).startswith(
        "Moved c.txt to sub/c.txt\nMoved d.txt to f.txt\nDeleted b.txt\n--- a/a.txt\n"
    )
    assert "--- a/d.txt\n+++ b/f.txt\n@@ -1,2 +1,2 @@\n-dee\n+D\n last" in said(output)


async def test_operations_on_one_file_build_on_each_other(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\n")
    await runner.run(
        patch,
        **v4a(
            *("*** Update File: a.txt", "-one", "+two"),
            *("*** Update File: a.txt", "-two", "+three"),
            "*** Move File: a.txt -> b.txt",
            "*** Move File: b.txt -> c.txt",
            *("*** Add File: a.txt", "+again"),
        ),
    )
    assert runner.files() == {"a.txt": b"again\n", "c.txt": b"three\n"}


async def test_one_bad_operation_leaves_all_files_alone_and_all_faults_are_told(
    runner: ToolRunner,
) -> None:
    runner.put("a.txt", "one\n")
    runner.put("b.txt", "two\n")
    before = runner.files()
    output = await runner.run(
        patch,
        **v4a(
            *("*** Update File: a.txt", "-one", "+1"),
            *("*** Update File: b.txt", "-nope", "+x"),
            *("*** Add File: b.txt", "+x"),
            "*** Delete File: c.txt",
            "*** Move File: a.txt -> b.txt",
        ),
    )
    assert output.failed
    assert runner.files() == before
    assert "no file was changed" in said(output)
    for why in ("b.txt: hunk 1", "exists already; use", "c.txt: there is no", "a.txt: b.txt"):
        assert why in said(output)


async def test_a_patch_that_breaks_a_data_file_leaves_all_files_alone(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\n")
    runner.put("b.json", "[1]\n")
    before = runner.files()
    output = await runner.run(
        patch,
        **v4a(
            *("*** Update File: a.txt", "-one", "+1"), *("*** Update File: b.json", "-[1]", "+[1")
        ),
    )
    assert output.failed
    assert runner.files() == before


@pytest.mark.parametrize("broken", ["c.txt", "new.txt", "d.txt"])
async def test_when_a_later_change_fails_the_earlier_ones_are_put_back(
    runner: ToolRunner, broken: str
) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        runner.put(name, "one\n")
    runner.workspace.broken.add(broken)
    before = runner.files()
    output = await runner.run(
        patch,
        **v4a(
            *("*** Update File: a.txt", "-one", "+1"),
            *("*** Add File: first.txt", "+x"),
            *("*** Update File: b.txt", "-one", "+1"),
            *("*** Add File: new.txt", "+x"),
            *("*** Update File: c.txt", "-one", "+1"),
            "*** Delete File: d.txt",
        ),
    )
    assert output.failed
    assert "Nothing is changed" in said(output)
    assert runner.files() == before


async def test_what_cannot_be_put_back_is_named(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\n")
    runner.put("b.txt", "one\n")

    def fail_from_now_on(path: str) -> None:
        if path.endswith("b.txt"):
            runner.workspace.broken |= {"a.txt", "b.txt"}

    runner.workspace.on_write = fail_from_now_on
    output = await runner.run(
        patch,
        **v4a(*("*** Update File: a.txt", "-one", "+1"), *("*** Update File: b.txt", "-one", "+1")),
    )
    assert output.failed
    assert "These could not be restored: a.txt" in said(output)


async def test_a_cancelled_patch_is_put_back(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\n")
    runner.put("b.txt", "one\n")
    before = runner.files()
    writes: list[str] = []

    def cancel_at_the_second(path: str) -> None:
        writes.append(path)
        if len(writes) == 2:
            raise asyncio.CancelledError

    runner.workspace.on_write = cancel_at_the_second
    with pytest.raises(asyncio.CancelledError):
        await runner.run(
            patch,
            **v4a(
                *("*** Update File: a.txt", "-one", "+1"),
                *("*** Update File: b.txt", "-one", "+1"),
            ),
        )
    assert runner.files() == before


async def test_a_patch_without_any_change_is_an_error(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\n")
    output = await runner.run(patch, **v4a("*** Update File: a.txt", "-one", "+one"))
    assert output.failed
    assert "changes nothing" in said(output)


async def test_the_effects_name_every_file_of_a_patch(runner: ToolRunner) -> None:
    at = str(runner.root) + "/"
    assert runner.effects(patch, path="a.txt", old_string="x", new_string="y") == [
        WritePath(path=at + "a.txt")
    ]
    assert runner.effects(
        patch,
        **v4a(
            *("*** Update File: a", "-x"),
            *("*** Add File: b", "+x"),
            "*** Delete File: c",
            "*** Move File: d -> e",
            *("*** Update File: f", "*** Move to: g", "-x"),
        ),
    ) == [
        WritePath(path=at + "a"),
        WritePath(path=at + "b"),
        DeletePath(path=at + "c"),
        DeletePath(path=at + "d"),
        WritePath(path=at + "e"),
        DeletePath(path=at + "f"),
        WritePath(path=at + "g"),
    ]
    assert runner.effects(patch, mode="patch", patch="nonsense") == []


async def test_the_model_knows_a_file_that_it_added(runner: ToolRunner) -> None:
    await runner.run(patch, **v4a("*** Add File: a.txt", "+one"))
    log = runner.service(ReadLog)
    data = runner.files()["a.txt"]
    assert log.knowledge(str(runner.root / "a.txt"), digest(data)) == "whole"


async def test_a_secret_file_cannot_be_read_through_a_failed_patch(runner: ToolRunner) -> None:
    runner.put(".env", "TOKEN=secret\n")
    runner.workspace.secret.add(".env")
    for arguments in (
        {"path": ".env", "old_string": "TOKEN=x", "new_string": "y"},
        v4a("*** Update File: .env", "-TOKEN=x", "+y"),
    ):
        output = await runner.run(patch, **arguments)
        assert output.failed
        assert "TOKEN=secret" not in said(output)
