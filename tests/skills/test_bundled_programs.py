"""The blocks of skills that are installed on request are run where their programs are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes.skills.seeding import OPTIONAL
from tests.skills.test_bundled_blocks import (
    Case,
    check,
    commit,
    documents,
    environment,
    files,
    marked,
    repository,
    shell,
)


def pictures(folder: Path) -> None:
    (folder / "pictures").mkdir()
    for name, width in (("a.ppm", 1700), ("b.ppm", 40)):
        picture = b"P6 %d 10 255\n" % width + bytes(width * 30)
        (folder / "pictures" / name).write_bytes(picture)


def recording(folder: Path) -> None:
    film = "ffmpeg -loglevel error -f lavfi -i testsrc=d=4:s=160x120 -f lavfi -i sine=d=4"
    quiet = "volume=0:enable='between(t,1,2.5)'"
    sound = f'-af "{quiet}" -pix_fmt yuv420p -shortest talk.mp4'
    shell(f"{film} {sound}", folder, environment(folder, "cut-a-recording"))


def paper(folder: Path) -> None:
    """A page with words and one without."""
    words = b"BT /F1 18 Tf 60 700 Td (Every page has its words.) Tj ET"
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 5 0 R"
        b"/Resources<</Font<</F1 6 0 R>>>>>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(words), words),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    data, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size 7/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(data)
    (folder / "paper.pdf").write_bytes(data + b"xref\n0 7\n0000000000 65535 f \n" + table + end)


def papers(folder: Path) -> None:
    documents(folder)
    (folder / "documents").rename(folder / "papers")
    # What is locked for a friend needs no agent, and none should stay behind.
    (folder.parent / ".gnupg").mkdir(mode=0o700)
    (folder.parent / ".gnupg" / "gpg.conf").write_text("no-autostart\n")
    home = folder / "other"
    home.mkdir(mode=0o700)
    make = "gpg --batch --quiet --passphrase '' --quick-generate-key friend@example.org"
    give = "gpg --batch --armor --export friend@example.org > friend.asc"
    env = environment(folder, "encrypt-a-folder") | {"GNUPGHOME": str(home)}
    shell(f"{make} && {give}; gpgconf --kill all", folder, env)


def released(folder: Path) -> None:
    number = commit("version.py", 'VERSION = "1.2.0"', "first")
    repository(folder, number, "git tag v1.2.0", commit("a.py", "x = 1", "something new"))


def pinned(folder: Path) -> None:
    repository(folder, commit("requirements.txt", "click==8.1.0", "first"))
    (folder / "requirements.txt").write_text("click==8.1.8\n")


def shop(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as db, db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT, total REAL)")
        rows = [("Ana Diaz", 3.5), ("Cher", 4), ("Bo Li", 1)]
        db.executemany("INSERT INTO orders (name, total) VALUES (?, ?)", rows)


BOOKS = """
    2025-01-01 opening balances
        assets:checking                 1200.00 EUR
        assets:cash                       50.00 EUR
        equity:opening
    """
SLOW = """
    seen = []
    for n in range(3000):
        if n % 1500 not in seen:
            seen.append(n % 1500)
    print(len(seen))
    """

CASES = {
    "cut-a-recording": Case(recording, ("Duration: 00:00:04", "silence_start: 1", "silence_end")),
    "encrypt-a-folder": Case(papers, ("5 papers.list.txt", "papers.tar.gz.gpg")),
    "image-batch": Case(pictures, ("b.ppm PPM 40x10", "a.jpg 1600x9", "2\n2\n")),
    "make-a-release": Case(
        released,
        ("last: v1.2.0", "something new", "1 file changed", "version.py:1:", "a.py\nversion.py"),
    ),
    "migrate-a-database": Case(
        shop, ("ok", "CREATE TABLE orders", "3|8.5|0", "2|Cher", "counts agree\n0\nway back works")
    ),
    "pdf-to-text": Case(
        paper,
        (
            "Pages:           2",
            "page 1: 5 words",
            "page 2: 0 words",
            "Every page has",
            "page-2.png",
        ),
    ),
    "plain-text-accounts": Case(
        files(
            books_journal=BOOKS,
            statement_csv="day,text,amount\n2025-01-31,Salary,900\n2025-02-01,Bakery,-4\n",
        ),
        ("checking", "income:salary", "expenses:food", "Net:", "Bakery"),
    ),
    "profile-a-program": Case(
        files(slow_py=SLOW), ("real", "tottime", "slow.py:1(<module>)", "same result", "real")
    ),
    "schedule-a-job": Case(
        files(job_sh="echo working\n"),
        (
            "runs with an empty environment",
            "working",
            "ended with 0",
            "ended with 0",
            "still running, left out",
            "the failure is seen: ",
        ),
    ),
    "service-down": Case(
        files(), ("curl ended with 7", "nobody listens", "no process", "Mem:", "load average")
    ),
    "upgrade-dependencies": Case(
        pinned, ("requirements.txt", "1 insertion(+)", "-click==8.1.0", "+click==8.1.8")
    ),
}


def test_every_optional_skill_with_blocks_to_run_has_a_case() -> None:
    assert marked(OPTIONAL) == set(CASES)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_blocks_of_an_optional_skill_do_what_it_says(name: str, tmp_path: Path) -> None:
    check(name, CASES[name], tmp_path)
