"""Every shell block that a shipped skill marks with `sh run` is run, in a folder made for it.

The blocks of a skill run one after another in one shell, as the terminal keeps one for a session.
Anything that asks for the network is sent to a closed door.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from hermes.skills.seeding import BUNDLED_SKILLS, OPTIONAL
from hermes.skills.skill import MAIN, parse_skill

BLOCK = re.compile(r"^( *)```sh run\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SKILLS = {
    path.parent.name: path.parent
    for root in (BUNDLED_SKILLS, OPTIONAL)
    for path in root.rglob(MAIN)
}
CLOSED = "http://127.0.0.1:9"
SECONDS = 240


class Case(NamedTuple):
    """What is there before, and words that the output has to have, in this order."""

    prepare: Callable[[Path], None]
    expected: tuple[str, ...]


def blocks(name: str) -> list[str]:
    text = (SKILLS[name] / MAIN).read_text(encoding="utf-8")
    return [textwrap.dedent(match[2]) for match in BLOCK.finditer(text)]


def environment(home: Path, skill: str) -> dict[str, str]:
    roles = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    who = {f"GIT_{role}": "a@example.org" for role in roles}
    closed = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), CLOSED)
    return {
        **who,
        **closed,
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "PAGER": "cat",
        "GIT_CONFIG_NOSYSTEM": "1",
        "HERMES_SKILL_DIR": str(SKILLS[skill]),
    }


def shell(script: str, folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def files(**texts: str) -> Callable[[Path], None]:
    """Files by name; `_` in front of the last part stands for the point."""

    def prepare(folder: Path) -> None:
        for name, text in texts.items():
            path = folder / ".".join(name.rsplit("_", 1))
            path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")

    return prepare


def messy(folder: Path) -> None:
    rows = ("Day;Payee ;Amount", "03.04.2025;Müller ;1.234,50", ";;", "04.04.2025;Bar;-3,20", "5;x")
    (folder / "messy.csv").write_bytes("".join(f"{row}\r\n" for row in rows).encode("cp1252"))


def repository(folder: Path, *steps: str) -> None:
    begin = "git init -q -b main . && git config commit.gpgsign false"
    shell(" && ".join((begin, *steps)), folder, environment(folder, "git-recovery"))


def commit(path: str, text: str, message: str) -> str:
    return f"printf '%s\\n' '{text}' > {path} && git add -A && git commit -qm '{message}'"


def regression(folder: Path) -> None:
    right, wrong = "def total(n, price): return n * price", "def total(n, price): return n + price"
    quiet = [commit("notes.txt", f"line {n}", f"note {n}") for n in range(5)]
    first = commit("price.py", right, "first")
    broken = commit("price.py", wrong, "rewrite the sum")
    repository(folder, first, "git tag v1.0", *quiet[:3], broken, *quiet[3:])


def branch(folder: Path) -> None:
    repository(
        folder,
        commit("a.py", "x = 1", "first"),
        "git switch -qc feature",
        commit("a.py", "x = 2\nprint(x)", "two"),
    )


def lost(folder: Path) -> None:
    repository(
        folder,
        commit("a.txt", "one", "first"),
        commit("a.txt", "two", "second: the lost one"),
        "git reset -q --hard HEAD~1",
    )


def leak(folder: Path) -> None:
    key = "AKIA" + "ABCD1234EFGH5678"
    repository(folder, commit("settings.py", f'KEY = "{key}"', "first"))
    shell(commit("settings.py", "KEY = env", "mended"), folder, environment(folder, "git-recovery"))
    (folder / "notes.txt").write_text("password = hR7kQ2mZx9Lw\n")


def documents(folder: Path) -> None:
    for name in ("a.txt", "inner/b.txt", "inner/two words.txt"):
        path = folder / "documents" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def big_files(folder: Path) -> None:
    (folder / "cache").mkdir()
    with (folder / "cache" / "large.bin").open("wb") as file:
        file.truncate(30_000_000)
    (folder / "small.txt").write_text("x")


MAIL = """
    From: "service@bank.example" <info@cheap-host.example>
    Reply-To: help@elsewhere.example
    To: me@example.org
    Subject: Your account
    Authentication-Results: mx.example.org; spf=fail dkim=none
    Content-Type: text/html; charset=utf-8

    <p>Please <a href="http://192.0.2.7/login">www.bank.example</a> now.</p>
    """
STATEMENT = """
    date,text,amount
    2025-01-01,Salary ACME,2000.00
    2025-01-03,NETFLIX.COM 11,-12.99
    2025-02-01,Salary ACME,2000.00
    2025-02-03,NETFLIX.COM 12,-12.99
    2025-02-09,Corner shop,-5.01
    2025-03-03,NETFLIX.COM 13,-12.99
    """
LOG = """
    2025-03-31 10:00:01 INFO started in 12 ms
    2025-03-31 10:00:02 ERROR user 17 timed out after 30 s
    2025-03-31 10:01:02 ERROR user 18 timed out after 31 s
    2025-03-31 10:01:05 WARN pool is empty
    """
SRT = """
    1
    00:00:01,000 --> 00:00:03,000
    Hello there

    2
    00:00:02,500 --> 00:00:09,000
    This one runs into the first
    """
TASKS = """
    - [ ] 2025-04-02 Call the landlord (flat)
    - [ ] Ask Ana for the slides
    - [ ] Ask Ana for the slides
    - [x] 2025-03-30 Pay the dentist
    """
INGREDIENTS = """
    dish,shelf,item,amount,unit
    soup,vegetables,carrot,400,g
    curry,vegetables,carrot,250,g
    house,vegetables,carrot,-300,g
    soup,dairy,cream,200,ml
    curry,dairy,cream,1,cup
    """
PROGRAM = """
    import sys
    print(sum(int(line.split()[1]) for line in open(sys.argv[1], encoding="utf-8")))
    """

CASES = {
    "bisect-a-regression": Case(
        regression,
        ("new: bad", "old: good", "first bad commit", "rewrite the sum", "proved", "[main]"),
    ),
    "budget-from-statements": Case(
        files(
            statement_csv=STATEMENT, rules_csv="pattern,category\nsalary,income\nnetflix,media\n"
        ),
        ("media", "income", "= left", "Every month:", "netflix com (3 months)", "corner shop"),
    ),
    "chart-in-svg": Case(
        files(sales_csv="month,total,returns\nJan,10,1\nFeb,11,\nMar,22,1.5\n"),
        ("3 places, 3 values", "3 places, 5 values", "3 bars"),
    ),
    "check-a-backup": Case(documents, (".sha256", "checksums agree", "no differences")),
    "check-a-mail": Case(
        files(message_eml=MAIL),
        (
            "Reply-To leads to",
            "the name says bank.example",
            "spf is fail",
            "a link says",
            "6 signs",
        ),
    ),
    "clean-a-csv": Case(messy, ('"separator": ";"', '"columns": ["day", "payee", "amount"]')),
    "debug-a-crash": Case(
        files(report_py=PROGRAM, orders_txt="a 1\nb 2\nc two\nd 3\n"),
        ("run 3: exit 1", "ValueError", "fails with line 3 alone:\nc two"),
    ),
    "disk-full": Case(big_files, ("Filesystem", "large.bin", "1 ./cache")),
    "explain-a-concept": Case(files(), ("1 7.0", "0.1 6.1", "0.001 6.001")),
    "explore-a-dataset": Case(
        files(
            orders_csv="id,customer_id,day,amount\n1,7,2025-01-02,9.5\n2,8,2025-02-01,3\n",
            customers_csv="id,name\n7,Ana\n",
        ),
        ("orders: 2 rows, 4 columns", "customers: 1 rows", "orders_without_customer\n1", "2025-02"),
    ),
    "fact-check": Case(files(), ("3.5 points, 7.3 percent",)),
    "fix-subtitles": Case(
        files(film_srt=SRT), ("1: runs into the next", "shifted.srt: 2", "stretched.srt: 2")
    ),
    "git-recovery": Case(lost, ("reset: moving to HEAD~1", "second: the lost one", "a.txt | 2 +-")),
    "inbox-to-tasks": Case(
        files(tasks_md=TASKS), ("overdue: - [ ] 2025-04-02 Call", "3\n", "Ask Ana for the slides")
    ),
    "loan-cost": Case(files(), ("Bank", "6.06%", "Shop", "7.29%", "334.39")),
    "log-triage": Case(
        files(app_log=LOG, good_log="2025-03-30 09:00:01 INFO started in 9 ms\n"),
        ("2  lines 2-3", "user 17", "2 groups, 3 lines", "2 groups, 3 lines", "1 2025-03-31 10:00"),
    ),
    "meal-plan": Case(
        files(ingredients_csv=INGREDIENTS), ("vegetables   carrot         350 g", "cream\n")
    ),
    "meeting-minutes": Case(
        files(transcript_txt="Ana: Let's ship.\nBo: I will write it by Friday.\nAna: Agreed.\n"),
        ("2 Ana:", "2:Bo: I will write it by Friday."),
    ),
    "review-a-diff": Case(branch, ("two", "a.py | 3", "+print(x)")),
    "scan-for-secrets": Case(
        leak, ("notes.txt:1: named secret: hR7k…", "1 found", "AWS key: AKIA…", "found")
    ),
    "spaced-repetition": Case(
        files(words_csv="front,back\nhouse,casa\ndog,perro\n"),
        ("2 added", "added", "1\thouse\tcasa", "again on", "3 cards, 2 due"),
    ),
    "summarise-a-document": Case(
        files(report_md="# One\nYou must pay within ten days.\n## Two\nNothing.\n"),
        ("4 ", "1:# One", "2:You must pay"),
    ),
    "translate-with-glossary": Case(
        files(
            source_md="The invoice of 12 May.\n\nPay at once.\n",
            target_md="Das Papier vom 13. Mai.\n\nZahlen Sie sofort.\n",
            glossary_csv="source,target\ninvoice,Rechnung\n",
        ),
        ("'invoice' without 'Rechnung'", "numbers differ (lost: 12; new: 13)", "2 problems"),
    ),
}


def marked(root: Path) -> set[str]:
    """The skills below this folder that have blocks to run."""
    return {name for name, folder in SKILLS.items() if root in folder.parents and blocks(name)}


def check(name: str, case: Case, home: Path) -> None:
    parsed, _ = parse_skill((SKILLS[name] / MAIN).read_text(encoding="utf-8"))
    missing = [command for command in parsed.commands if not shutil.which(command)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    # One folder deeper, because some put things beside it.
    folder = home / "work"
    folder.mkdir()
    case.prepare(folder)
    output = shell("set -e\n" + "\n".join(blocks(name)), folder, environment(home, name))
    at = 0
    for words in case.expected:
        found = output.find(words, at)
        assert found >= 0, f"{words!r} is not in what follows:\n{output[at:]}"
        at = found + len(words)


def test_every_skill_with_blocks_to_run_has_a_case() -> None:
    assert marked(BUNDLED_SKILLS) == set(CASES)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_blocks_of_a_skill_do_what_it_says(name: str, tmp_path: Path) -> None:
    check(name, CASES[name], tmp_path)
