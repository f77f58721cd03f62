"""Hundreds of ways to ask: each is understood as its kind and leads to the right first call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes.providers.offline.language import load_language
from hermes.providers.offline.parsing import parse_request
from tests.providers.offline.talk import WARM, Talk


def table(name: str) -> list[list[str]]:
    """One line each: the words, the kind, the first call with its arguments or "-"."""
    lines = (Path(__file__).parent / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines]


# The held-out ones were first tried when all of the others were understood.
NAMES = ("phrasings.tsv", "wordings.tsv", "held_out_wordings.tsv")
TABLES = {name: table(name) for name in NAMES}

NOT_UNDERSTOOD = """
write a poem about the sea
tell me a joke
what is the capital of France?
explain how git rebase works
refactor app.py
fix the bug in app.py
summarize README.md
translate notes.txt into German
write a poem to a.txt
add type hints to app.py
do not delete a.txt
don't run the tests
never delete anything
should I delete a.txt?
can I delete a.txt?
could a.txt be deleted?
did you delete a.txt?
what would happen if I delete a.txt?
is it safe to run rm -rf build?
delte a.txt
deleet the folder build
delete all files older than a week
delete everything older than 3 days
rename all jpg files to png
copy all python files to old
kill all humans
recommend me a book
send an email to Bob
what's the weather like?
write unit tests for app.py
make a sandwich
run a marathon
run for president
start writing a novel
make it so
rename the variable x to y in app.py
put some tests into test_app.py
add error handling to server.py
write a summary of a.txt to b.txt
move the function foo to utils.py
delete the comments in app.py
delete the last paragraph of essay.txt
remove trailing whitespace from a.txt
if a.txt exists delete it
don't overwrite a.txt with x
I deleted a.txt by accident
play some music
convert 5 miles to km
what is love
list 5 reasons to use python
show me the money
read me a story
asdf qwer zxcv
run away
run errands
write documentation to api.md
write the results to out.txt
create notes.txt with a summary of README.md
delete the biggest file
delete my account
move the meeting to friday
add a license
replace bob with alice
install docker
edit a.txt
how big is the moon
list the files and write a poem about them
write a poem and list the files
find all python files and refactor them
🙂
...
""".strip().splitlines()

STEPS = {
    "find the biggest file here and show its first lines": "biggest_file read_first",
    "search TODO in src and show the first file": "find_text open_path",
    "create a.txt with hello and read it back": "create_file read",
    "run pytest and then show git status": "run git_status",
    "list the files, then read the first one": "list_files read",
    "go to src and list the files": "go_to list_files",
    "make a folder called out, go there and create a.txt with hi": "make_folder go_to create_file",
    "copy a.txt to b.txt and then diff a.txt b.txt": "copy diff",
    "delete a.txt, b.txt and c.txt": "delete delete delete",
    "count the lines in a.py and b.py": "count_lines count_lines",
    "what is the newest file? read it": "newest_file read",
    "find all python files and count them": "find_files count_items",
    "find foo in a.txt and replace foo with bar in it": "find_text replace",
    "show git status, then the last commit": "git_status last_commit",
    "read a.txt. Then delete it.": "read delete",
    "hi! list the files please": "list_files",
    "thanks! now run the tests": "run_tests",
    "first list the files, and after that show the git log": "list_files git_log",
    "list the files\nshow the git log": "list_files git_log",
    "create notes.txt with bread and butter": "create_file",
    "say hello and goodbye": "echo",
    "add buy milk and eggs to my todo list": "todo_add",
    "todo: fix bug and run tests": "todo_add",
    "run make && make install": "run",
    "run echo a; echo b": "run",
    "run `echo hi and list files`": "run",
    "search for bread and butter in notes.txt": "find_text",
}


def kinds(text: str, language: str = "en") -> str:
    return " ".join(step.kind for step in parse_request(load_language(language), text))


async def understood(text: str) -> list[str]:
    """A row of the table as it is now."""
    turn = await Talk(messages=WARM).say(text)
    made = [f"{name} {json.dumps(values, ensure_ascii=False)}" for name, values in turn.calls]
    return [text, kinds(text), *(made or ["-"])]


@pytest.mark.parametrize("name", TABLES)
async def test_a_wording_is_understood_and_leads_to_the_right_first_call(
    name: str, pytestconfig: pytest.Config
) -> None:
    """Of the largest table a part, in a long run all of it."""
    few = name == "wordings.tsv" and not pytestconfig.getoption("--slow")
    rows = TABLES[name][:: 3 if few else 1]
    assert [await understood(text) for text, _, _ in rows] == rows


def test_the_tables_have_hundreds_of_wordings_and_dozens_of_kinds() -> None:
    every = [row for rows in TABLES.values() for row in rows]
    assert len({text for text, _, _ in every}) == len(every) >= 1400
    assert {kind for _, kind, _ in TABLES["phrasings.tsv"]} == set(load_language("en").kinds)


async def test_what_is_not_a_plain_request_is_not_guessed_at() -> None:
    for text in NOT_UNDERSTOOD:
        turn = await Talk(messages=WARM).say(text)
        assert turn.calls == (), text
        assert "without a language model" in turn.text, text


def test_a_request_is_cut_into_the_steps_that_all_make_sense() -> None:
    assert {text: kinds(text) for text in STEPS} == STEPS


@pytest.mark.parametrize("code", ["en", "de"])
def test_every_example_of_a_language_is_understood_as_its_own_kind(code: str) -> None:
    language = load_language(code)
    wrong = [
        (kind.name, example, kinds(example, code))
        for kind in language.data.kinds
        for example in kind.examples
        if kinds(example, code) != kind.name
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("plain", "polite"),
    [
        ("list the files in docs", "Could you please list the files in docs for me? Thanks!"),
        ("read notes.txt", "hey hermes, would you kindly read notes.txt now"),
        ("run pytest", "please run pytest, thank you"),
        ("what time is it", "ok so what time is it please"),
        ("make a folder called x", "would you mind making a folder for me called x, mate?"),
        ("delete a.txt", "I was wondering if you could delete a.txt, I don't need it any more"),
    ],
)
def test_politeness_changes_nothing(plain: str, polite: str) -> None:
    assert _meaning(polite) == _meaning(plain)


@pytest.mark.parametrize("quotes", ["''", '""', "``", "“”", "«»", "‘’"])
def test_any_quotes_hold_a_name_together(quotes: str) -> None:
    text = f"read {quotes[0]}my notes.txt{quotes[1]}"
    assert _meaning(text) == [("read", {"path": "my notes.txt"})]


def test_a_text_that_is_polite_by_itself_is_kept() -> None:
    assert _meaning("say thank you") == [("echo", {"text": "thank you"})]


def _meaning(text: str) -> list[tuple[str, dict[str, str]]]:
    return [(step.kind, step.slots) for step in parse_request(load_language("en"), text)]
