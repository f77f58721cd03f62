"""The commands that the assistant composes, and how it reads what they print."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.offline.language import load_language
from hermes.providers.offline.phrases import may_be_command, shell_line
from hermes.providers.offline.tool_output import (
    ListedFile,
    build_command,
    find_command,
    join_path,
    list_command,
    parse_listing,
    quote_path,
)

WORDS = load_language("en").sentence_words


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("a.txt", "a.txt"),
        ("my file", "'my file'"),
        ("~", "~"),
        ("~/my file", "~/'my file'"),
        ("-rf", "./-rf"),
        ("$(reboot)", "'$(reboot)'"),
        ("a'b", "'a'\"'\"'b'"),
    ],
)
def test_a_path_is_one_harmless_word(path: str, word: str) -> None:
    assert quote_path(path) == word


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1))
def test_whatever_a_path_holds_the_shell_sees_one_argument(path: str) -> None:
    words = shlex.split(build_command("rm", paths=(path,)))
    assert len(words) == 2
    assert not words[1].startswith("-")
    assert words[1].removeprefix("./") == path.removeprefix("./")


def test_the_present_folder_needs_no_name() -> None:
    assert list_command(".") == "ls -1p"
    assert list_command("src", flags="-lA") == "ls -lA src"


def test_a_name_is_looked_up_without_wildcards() -> None:
    assert find_command("a.txt") == "find . -maxdepth 1 -name a.txt"
    assert find_command("src/a*[1].py") == "find src -maxdepth 1 -name 'a\\*\\[1].py'"
    assert find_command("/etc") == "find / -maxdepth 1 -name etc"


@pytest.mark.parametrize(
    ("folder", "name", "expected"),
    [(".", "a", "a"), ("src", "a", "src/a"), ("src/", "a", "src/a"), ("src", "/a", "/a")],
)
def test_names_are_joined_to_their_folder(folder: str, name: str, expected: str) -> None:
    assert join_path(folder, name) == expected


def test_a_short_listing_gives_paths_for_tools() -> None:
    assert parse_listing("ls -1p src", "a.py\nlib/") == (
        ListedFile(name="a.py", path="src/a.py"),
        ListedFile(name="lib/", path="src/lib", is_folder=True),
    )


@pytest.mark.parametrize(
    "line",
    [
        "-rw-r--r-- 1 ann staff 2048 Nov 15 08:45 my notes.txt",
        "-rw-r--r--. 1 ann staff 2048 Nov 15  2023 my notes.txt",
        "-rw-r--r--  1 ann  staff  2048 15. Nov 08:45 my notes.txt",
        "-rw-r--r-- 1 ann staff 2048 2023-11-15 08:45 my notes.txt",
    ],
)
def test_a_long_listing_is_read_in_any_form_of_date(line: str) -> None:
    (entry,) = parse_listing("ls -lA", f"total 4\n{line}")
    assert (entry.name, entry.size, entry.owner, entry.is_folder) == (
        "my notes.txt",
        2048,
        "ann",
        False,
    )
    assert entry.date


def test_a_link_is_listed_under_its_own_name() -> None:
    (entry,) = parse_listing("ls -l", "lrwxrwxrwx 1 a a 4 Nov 15 08:45 here -> /tmp/there")
    assert entry.path == "here"


def test_sizes_of_folders_are_in_bytes() -> None:
    (entry,) = parse_listing("du -k -d 1 . | sort -rn | head -n 16", "12\t./src")
    assert (entry.path, entry.size) == ("src", 12 * 1024)


@pytest.mark.parametrize("script", ["git status", "ls 'unclosed", "", "echo ls"])
def test_other_commands_list_nothing(script: str) -> None:
    assert parse_listing(script, "a\nb") == ()


@pytest.mark.parametrize(
    "line",
    [
        *("ls -la", "git push origin main", "pytest", "cat a.txt | wc -l", "python3 x.py"),
        *("make test", "ps aux", "df -h", "ssh backup", "git log -3", "date", "kubectl get pods"),
    ],
)
def test_a_line_for_the_shell_is_recognised(line: str) -> None:
    assert shell_line(line, WORDS) == line


def test_a_capital_at_the_beginning_is_the_work_of_a_telephone() -> None:
    assert shell_line("Git push", WORDS) == "git push"
    assert shell_line("Ls -la", WORDS) == "ls -la"


@pytest.mark.parametrize(("line", "expected"), [("$ ls", "ls"), ("! make all", "make all")])
def test_a_prompt_sign_makes_a_command(line: str, expected: str) -> None:
    assert shell_line(line, WORDS) == expected


@pytest.mark.parametrize(
    "line",
    [
        "make a copy of a.txt",
        "find the file a.txt",
        "go to the store",
        "cat pictures are nice",
        "git is a tool",
        "python is great",
        "time flies",
        "file",
        "docker sucks",
        "code review",
        "less is more",
        "which file is a.txt?",
        "$5 is too much",
        "hello",
        "",
    ],
)
def test_a_sentence_is_not_run(line: str) -> None:
    assert shell_line(line, WORDS) is None


@pytest.mark.parametrize("text", ["pytest", "htop", "frobnicate", "./go", "make all", "x=1 env"])
def test_words_after_run_may_be_a_command(text: str) -> None:
    assert may_be_command(text, load_language("en").may_name_program)


@pytest.mark.parametrize("text", ["", "away", "Away!", "errands", "a marathon", "for president"])
def test_prose_after_run_is_no_command(text: str) -> None:
    assert not may_be_command(text, load_language("en").may_name_program)
