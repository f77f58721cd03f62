"""What requests do, with real commands in a real folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hermes.core.messages import ToolCall
from tests.providers.offline.talk import Answer, Outcome, Talk, ran, shown


class Folder:
    """Carries out the commands of the assistant in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def ask(self, text: str) -> Outcome:
        """Sends a request that needs only commands."""
        talk = Talk()
        outcome = await talk.say(text)
        while outcome.calls:
            made = [ToolCall(id="", name=name, arguments=a) for name, a in outcome.calls]
            assert [call.name for call in made] == ["terminal"]
            outcome = await talk.go_on(self._run(str(made[0].arguments["command"])))
            if outcome.calls[:1] == ((made[0].name, made[0].arguments),):
                outcome = Outcome(calls=outcome.calls[1:], text=outcome.text)
        return outcome

    def _run(self, command: str) -> Answer:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        return ran(done.stdout.rstrip("\n"), done.returncode)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    for name, text in {
        "notes.txt": "milk\neggs\n",
        "meeting.txt": "Anna\n",
        "docs/guide.md": "word " * 500,
        "docs/deep/more.md": "x",
        ".git/objects/big": "0" * 9999,
        ".hidden": "h",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for age, name in enumerate(("meeting.txt", "notes.txt", ".hidden", "docs/guide.md")):
        os.utime(tmp_path / name, (1_000_000_000 - age * 86_400,) * 2)
    return Folder(tmp_path)


ANSWERS = {
    "list the files here": "2 files and 1 folder in this folder:\n\n"
    "- `docs/`\n- `meeting.txt`\n- `notes.txt`",
    "list the folders in docs": "1 folder in `docs`:\n\n- `deep/`",
    "show the folder tree": "The first 3 levels of this folder:\n\n"
    "```\ndocs\n  deep\n    more.md\n  guide.md\nmeeting.txt\nnotes.txt\n```",
    "how many files are here?": "This folder has 3 files, 5 with its subfolders (hidden ones too).",
    "how many files are in docs/deep?": "`docs/deep` has 1 file (hidden ones too).",
    "how many folders are there?": (
        "This folder has 1 folder, 2 with its subfolders (hidden ones too)."
    ),
    "find the biggest file": (
        "The largest file in this folder and below is `docs/guide.md`, 2.5 kB."
    ),
    "what are the 2 smallest files in docs?": "The smallest files in `docs` and below:\n\n"
    "- `docs/deep/more.md`, 1 byte\n- `docs/guide.md`, 2.5 kB",
    "which files changed in the last hour?": "1 file changed in the last hour:\n\n"
    "- `docs/deep/more.md`",
    "find all markdown files": "2 matches for `*.md` in this folder and below:\n\n"
    "- `docs/deep/more.md`\n- `docs/guide.md`",
    "where is more.md?": "1 match for `more.md` in this folder and below:\n\n- `docs/deep/more.md`",
    "does docs/none.md exist?": "There is no `none.md` in `docs` or below.",
    "how big is docs/guide.md?": "`docs/guide.md` has 2.5 kB (2500 bytes).",
    "show the last 1 lines of notes.txt": "The end of `notes.txt`:\n\n```\neggs\n```",
    "how many words are in notes.txt?": "`notes.txt` has 2 words.",
    "are notes.txt and notes.txt the same?": "`notes.txt` and `notes.txt` are the same.",
    "run echo hi": "`echo hi` ended with exit 0.\n\n```\nhi\n```",
}


@pytest.mark.parametrize(("text", "answer"), ANSWERS.items())
async def test_an_answer_from_commands(folder: Folder, text: str, answer: str) -> None:
    assert (await folder.ask(text)).text == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("what is the oldest file in docs?", "`docs/guide.md`, changed 2001-09-06"),
        ("what is the newest file in docs?", "`docs/deep/more.md`, changed 20"),
        ("when was notes.txt changed?", "September 2001"),
        ("how big is the docs folder?", "The size of `docs` on disk is "),
        ("where am I?", "The current folder is `/"),
        ("how much disk space is left?", "The disk of this folder:"),
        ("compare notes.txt with meeting.txt", "+Anna"),
    ],
)
async def test_an_answer_that_depends_on_the_machine(
    folder: Folder, text: str, answer: str
) -> None:
    assert answer in (await folder.ask(text)).text


async def test_a_folder_is_made_and_a_file_moved_into_it(folder: Folder) -> None:
    outcome = await folder.ask("make a folder called archive and move meeting.txt there")
    assert outcome.text == ("Made the folder `archive`.\n\nMoved `meeting.txt` to `archive/`.")
    assert (folder.path / "archive" / "meeting.txt").read_text() == "Anna\n"
    assert not (folder.path / "meeting.txt").exists()


async def test_a_file_is_moved_only_into_a_folder_that_exists(folder: Folder) -> None:
    outcome = await folder.ask("move meeting.txt to archive")
    assert outcome.text.startswith("`mv -nv meeting.txt archive/` failed")
    assert (folder.path / "meeting.txt").exists()


@pytest.mark.parametrize("verb", ["rename", "copy"])
async def test_no_file_is_overwritten(folder: Folder, verb: str) -> None:
    await folder.ask(f"{verb} notes.txt to meeting.txt")
    assert (folder.path / "meeting.txt").read_text() == "Anna\n"
    assert (folder.path / "notes.txt").read_text() == "milk\neggs\n"


async def test_a_name_with_spaces_and_signs_is_one_argument(folder: Folder) -> None:
    await folder.ask('make a folder called "a $(touch x); b"')
    assert (folder.path / "a $(touch x); b").is_dir()
    assert not (folder.path / "x").exists()


async def test_delete_removes_only_the_named_file(folder: Folder) -> None:
    assert (await folder.ask("delete notes.txt")).text == "Deleted `notes.txt`."
    assert sorted(path.name for path in folder.path.glob("*.txt")) == ["meeting.txt"]


async def test_part_of_a_file_is_read() -> None:
    outcome = await Talk().say("show lines 2-3 of a.txt", shown(["b", "c"], first=2, total=9))
    assert outcome.calls == (("read_file", {"path": "a.txt", "offset": 2, "limit": 2}),)
    assert outcome.text == "`a.txt`, lines 2 to 3 of 9:\n\n```\nb\nc\n```"


async def test_a_file_is_created_once() -> None:
    request = "create a.txt with the text Hello world!"
    made = await Talk().say(request, ran("ls: no such file", 2), Answer(text="ok"))
    assert made.calls[1] == ("write_file", {"path": "a.txt", "content": "Hello world!\n"})
    assert made.text == "Wrote `a.txt` with 1 line."
    again = await Talk().say(request, ran("a.txt"))
    assert again.text == "`a.txt` exists already; nothing was changed."


async def test_lines_are_appended_and_replaced_with_patches() -> None:
    added = await Talk().say("append 'buy milk' to a.txt", Answer(text="ok"))
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n+buy milk\n*** End of File\n*** End Patch\n"
    )
    assert added.calls == (("patch", {"mode": "patch", "patch": patch}),)
    changed = await Talk().say("replace 'a b' with c in a.txt", Answer(text="ok"))
    assert changed.calls[0][1] == {
        "mode": "replace",
        "path": "a.txt",
        "old_string": "a b",
        "new_string": "c",
        "replace_all": True,
    }


async def test_text_is_searched_literally() -> None:
    found = Answer(text="a.py\n1: f(x)", details={"total_count": 1})
    outcome = await Talk().say("find 'f(x)' in src", found)
    assert outcome.calls[0][1]["pattern"] == r"(?i)f\(x\)"
    assert outcome.text == "1 match for `f(x)` in `src`:\n\n```\na.py\n1: f(x)\n```"


async def test_the_todo_list() -> None:
    item = {"id": "1", "content": "buy milk", "status": "pending"}
    empty, full = Answer(text="", details={"todos": []}), Answer(text="", details={"todos": [item]})
    added = await Talk().say("todo: buy milk", empty, full)
    assert added.calls[1] == ("todo", {"todos": [item], "merge": True})
    assert added.text == "1. [ ] buy milk"
    done = await Talk().say("mark todo 1 as done", full, full)
    assert done.calls[1] == ("todo", {"todos": [{**item, "status": "completed"}], "merge": True})
    missing = await Talk().say("mark todo 2 as done", full)
    assert missing.text == "The to-do list has no item 2."


async def test_a_fact_is_kept_in_memory() -> None:
    outcome = await Talk().say("remember that the server is atlas", Answer(text="{}"))
    fact = {"action": "add", "target": "memory", "content": "the server is atlas"}
    assert outcome.calls == (("memory", fact),)
    assert outcome.text == "I will remember: the server is atlas"
