from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes.core.effects import WritePath
from hermes.core.messages import joined_text
from hermes.core.tools import ToolOutput
from hermes.tools.files.read import read_file
from hermes.tools.files.write import write_file

if TYPE_CHECKING:
    from tests.tools.conftest import ToolRunner


def said(output: ToolOutput) -> str:
    return joined_text(output.parts)


async def test_a_new_file_is_made_with_its_folders(runner: ToolRunner) -> None:
    output = await runner.run(write_file, path="a/b/c.txt", content="hello\n")
    path = str(runner.root / "a/b/c.txt")
    assert runner.get("a/b/c.txt") == "hello\n"
    assert output == ToolOutput.text(
        "Wrote 6 bytes to a/b/c.txt (new file).",
        details={
            "path": path,
            "files_modified": [],
            "files_created": [path],
            "files_deleted": [],
            "bytes_written": 6,
            "added": 1,
            "removed": 0,
            "diff": "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1 @@\n+hello\n",
            "dirs_created": [str(runner.root / "a"), str(runner.root / "a/b")],
            "lint": {"status": "skipped", "output": ""},
        },
    )


async def test_a_file_is_replaced_and_the_screen_gets_a_diff(runner: ToolRunner) -> None:
    path = runner.put("a.txt", "one\ntwo\n")
    output = await runner.run(write_file, path="a.txt", content="one\n2\n3\n")
    assert said(output) == "Wrote 8 bytes to a.txt (+2 -1 lines)."
    assert output.details["files_modified"] == [path]
    assert output.details["diff"] == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n"
    )


async def test_the_same_content_is_not_written_again(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\n")
    runner.workspace.broken.add("a.txt")
    output = await runner.run(write_file, path="a.txt", content="one\n")
    assert not output.failed
    assert "already" in said(output)
    assert output.details["files_modified"] == []


async def test_line_ends_mark_and_mode_are_kept(runner: ToolRunner) -> None:
    path = runner.root / "run.bat"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    path.chmod(0o755)
    await runner.run(write_file, path="run.bat", content="uno\ndos\n")
    assert path.read_bytes() == b"\xef\xbb\xbfuno\r\ndos\r\n"
    assert path.stat().st_mode & 0o777 == 0o755


async def test_the_encoding_is_kept_and_what_it_cannot_hold_is_refused(runner: ToolRunner) -> None:
    runner.put("a.txt", "Grüße".encode("cp1252"))
    await runner.run(write_file, path="a.txt", content="Äpfel")
    assert runner.files()["a.txt"] == "Äpfel".encode("cp1252")
    output = await runner.run(write_file, path="a.txt", content="日本")
    assert output.failed
    assert runner.files()["a.txt"] == "Äpfel".encode("cp1252")


async def test_utf_16_stays_utf_16(runner: ToolRunner) -> None:
    runner.put("a.txt", "\ufeffone\n".encode("utf-16-be"))
    await runner.run(write_file, path="a.txt", content="two\n")
    assert runner.files()["a.txt"] == "\ufefftwo\n".encode("utf-16-be")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("a.json", '{"a": 1}', '{"a": 1,}'),
        ("a.yaml", "a: [1, 2]\n---\nb: !tag x\n", "a: [1, 2\nb: 3\n"),
        ("a.yml", "a: 1\n", "a: 'open\n"),
        ("a.toml", "a = 1\n", "a = \n"),
        ("a.ipynb", '{"cells": []}', '{"cells": ['),
    ],
)
async def test_data_that_does_not_parse_is_refused(
    runner: ToolRunner, name: str, good: str, bad: str
) -> None:
    assert (await runner.run(write_file, path=name, content=bad)).failed
    assert runner.files() == {}
    assert not (await runner.run(write_file, path=name, content=good)).failed
    output = await runner.run(write_file, path=name, content=bad)
    assert output.failed
    assert "line " in said(output)
    assert "Nothing was written" in said(output)
    assert runner.get(name) == good


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tsconfig.json", '{\n  // comment\n  "a": 1\n}'),
        (".vscode/settings.json", '{"a": 1,}'),
        ("templates/deploy.yaml", "{{- if .Values.on }}\na: {{ .x }}\n{{- end }}\n"),
    ],
)
async def test_loose_formats_are_written_with_a_word_about_it(
    runner: ToolRunner, name: str, content: str
) -> None:
    output = await runner.run(write_file, path=name, content=content)
    assert not output.failed
    assert runner.get(name) == content


async def test_a_file_that_was_broken_before_can_be_repaired_in_steps(runner: ToolRunner) -> None:
    runner.put("a.json", '{"a": 1,, "b": }')
    output = await runner.run(write_file, path="a.json", content='{"a": 1, "b": }')
    assert not output.failed
    assert output.details["lint"]["status"] == "error"


async def test_a_new_python_error_is_reported_and_the_file_written(runner: ToolRunner) -> None:
    runner.put("a.py", "x = 1\n")
    output = await runner.run(write_file, path="a.py", content="x = (1\ny = 2\n")
    assert not output.failed
    assert "a.py now has a syntax error, line 1" in said(output)
    assert output.details["lint"]["status"] == "error"
    again = await runner.run(write_file, path="a.py", content="x = (1\ny = 3\n")
    assert "syntax error" not in said(again)
    assert again.details["lint"]["status"] == "known"


async def test_odd_escapes_in_python_are_no_error(runner: ToolRunner) -> None:
    output = await runner.run(write_file, path="a.py", content='x = "\\d"\n')
    assert output.details["lint"] == {"status": "ok", "output": ""}


async def test_a_file_that_was_only_partly_read_is_replaced_with_a_warning(
    runner: ToolRunner,
) -> None:
    runner.put("a.txt", "one\ntwo\nthree\n")
    await runner.run(read_file, path="a.txt", limit=2)
    output = await runner.run(write_file, path="a.txt", content="x\n")
    assert output.details["warnings"] == [
        "You had read only a part of a.txt; the rest is replaced too."
    ]
    assert runner.get("a.txt") == "x\n"
    quiet = await runner.run(write_file, path="a.txt", content="y\n")
    assert "warnings" not in quiet.details


async def test_a_file_read_in_two_parts_was_read_whole(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\ntwo\nthree\n")
    await runner.run(read_file, path="a.txt", offset=3)
    await runner.run(read_file, path="a.txt", limit=2)
    output = await runner.run(write_file, path="a.txt", content="x\n")
    assert "warnings" not in output.details


async def test_a_file_that_changed_since_it_was_read_is_replaced_with_a_warning(
    runner: ToolRunner,
) -> None:
    runner.put("a.txt", "one\n")
    await runner.run(read_file, path="a.txt")
    runner.put("a.txt", "one\nmore\n")
    output = await runner.run(write_file, path="a.txt", content="x\n")
    assert "changed on disk since you read it" in said(output)


async def test_what_a_tool_wrote_is_known(runner: ToolRunner) -> None:
    await runner.run(write_file, path="a.txt", content="one\n")
    output = await runner.run(write_file, path="a.txt", content="two\n")
    assert "warnings" not in output.details


async def test_a_file_that_may_not_be_read_is_replaced_unseen(runner: ToolRunner) -> None:
    runner.put(".env", "TOKEN=secret\n")
    runner.workspace.secret.add(".env")
    output = await runner.run(write_file, path=".env", content="TOKEN=new\n")
    assert said(output) == "Wrote 10 bytes to .env."
    assert "secret" not in str(output)
    assert output.details["files_modified"] == [str(runner.root / ".env")]
    assert runner.get(".env") == "TOKEN=new\n"


async def test_documents_are_not_written_as_plain_text(runner: ToolRunner) -> None:
    output = await runner.run(write_file, path="a.docx", content="hello")
    assert output.failed
    assert runner.files() == {}


async def test_a_folder_or_a_device_is_not_written(runner: ToolRunner) -> None:
    runner.put("src/a.py", "")
    assert (await runner.run(write_file, path="src", content="x")).failed
    assert (await runner.run(write_file, path="/dev/null", content="x")).failed


async def test_a_failed_write_is_an_error_and_leaves_the_file(runner: ToolRunner) -> None:
    runner.put("a.txt", "one\n")
    runner.workspace.broken.add("a.txt")
    output = await runner.run(write_file, path="a.txt", content="two\n")
    assert output.failed
    assert said(output).endswith("the disk is full. Nothing is changed.")
    assert runner.get("a.txt") == "one\n"


async def test_the_effect_is_to_write_the_resolved_path(runner: ToolRunner) -> None:
    assert runner.effects(write_file, path="x/../y.txt", content="") == [
        WritePath(path=str(runner.root / "y.txt"))
    ]


async def test_a_binary_file_is_replaced_with_a_warning(runner: ToolRunner) -> None:
    runner.put("a.bin", b"\0\1\2")
    output = await runner.run(write_file, path="a.bin", content="text")
    assert said(output).endswith("a.bin was a binary file.")
